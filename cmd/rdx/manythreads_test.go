// Needs: root, bpf, watchpoint, gcc. Processes of many threads, which are watched by CPU.
package main_test

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// watchCPU takes a debug register of CPU 0.
func watchCPU() (fd int, err error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bp_type: 3, Ext1: 0x1000, Ext2: 8, Sample: 1,
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	return unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// needCPURegisters skips the test if the debug registers of a CPU can't be had,
// because some thread of another process has all of its own taken: the kernel then
// refuses them for as long.
func needCPURegisters(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(10 * time.Millisecond) {
		fd, err := watchCPU()
		if err == nil {
			unix.Close(fd)
			return
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("open watchpoint on CPU 0: %v", err)
		}
		if time.Now().After(end) {
			t.Skipf("needs debug registers of a CPU: for %v some process of this machine has had all of a thread's (a debugger, or another rdx)", deadline)
		}
	}
}

// byCPU is what a profile says of the registers of CPUs.
type byCPU struct{ taken, cpus, words int }

func registersIn(t *testing.T, p *model.Profile) (r byCPU) {
	t.Helper()
	for _, c := range p.Comments {
		if _, rest, ok := strings.Cut(c, "watched by CPU"); ok {
			_, rest, _ = strings.Cut(rest, ": ")
			if _, err := fmt.Sscanf(rest, "%d debug registers of %d CPUs taken, moved to %d words", &r.taken, &r.cpus, &r.words); err != nil {
				t.Fatalf("%q: %v", c, err)
			}
		}
	}
	return r
}

// disturbed says whether another process had so many debug registers taken that more than one observation in twenty was not
// watched in all threads: beside another rdx, say.
func disturbed(p *model.Profile) bool {
	n := int64(0)
	for _, c := range p.Counts {
		for _, reason := range []model.Reason{model.NoRegister, model.RegistersRefused, model.ThreadsRefused} {
			if c.Name == model.NotWatched.Of(reason) {
				n += c.N
			}
		}
	}
	_, of := unwatched(p)
	return n*20 > int64(of)
}

// unwatched is how many observations were not watched in all threads, of how many.
func unwatched(p *model.Profile) (lost, of int) {
	for _, c := range p.Counts {
		switch {
		case c.Name == model.LostBecause.Of(model.NotInAllThreads):
			lost += int(c.N)
			of += int(c.N)
		case model.NotWatched.Has(c.Name): // and read ahead of: it has a record
			lost += int(c.N)
		case model.LostBecause.Has(c.Name):
			of += int(c.N)
		}
	}
	for i := range p.Records {
		of += int(p.Records[i].Observations)
	}
	return lost, of
}

// Needs: root, bpf, watchpoint, gcc. Many threads are watched by CPU; nothing of that is left behind, and threads
// that come and go while they are watched lose nothing.
func TestManyThreadsPrivate(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needCPURegisters(t)
	p := target(t, compile(t, "sum"), "40")
	kinds := map[model.StackKind]int{}
	lost, of := 0, 0
	// On two CPUs a held thread waits long for its turn, and few come to an end.
	bySessions(t, "observations of both stacks", func() bool {
		profile := attach(t, p.pid, "--stack", "both", "-d", "1s").profile()
		assertFree(t, p.pid)
		n, all := unwatched(profile)
		if disturbed(profile) {
			t.Logf("%d of %d observations lost to another process that has debug registers taken; once more", n, all)
			needCPURegisters(t)
			return false
		}
		for _, r := range profile.Records {
			kinds[r.Stack]++
		}
		lost += n
		of += all
		t.Logf("records by stack %v, counts %v", kinds, profile.Counts)
		return kinds[model.StackPrivate] > 0 && kinds[model.StackShared] > 0
	})
	if kinds[model.StackOwn] > 0 || lost*20 > of {
		t.Errorf("records by stack: %v; %d of %d observations not watched in all threads", kinds, lost, of)
	}
	p.end()
	p = target(t, compile(t, "churn"))
	profile := attach(t, p.pid, "--stack", "both", "-d", "1s").profile()
	assertUntraced(t, p.pid)
	t.Logf("%d holds; target: %s", countOf(profile, model.Holds), p.end())
	if countOf(profile, model.LostBecause.Of(model.ThreadNotSampled)) > 0 || countOf(profile, model.ThreadsNeverTick) == 0 {
		t.Errorf("%v", profile.Counts)
	}
}

// idleThreads make a process one of many threads.
const idleThreads = "20"

// Needs: root, bpf, watchpoint, gcc. Watched by CPU, what is invalidated is the same, and false sharing is seen, too: one
// other word of a line is watched, at a time at which no other datum is.
func TestPrivateStackByCPU(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needCPURegisters(t)
	for _, c := range []privateCase{
		{kind: "pingpong", a: .5, b: .5},
		{kind: "false", false_: .5, aAt: 0, bAt: 40},
		{kind: "queue", b: 1},
		{kind: "private"},
	} {
		t.Run(c.kind, func(t *testing.T) { c.judge(t, 1./7, idleThreads) })
	}
}

// Needs: root, bpf, watchpoint, gcc. With both stacks one register of each CPU is for private ones and one for shared: a sample is for that
// which it has drawn, and both are as by themselves. That false sharing is not known is said.
func TestBothStacksByCPU(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needCPURegisters(t)
	var private, shared shares
	unknown, falsely := 0, 0
	judge(t, "both", "queue", func(p *model.Profile) int64 {
		if r := registersIn(t, p); r.taken > 2*r.cpus || r.cpus == 0 { // fewer beside another rdx
			t.Errorf("%+v", r)
		}
		unknown += countOf(p, model.FalseSharingUnknown)
		for i := range p.Records {
			if p.Records[i].Kind == model.FalseSharing {
				falsely++
			}
		}
		private.add(p.OnStack(model.StackPrivate), "queue_b", "queue_a", 0)
		shared.add(p.OnStack(model.StackShared), "queue_b", "", 0)
		return min(private.observations, shared.observations)
	}, func(sds float64) []string {
		return append(within5(t, sds, "queue_b invalidated", private.invalidated/private.accesses, 1, private.worth()),
			within5(t, sds, "queue_b reused by the other", shared.foreign/shared.accesses, 1, shared.worth())...)
	}, idleThreads)
	t.Logf("private %+v, shared %+v; false sharing not known of %d", private, shared, unknown)
	if unknown == 0 || falsely > 0 {
		t.Errorf("false sharing is said not to be known of %d observations, and told of %d", unknown, falsely)
	}
}

// Needs: root, bpf, watchpoint, gcc. Two processes of many threads share the registers: what is found is the same for each, as no thread of the one counts
// as another thread of the other.
func TestTwoProcessesByCPU(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needCPURegisters(t)
	bin := compile(t, "sharing", "-O1", "-g", "-fno-omit-frame-pointer")
	var queue, private shares
	judgeOf(t, "queue beside private", func() *model.Profile {
		return rdx(t, "run", "-q", "--follow", "--stack", "private", "--overhead", "30", "--", "sh", "-c", fmt.Sprintf("%s queue 2 %s & %s private 2 %s; wait", bin, idleThreads, bin, idleThreads)).profile()
	}, func(p *model.Profile) int64 {
		if r := registersIn(t, p); r.taken > 2*r.cpus || r.cpus == 0 { // fewer beside another rdx
			t.Errorf("%+v", r)
		}
		queue.add(p, "queue_b", "queue_a", 0)
		private.add(p, "private_a", "private_b", 0)
		return min(queue.observations, private.observations)
	}, func(sds float64) []string {
		return append(within5(t, sds, "queue_b invalidated", queue.invalidated/queue.accesses, 1, queue.worth()),
			within5(t, sds, "private_a invalidated", private.invalidated/private.accesses, 0, private.worth())...)
	})
	if wrong := append(queue.wrongWriters, private.wrongWriters...); len(wrong) > 0 {
		t.Errorf("by another function: %s", strings.Join(wrong, "; "))
	}
}

// Needs: root, bpf, watchpoint, gcc. The registers of CPUs are taken once, not while threads are held: as many as there are CPUs and
// slots, however many words they watch, and with a thousand threads, too.
func TestHoldsTakeNoRegisters(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needCPURegisters(t)
	p := target(t, compile(t, "sum"), "1000", "0", "calm")
	words := 0
	bySessions(t, "eight words watched", func() bool {
		ownStack := attach(t, p.pid, "--stack", "own", "-d", "1s").profile()
		profile := attach(t, p.pid, "--stack", "private", "-d", "2s").profile()
		assertUntraced(t, p.pid)
		r := registersIn(t, profile)
		words += r.words
		for _, p := range []*model.Profile{ownStack, profile} {
			t.Logf("%+v; %d holds; %s", r, countOf(p, model.Holds), commentOf(p, "thread held per sample"))
		}
		if lost, _ := unwatched(profile); lost > 0 {
			needCPURegisters(t) // another process had some
			return false
		}
		if r.taken != 2*r.cpus || r.cpus == 0 {
			t.Fatalf("%d registers of %d CPUs taken for %d words", r.taken, r.cpus, r.words)
		}
		return words >= 8
	})
	p.end()
}

func commentOf(p *model.Profile, prefix string) string {
	for _, c := range p.Comments {
		if strings.HasPrefix(c, prefix) {
			return c
		}
	}
	return ""
}

// takeRegisters takes n debug registers of a thread, 0 for the caller's, until the function is called that it returns.
func takeRegisters(t *testing.T, tid, n int) (giveBack func()) {
	t.Helper()
	var fds []int
	for range n {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
			Bp_type: 3, Ext1: 0x1000, Ext2: 8, Sample: 1,
			Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
		}
		fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			t.Fatalf("take a register of thread %d: %v", tid, err)
		}
		fds = append(fds, fd)
	}
	return func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
		fds = nil
	}
}

