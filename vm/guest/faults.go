package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// faultsArg on the kernel's command line asks for what follows in place of the
// other tests: what others may do to the processor's counters is done to them
// while rdx uses them.
const faultsArg = "rdx.faults"

const sampleRate = "/proc/sys/kernel/perf_event_max_sample_rate"

// testFaults prints one line of a table for each fault.
func testFaults(kernel string) {
	for _, fault := range []struct {
		name, flags string
		run         func(flags []string) (string, error)
	}{
		{"counters taken by others", "--source pmu --clock cpu-time", func(flags []string) (string, error) {
			return taken(flags, "nmi_watchdog")
		}},
		{"counters taken by others", "--source clock --clock pmu", func(flags []string) (string, error) {
			return taken(flags, "can't be read any more", "nmi_watchdog")
		}},
		// By time holds read little: as far as by default takes an emulated processor most of these seconds. Where phases are
		// weighed they read least, for many holds.
		{"throttled", "--source pmu --clock pmu", throttled},
		{"throttled", "--source pmu --clock cpu-time --burst 2047", throttled},
		{"throttled", "--source clock --clock cpu-time --burst 2047", throttled},
		{"the first of two phases throttled", "--source pmu --clock pmu", throttledPhase},
		{"the first of two phases throttled", "--source pmu --clock cpu-time --burst 255", throttledPhase},
	} {
		said, err := fault.run(strings.Fields(fault.flags))
		verdict := "ok"
		if err != nil {
			verdict = "FAILED: " + err.Error()
		}
		row(kernel, fault.name, fault.flags, said, verdict)
	}
}

// soon is the CPU time of the target within which a source or clock that is gone
// must be found out.
const soon = time.Second

// taken profiles a program and, in the course of it, takes every counter of the
// CPU for itself. rdx must end with an error that says all of says.
func taken(flags []string, says ...string) (string, error) {
	cmd, stdin, _, err := startSignalled()
	if err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer stdin.Close()
	const sampled = time.Second // before the counters are taken
	rdx := exec.Command("/rdx", append([]string{"attach", "-p", strconv.Itoa(cmd.Process.Pid), "--duration", "20s", "-o", "/tmp/taken.pb.gz", "--caches", "32K"}, flags...)...)
	type end struct {
		text string
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		text, err := rdx.CombinedOutput()
		ended <- end{string(text), err}
	}()
	if _, err := awaitTraced(cmd.Process.Pid, true); err != nil {
		return "", errors.Join(err, (<-ended).err)
	}
	time.Sleep(sampled)
	events, err := takeCounters()
	from := cpuTime(cmd.Process.Pid)
	defer func() {
		for _, fd := range events {
			unix.Close(fd)
		}
	}()
	// The session is over when it lets go of the program.
	until, traceErr := awaitTraced(cmd.Process.Pid, false)
	e := <-ended
	if err := errors.Join(err, traceErr); err != nil {
		return "", err
	}
	after := time.Duration(until - from)
	said := fmt.Sprintf("error after %v", after.Round(10*time.Millisecond))
	var exit *exec.ExitError
	if !errors.As(e.err, &exit) {
		return said, fmt.Errorf("rdx attach: %v: %.300s", e.err, e.text)
	}
	for _, want := range says {
		if !strings.Contains(e.text, want) {
			return said, fmt.Errorf("rdx does not say %q: %.300s", want, e.text)
		}
	}
	if after > soon {
		return said, errors.New("found out too late")
	}
	return said, nil
}

// takeCounters opens more events than the CPU has counters, all of them pinned
// to it: those of threads come after.
func takeCounters() ([]int, error) {
	var fds []int
	const more = 33 // than any PMU of Arm has
	for range more {
		attr := unix.PerfEventAttr{
			Type:   unix.PERF_TYPE_HARDWARE,
			Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
			Config: unix.PERF_COUNT_HW_INSTRUCTIONS,
			Bits:   unix.PerfBitPinned,
		}
		if len(fds)%2 == 0 {
			attr.Config = unix.PERF_COUNT_HW_CPU_CYCLES
		}
		fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fds, fmt.Errorf("take counter %d: %w", len(fds), err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// fewestWeighed is the share of what the program did that the samples must stand for
// though the source is stopped most of the time, mostWeighed what they may.
const fewestWeighed, mostWeighed = .85, 1.05

// throttled lets the kernel take one sample a timer tick only. What is lost must
// be counted, and what is seen be right.
func throttled(flags []string) (string, error) {
	before, err := os.ReadFile(sampleRate)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(sampleRate, []byte("1"), 0); err != nil {
		return "", fmt.Errorf("throttle: %w", err)
	}
	defer os.WriteFile(sampleRate, before, 0)
	cmd, stdin, _, err := startSignalled()
	if err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer stdin.Close()
	const out = "/tmp/throttled.pb.gz"
	result := startRdx(append([]string{"attach", "-p", strconv.Itoa(cmd.Process.Pid), "--duration", "4s", "--overhead", "20", "--period", "500us", "-o", out, "--caches", "32K"}, flags...)...)
	from, err := awaitTraced(cmd.Process.Pid, true)
	if err != nil {
		return "", errors.Join(err, <-result)
	}
	until, err := awaitTraced(cmd.Process.Pid, false)
	if err := errors.Join(err, <-result); err != nil {
		return "", err
	}
	p, err := pprofout.ReadFile(out)
	if err != nil {
		return "", err
	}
	var stopped, ticks int64
	for _, c := range p.Counts {
		switch c.Name {
		case model.SourceUnweighed:
			return "", fmt.Errorf("of %v it is not known what was missed", time.Duration(c.N))
		case model.SourceThrottles:
			stopped = c.N
		case model.Samples:
			ticks = c.N
		}
	}
	reuses, accesses := 0, 0.0
	for _, r := range p.Records {
		accesses += r.Accesses
		if r.Kind == model.Reuse {
			reuses++
		}
	}
	// An instruction takes a nanosecond.
	weighed := accesses / p.Clock.Rate / float64(until-from)
	said := fmt.Sprintf("%d ticks, %d times stopped; %d reuses; %.0f %% of the run weighed", ticks, stopped, reuses, 100*weighed)
	if stopped == 0 || reuses == 0 {
		return said, errors.New("nothing is counted as lost, or nothing was seen")
	}
	if weighed < fewestWeighed || weighed > mostWeighed {
		return said, errors.New("the samples' weights do not make up for it")
	}
	if !strings.Contains(strings.Join(p.Comments, " "), "perf_event_max_sample_rate") {
		return said, errors.New("the profile does not say what to do")
	}
	return said, nil
}

// startRdx runs rdx with these arguments, and tells when it has ended.
func startRdx(args ...string) <-chan error {
	result := make(chan error, 1)
	go func() {
		text, err := exec.Command("/rdx", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("rdx %s: %w: %.300s", args[0], err, text)
		}
		result <- err
	}()
	return result
}
