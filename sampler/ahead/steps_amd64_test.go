// Needs: root, bpf, watchpoint, amd64, and the programs it steps.
package ahead

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// stepped is a program that the test holds and steps.
type stepped struct {
	t      *testing.T
	k      *sampler.Kernel
	pid    int
	shared *sampler.Thread
	l      *Locator
	rand   *rand.Rand
}

func startStepped(t *testing.T, argv ...string) *stepped {
	t.Helper()
	if unix.Geteuid() != 0 {
		t.Skip("needs root, for BPF")
	}
	needs.Watchpoints(t)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skipf("needs %s", argv[0])
	}
	k, err := sampler.Load(stepTestSlots, sampler.Needs{Steps: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Files: []*os.File{null, null, null}, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &stepped{t: t, k: k, pid: p.Pid, l: NewLocator(), rand: rand.New(rand.NewPCG(seed, 0))}
	t.Cleanup(func() {
		unix.Kill(s.pid, unix.SIGKILL)
		for status := unix.WaitStatus(0); ; {
			if _, err := unix.Wait4(s.pid, &status, unix.WALL, nil); err != nil || status.Exited() || status.Signaled() {
				return
			}
		}
	})
	s.wait(unix.SIGTRAP) // of exec
	if _, s.shared, err = k.AddThread(s.pid); err != nil {
		t.Fatal(err)
	}
	s.l.Prepare(s.pid)
	return s
}

const stepTestSlots = 3

// wait waits for the stop by a signal; false if the program has ended.
func (s *stepped) wait(signal unix.Signal) bool {
	s.t.Helper()
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(s.pid, &status, unix.WALL, nil); err != nil {
			s.t.Fatal(err)
		}
		switch {
		case status.Exited() || status.Signaled():
			return false
		case status.StopSignal() == signal:
			return true
		}
		s.cont(status.StopSignal())
	}
}

func (s *stepped) cont(signal unix.Signal) {
	s.t.Helper()
	if err := unix.PtraceCont(s.pid, int(signal)); err != nil {
		s.t.Fatal(err)
	}
}

// hold lets the program run for a while and stops it.
func (s *stepped) hold(after time.Duration) bool {
	s.cont(0)
	time.Sleep(after)
	unix.Kill(s.pid, unix.SIGURG)
	return s.wait(unix.SIGURG)
}

// burst steps the held program for so many accesses.
func (s *stepped) burst(accesses int) (*Steps, string) {
	s.t.Helper()
	b := s.l.Steps(s.pid, s.pid, 8, accesses, 8, time.Minute, s.rand.IntN)
	s.shared.Hold = uint32(unix.SIGURG)
	for {
		stop, end, err := b.Next()
		if err != nil {
			return b, err.Error()
		}
		if end != "" {
			s.shared.Hold = 0
			return b, end
		}
		s.shared.HoldIp = 0
		w, err := s.k.ArmStep(s.pid, stop)
		if err != nil {
			s.t.Fatal(err)
		}
		s.cont(0)
		if !s.wait(unix.SIGURG) {
			s.t.Fatal("ended in a step")
		}
		if s.shared.HoldIp != stop {
			s.t.Errorf("stopped at %#x, want %#x", s.shared.HoldIp, stop)
		}
		w.Close()
	}
}

// masked says whether the instruction has a mask of elements: EVEX's aaa, which begins with 0x62.
func (s *stepped) masked(pc uint64) bool {
	s.t.Helper()
	var code [4]byte
	if _, err := unix.PtracePeekText(s.pid, uintptr(pc), code[:]); err != nil {
		s.t.Fatal(err)
	}
	return code[0] == 0x62 && code[3]&7 != 0
}

