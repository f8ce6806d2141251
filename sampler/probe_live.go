package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// Live is what the checks that try the kernel out found.
type Live struct {
	Watchpoints *Watchpoints `json:"watchpoints,omitempty"`
	TwoTrap     *TwoTrap     `json:"two_trap,omitempty"`
	Features    *Features    `json:"kernel_features,omitempty"`
}

// ProbeLive loads the BPF programs and tries out the watchpoints. What cannot
// be tried because something before it is missing is not in the checks.
func ProbeLive(m Machine) ([]Check, Live) {
	var live Live
	needs := Needs{}
	for _, name := range AccessSources {
		needs.Access = max(needs.Access, m.ReportingEvents(name, false))
	}
	k, err := Load(NumSlots, needs)
	if err != nil {
		return []Check{{Name: "BPF programs", Grade: Missing, Needed: true, Found: err.Error(),
			Consequence: "samples cannot be chosen, nor traps be timed", Remedy: remedyIn(err)}}, live
	}
	defer k.Close()
	loaded := good("BPF programs", "load")
	loaded.Needed = true
	checks := []Check{loaded}

	w, err := k.ProbeWatchpoints()
	if errors.Is(err, ErrNoWatchpoints) {
		return append(checks, Check{Name: "watchpoints", Grade: Degraded, Found: "none: " + ErrNoWatchpoints.Error(),
			Consequence: "reuses are seen as far as rdx reads ahead; miss ratios of larger caches are bounds, and sharing can't be seen",
			Remedy:      "use another kind of virtual machine, or bare metal; rdx exact needs no watchpoints"}), live
	} else if err != nil {
		return append(checks, Check{Name: "watchpoints", Grade: Missing, Needed: true, Found: err.Error(),
			Consequence: "no reuse can be seen", Remedy: remedyIn(err)}), live
	}
	live.Watchpoints = &w
	checks = append(checks, w.checks()...)
	if w.Usable() != nil || w.Free == 0 {
		return checks, live
	}
	features, err := k.ProbeFeatures()
	if err != nil {
		checks = append(checks, Check{Name: "kernel features", Grade: Degraded, Found: err.Error(), Consequence: "unknown", Remedy: remedyIn(err)})
	} else {
		live.Features = &features
		checks = append(checks, features.check())
	}
	two, err := k.Calibrate(probeCalibrations)
	if err != nil {
		return append(checks, Check{Name: "clock", Grade: Missing, Needed: true, Found: err.Error(),
			Consequence: "reuses cannot be timed", Remedy: remedyIn(err)}), live
	}
	live.TwoTrap = &two
	checks = append(checks, two.check(), ProbeAccess(m, k))
	if spe, ok := ProbeSPE(m); ok {
		checks = append(checks, spe)
	}
	return checks, live
}

const probeCalibrations = 300

// remedyIn is what an error itself says to do.
func remedyIn(err error) string {
	s := err.Error()
	if i := strings.LastIndexByte(s, '('); i >= 0 && strings.HasSuffix(s, ")") {
		return s[i+1 : len(s)-1]
	}
	return "see the error"
}

func (w Watchpoints) checks() []Check {
	free := Check{Name: "watchpoints", Grade: Good, Needed: true, Found: fmt.Sprintf("%d free in a thread", w.Free)}
	switch {
	case w.Free == 0:
		free.Grade = Missing
		free.Consequence = "no reuse can be seen"
		free.Remedy = "end the debugger that holds all debug registers; in a virtual machine see that the hypervisor offers them"
	case w.Free < NumSlots:
		free.Grade = Degraded
		free.Consequence = "fewer samples at a time, so that long reuses are censored more often"
		free.Remedy = "end the debugger that holds the others"
	}
	limit := Check{Name: "watchpoint limit", Grade: Good, Needed: true, Found: fmt.Sprintf("honoured: %.2f traps per arming", w.TrapsPerArm)}
	if err := w.Usable(); err != nil {
		limit.Grade, limit.Found = Missing, fmt.Sprintf("ignored: %.2f traps per arming", w.TrapsPerArm)
		limit.Consequence = err.Error()
		limit.Remedy = "use another kernel, and report this one's version"
	}
	rearm := good("watchpoint re-arming", "an event can be armed again")
	if !w.Rearms {
		rearm.Found = "an event fires once; rdx opens a fresh one for each sample"
	}
	lengths := good("watchpoint length", "up to %d bytes, whole lines as tried out word by word", slices.Max(append(w.Lengths, 0)))
	if !w.WholeLine {
		lengths.Found = fmt.Sprintf("up to %d bytes; no whole lines: %s", slices.Max(append(w.Lengths, 0)), w.WhyNot)
		lengths.Grade = Degraded
		lengths.Consequence = "four of a line's eight words are watched; a reuse of the others is estimated from theirs"
		lengths.Remedy = "AMD processors watch a whole line where the hypervisor lets them (CPUID bpext); no other remedy"
	}
	return []Check{free, limit, rearm, lengths}
}

// coarse is the resolution, in nanoseconds, above which the native clock
// cannot place reuses within a first-level cache.
const coarse = 10_000

func (t TwoTrap) check() Check {
	c := good("clock resolution", "%.0f ns (two traps with nothing between: p10 %.0f, p50 %.0f, p90 %.0f ns)",
		t.Resolution(), t.P10, t.P50, t.P90)
	c.Name = "CPU-time resolution"
	if t.Resolution() > coarse {
		c.Grade = Degraded
		c.Consequence = "reuses sooner than that are only known to be short"
		c.Remedy = "profile on a less busy machine; an access counter (PMU) has no such limit"
	}
	return c
}

// ProbeSeize tries to trace the process pid, which must be an own child, and
// lets it go without stopping it.
func ProbeSeize(pid int) Check {
	const name = "ptrace"
	result := make(chan error)
	// The kernel ends the tracing when this OS thread exits.
	go seizeOnce(pid, result)
	err := <-result
	if err == nil {
		c := good(name, "a child can be seized")
		c.Needed = true
		return c
	}
	c := Check{Name: name, Grade: Missing, Needed: true, Found: err.Error(), Consequence: "threads cannot be held",
		Remedy: "mend what the lines above say of rights and of ptrace_scope; in a container: --cap-add SYS_PTRACE, and a seccomp profile that allows ptrace"}
	if errors.Is(err, unix.ENOSYS) {
		c.Remedy = "boot a kernel with ptrace"
	}
	return c
}

func seizeOnce(pid int, result chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The main thread does not end with its goroutine.
		inner := make(chan error)
		go seizeOnce(pid, inner)
		result <- <-inner
		runtime.UnlockOSThread()
		return
	}
	if err := ptrace.Seize(pid, 0); err != nil {
		result <- fmt.Errorf("seize a child: %w", err)
		return
	}
	result <- nil
}