// cpuTime is how long the threads of a process have run.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil { // clock_getcpuclockid(3)
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// Needs: root, bpf, watchpoint, gcc. While another process has its thread's registers taken a CPU's can't be had: the user is told at once what to
// do, samples are not watched for that reason, and when the registers are free they are taken.
func TestRegistersTaken(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needCPURegisters(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := target(t, compile(t, "sum"), "40")
	output := t.TempDir() + "/p.pb.gz"
	for end := time.Now().Add(samplesWithin); ; {
		giveBack := takeRegisters(t, 0, 4)
		defer giveBack()
		s := &session{start(t, rdxPath(t), "attach", "-o", output, "-p", strconv.Itoa(p.pid), "--period", "200us", "--overhead", "90", "--stack", "private", "-d", "4s"), output}
		s.seized(p.pid)
		began := cpuTime(t, p.pid)
		eventually(t, "half a second of the target's time with the registers taken", func() bool { return cpuTime(t, p.pid)-began > 500*time.Millisecond })
		giveBack()
		if code := s.wait(); code != 0 {
			t.Fatalf("rdx: exit code %d: %s", code, s.stderr.String())
		}
		profile := readProfile(t, output)
		said := s.stderr.String()
		lost := countOf(profile, model.NotWatched.Of(model.RegistersRefused))
		r := registersIn(t, profile)
		t.Logf("%d not watched, %+v; %s", lost, r, said)
		if before, _, _ := strings.Cut(said, "observations "); !strings.Contains(before, "end debuggers") || !strings.Contains(before, "--stack own") {
			t.Errorf("the user is told %q", said)
		}
		if lost > 0 && r.words > 0 && r.taken == 2*r.cpus {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d lost, %+v", lost, r)
		}
	}
	assertFree(t, p.pid)
	p.end()
}

// Needs: root, bpf, watchpoint, gcc. Another process at the same addresses uses up the traps of a CPU: what is waited for is cut off
// there, for nobody knows who writes it next, and nothing of that process counts as sharing.
func TestTrapsUsedUp(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needCPURegisters(t)
	p := target(t, compile(t, "twins"))
	cut := 0
	bySessions(t, "observations cut off", func() bool {
		profile := attach(t, p.pid, "--stack", "private", "-d", "2s").profile()
		for _, r := range profile.Records {
			if r.Kind == model.Invalidated || r.Kind == model.FalseSharing {
				t.Fatalf("%v by thread %d", r.Kind, r.Words().EndTID)
			}
		}
		cut += countOf(profile, model.CutOff)
		t.Logf("%d cut off; %d words; %d traps of other processes", cut, registersIn(t, profile).words, countOf(profile, model.TrapsOtherSpaces))
		return cut > 0
	})
	assertFree(t, p.pid)
	p.end()
}

// Needs: root, bpf, watchpoint, gcc. With half of the registers of the target's threads taken by another process fewer words of a line can
// be watched: false sharing comes out as it is all the same, for those that can't be watched are not taken for
// ones that nobody writes.
func TestFalseSharingFewRegisters(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := compile(t, "sharing", "-O1", "-g", "-fno-omit-frame-pointer")
	// It outlasts all that the judgement may take.
	cmd := exec.Command(bin, "false", fmt.Sprint(int((samplesWithin << len(judgements)).Seconds())))
	p := startCmd(t, cmd)
	eventually(t, "two threads", func() bool { return len(tids(p.pid)) == 2 })
	for _, tid := range tids(p.pid) {
		defer takeRegisters(t, tid, 2)()
	}
	var a, b shares
	words := 0.0
	judgeOf(t, "false, with two registers taken", func() *model.Profile {
		return rdx(t, "attach", "-q", "-p", strconv.Itoa(p.pid), "--stack", "private", "--overhead", "30", "-d", "2s").profile()
	}, func(p *model.Profile) int64 {
		var n float64
		if _, err := fmt.Sscanf(commentOf(p, "false sharing: "), "false sharing: %f of", &n); err != nil {
			t.Fatal(err)
		}
		words = max(words, n)
		a.add(p, "false_a", "false_b", 40)
		b.add(p, "false_b", "false_a", 0)
		return min(a.observations, b.observations)
	}, func(sds float64) []string {
		return append(within5(t, sds, "false_a", a.falsely/a.accesses, .5, a.worth()/7), within5(t, sds, "false_b", b.falsely/b.accesses, .5, b.worth()/7)...)
	})
	if words == 0 || words > 1 {
		t.Errorf("%.2f of the other words of a line were watched, want one at most", words)
	}
	p.cmd.Process.Kill()
}