// ahead interprets from where the program is held.
func (s *stepped) ahead(accesses int) ([]interp.Access, interp.End) {
	if err := s.l.readRegs(s.pid, s.pid, 1000); err != nil {
		s.t.Fatal(err)
	}
	s.l.machine.Start(&s.l.regs, &s.l.memory)
	end := s.l.machine.Run(interp.Limit{Accesses: accesses, Instructions: 100 * accesses})
	return append([]interp.Access(nil), s.l.machine.Accesses()...), end
}

// What a thread is stepped over is what the interpreter says that it will do, access
// by access; all the while a watchpoint traps once for each instruction that touches its
// word, and nothing else traps.
func TestStepsAsInterpreted(t *testing.T) {
	bursts, each := 40, 150
	if os.Getenv("RDX_LONG") != "" {
		bursts = 1000
	}
	for _, argv := range [][]string{
		{"gzip", "-9", "-c", os.Args[0]},
		{"sh", "-c", "while :; do x=$((x+1)); y=$x$x; case $y in *7*) z=$y;; esac; done"},
		{"perl", "-e", `for (;;) { $h{$i++ % 1000} .= "abc"; $s = join ",", sort keys %h if $i % 997 == 0; $h{5} = "" }`},
		{"/usr/bin/python3", "-c", "d = {}\nwhile True:\n for i in range(1000): d[str(i)] = [i] * 9\n"},
		{"sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i+1 from n) select sum(i) from n"},
	} {
		t.Run(argv[0], func(t *testing.T) {
			s := startStepped(t, argv...)
			ends, compared, traps, steps, instructions := make(map[string]int), 0, 0, 0, 0
			var slow time.Duration
			for range bursts {
				if !s.hold(time.Duration(1000+s.rand.IntN(4000)) * time.Microsecond) {
					if argv[0] == "gzip" {
						break
					}
					t.Fatal("program ended")
				}
				want, stopped := s.ahead(2 * each)
				var point *sampler.Watchpoint
				word := uint64(0)
				if len(want) > 0 {
					word = want[s.rand.IntN(min(len(want), each))].Addr &^ 7
					var err error
					if point, err = s.k.Arm(s.pid, 0, word, 10000); err != nil {
						t.Fatal(err)
					}
				}
				before := s.shared.Traps
				start := sampler.Monotonic()
				b, end := s.burst(each)
				slow += sampler.Monotonic() - start
				ends[end]++
				steps += b.Steps
				instructions += b.Instructions
				log := b.log.all[:b.confirmed]
				if len(want) < len(log) && (stopped.Cause == interp.AccessesDone || stopped.Cause == interp.InstructionLimit) {
					t.Errorf("%d accesses, interpreted %d (%v)", len(log), len(want), stopped)
				}
				// A string instruction traps for each element, or for some at once; one with a mask only for elements that the
				// mask has, of which the log has no more than where the first and the last are.
				inst, last, vague := 0, int32(-1), false
				for i, a := range log {
					const mostPlain = 3 // accesses of an instruction that repeats nothing
					if i >= mostPlain && log[i-mostPlain].Inst == a.Inst && touches(a, word, 8) {
						vague = true
					}
					if a.Addr < word && word+8 < a.Addr+uint64(a.Size) && s.masked(a.PC) {
						vague = true
					}
					if a.Inst != last && touches(a, word, 8) {
						inst++
						last = a.Inst
					}
					if i >= len(want) {
						continue
					}
					w := want[i]
					w.Inst, a.Inst = 0, 0
					if a != w {
						t.Fatalf("access %d of %d: %+v, interpreted %+v; end %q", i, len(log), a, w, end)
					}
					compared++
				}
				if got := int(s.shared.Traps - before); point != nil && got != inst && !vague {
					t.Errorf("%d traps at %#x, %d instructions touch it of %d accesses; end %q", got, word, inst, len(log), end)
				} else {
					traps += got
				}
				if point != nil {
					point.Close()
				}
			}
			t.Logf("%d accesses compared, %d traps; %d stops of %v, %.2f instructions each; ends %v", compared, traps, steps, slow/time.Duration(max(steps, 1)), float64(instructions)/float64(max(steps, 1)), ends)
			if compared < 5*bursts {
				t.Error("too few")
			}
		})
	}
}

// Why it is not PTRACE_SINGLESTEP: a tracer that is killed in the middle of it takes the
// target with it. Should this fail on some kernel, that is good news.
func TestStepperDies(t *testing.T) {
	if os.Getenv("RDX_STEP") != "" {
		stepUntilKilled()
	}
	killed := 0
	const rounds = 10
	for range rounds {
		// The target is the stepper's parent's child, so that it is ours to wait for.
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		target, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "while :; do :; done"}, &os.ProcAttr{Files: []*os.File{null, null, null}})
		null.Close()
		if err != nil {
			t.Skip("needs sh:", err)
		}
		stepper := exec.Command(os.Args[0], "-test.run=^TestStepperDies$")
		stepper.Env = append(os.Environ(), "RDX_STEP="+strconv.Itoa(target.Pid))
		out, err := stepper.StdoutPipe()
		if err == nil {
			err = stepper.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Skip("needs ptrace:", err)
		}
		stepper.Process.Kill()
		stepper.Wait()
		// Time for a next instruction, if it lives.
		done := make(chan unix.WaitStatus, 1)
		go func() {
			state, _ := target.Wait()
			done <- unix.WaitStatus(state.Sys().(syscall.WaitStatus))
		}()
		select {
		case status := <-done:
			if status.Signal() == unix.SIGTRAP {
				killed++
			}
		case <-time.After(200 * time.Millisecond):
			target.Kill()
			<-done
		}
	}
	t.Logf("%d of %d targets killed by SIGTRAP", killed, rounds)
	if killed == 0 {
		t.Error("targets survive a stepping tracer's death: steps could be ptrace's")
	}
}

// stepUntilKilled steps the process that RDX_STEP names.
func stepUntilKilled() {
	runtime.LockOSThread()
	var pid int
	for _, c := range os.Getenv("RDX_STEP") {
		pid = 10*pid + int(c-'0')
	}
	var status unix.WaitStatus
	if unix.PtraceSeize(pid) != nil || unix.PtraceInterrupt(pid) != nil {
		os.Exit(1)
	}
	for n := 0; ; n++ {
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
			os.Exit(1)
		}
		if n == 1000 {
			os.Stdout.WriteString("!")
		}
		if unix.PtraceSingleStep(pid) != nil {
			os.Exit(1)
		}
	}
}

// Each access of the third that uses are of is as likely to be one, and of a burst that
// ends before it, each there was.
func TestStepsUses(t *testing.T) {
	const trials, want, burst = 40000, 4, 36
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, accesses := range []int{burst, 16, 3} {
		var got, expected [burst]float64
		for range trials {
			s := (&Locator{}).Steps(0, 0, want, burst, 8, 0, rnd.IntN)
			var in [want + 1]int
			for i := range in {
				in[i] = -1
			}
			for at := range accesses {
				if p := s.place(at); p >= 0 {
					in[p] = at
				}
			}
			from, to := s.first, min(s.first+s.third(), accesses)
			if from >= accesses {
				got[in[want]]++
				for at := range accesses {
					expected[at] += 1 / float64(accesses)
				}
				continue
			}
			uses := 0
			for _, at := range in[:want] {
				if at >= 0 {
					uses++
				}
			}
			if uses != min(want, to-from) {
				t.Fatalf("%d uses of accesses %d to %d", uses, from, to)
			}
			for _, at := range in[:want] {
				if at >= 0 {
					got[at] += 1 / float64(uses)
				}
			}
			for at := from; at < to; at++ {
				expected[at] += 1 / float64(to-from)
			}
		}
		for at := range got {
			if d := got[at] - expected[at]; d*d > 25*expected[at] {
				t.Errorf("%d accesses: number %d is a use %.0f times of %d, want %.0f", accesses, at, got[at], trials, expected[at])
			}
		}
	}
}
