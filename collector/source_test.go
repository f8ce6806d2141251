//go:build amd64

// Needs: root, bpf, watchpoint, gcc.
package collector

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// walking reads its words in turn, and writes another word every fourth round. It
// says where the words are, and at the end how long a round took. With FAULTS it has so
// many page faults a round, until it is sent a byte.
const walking = `#ifndef STRIDE
#define STRIDE 1
#endif
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/mman.h>
enum { words = 1000000 };
static volatile long word[words * STRIDE], other;
#ifdef FAULTS
static volatile char page[FAULTS][4096] __attribute__((aligned(4096)));
#endif
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}
__attribute__((noinline)) static void walk(void)
{
	for (int i = 0; i < words; i++)
		word[i * STRIDE];
}
int main(void)
{
	char end;
	long n = 0, got;
	printf("%lx %lx\n", (long)&word[777 * STRIDE], (long)&other);
	fflush(stdout);
	int ceased = 0;
	fcntl(0, F_SETFL, O_NONBLOCK);
	double start = now();
	do {
		for (int i = 0; i < 4; i++, n++) {
			walk();
#ifdef FAULTS
			madvise((void *)page, sizeof(page), MADV_DONTNEED);
			for (int k = 0; k < FAULTS && !ceased; k++)
				page[k][0] = 1;
#endif
		}
		other = n;
		got = read(0, &end, 1);
		ceased |= got == 1;
	} while (got != 0);
	printf("%f\n", (now() - start) / n);
	return 0;
}
`

type walker struct {
	cmd          *exec.Cmd
	word, other  uint64
	stdin        io.Writer
	out          *bufio.Reader
	end          func()
	roundNS      float64
	sessionStart moment
	ran, counted time.Duration // of the program's CPU time at the last look: all, and what counts
}

// moment is a point in time, by the wall and by the program's CPU time.
type moment struct {
	wall time.Time
	cpu  time.Duration
}

// now is looked at whenever the session reports its progress, several times a second. If more than half a second has passed
// in between, this process could not run, and the session neither: no more than that counts.
func (w *walker) now(t *testing.T) moment {
	ran := processTime(t, w.cmd.Process.Pid)
	w.counted += min(ran-w.ran, 500*time.Millisecond)
	w.ran = ran
	return moment{time.Now(), w.counted}
}

// within says how long ago it was, which must be a second of the program's time
// at most: of the wall's, if the program has a CPU for itself.
func (m moment) within(t *testing.T, w *walker) time.Duration {
	t.Helper()
	if m == (moment{}) {
		t.Fatal("it never failed")
	}
	now := w.now(t)
	if cpu := now.cpu - m.cpu; cpu > time.Second {
		t.Errorf("found out after %v of the program's time", cpu)
	}
	return now.wall.Sub(m.wall).Round(time.Millisecond)
}

func startWalker(t *testing.T, flags ...string) *walker {
	t.Helper()
	needRoot(t)
	bin := filepath.Join(t.TempDir(), "walking")
	cc := exec.Command("gcc", append(flags, "-O1", "-fno-omit-frame-pointer", "-o", bin, "-x", "c", "-")...)
	cc.Stdin = strings.NewReader(walking)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	w := &walker{cmd: exec.Command(bin)}
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.stdin, w.out = stdin, bufio.NewReader(stdout)
	if _, err := fmt.Fscanf(w.out, "%x %x\n", &w.word, &w.other); err != nil {
		t.Fatal(err)
	}
	w.end = sync.OnceFunc(func() {
		stdin.Close()
		fmt.Fscanf(w.out, "%f\n", &w.roundNS)
		w.cmd.Wait()
	})
	t.Cleanup(w.end)
	return w
}

// profile runs a session on the program, whose duration is of the program's CPU time:
// what it sees is as much where others want the CPU, too.
func (w *walker) profile(t *testing.T, cfg Config) (*model.Profile, error) {
	t.Helper()
	cfg.PID = w.cmd.Process.Pid
	cfg.Overhead, cfg.Seed = .1, 1
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lasts, progress := cfg.Duration, cfg.Progress
	cfg.Duration = time.Minute
	cfg.Progress = func(p Progress) {
		if w.now(t).cpu-w.sessionStart.cpu >= lasts {
			cancel()
		}
		if progress != nil {
			progress(p)
		}
	}
	w.sessionStart = w.now(t)
	s, err := Start(cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	w.sessionStart = w.now(t)
	return s.Wait(ctx)
}

func watchedWord(addr uint64) sampler.Precise {
	attr := sampler.PreciseAttr(sampler.Event{Type: unix.PERF_TYPE_BREAKPOINT, Config1: addr, Config2: 8})
	attr.Bp_type = 3 // reads and writes
	return sampler.Precise{Label: "a watched word", Attr: attr, Align: 1, After: true}
}

var taskClock = sampler.Counted{Unit: sampler.Cycles, Events: []sampler.Event{{Label: "task-clock", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK}}}

// Events that sample a word by its own accesses stand in for PEBS and IBS: from
// the address in the sample to the reuse in the profile nothing else differs.
// Two of them sample two words of different reuse times, one read, one written.
func TestReportedAccesses(t *testing.T) {
	needs.Watchpoints(t)
	counter := sampler.CounterClock(taskClock)
	for _, clock := range []sampler.Clock{sampler.CPUTime(), counter} {
		t.Run(clock.Name, func(t *testing.T) {
			w := startWalker(t)
			source := sampler.AccessSourceOf("watched words", sampler.Accesses, 2, 2, []sampler.Precise{watchedWord(w.word), watchedWord(w.other)})
			p, err := w.profile(t, Config{source: source, period: 8, clock: &clock, Slots: 2, Burst: AutoBurst, Duration: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			w.end()
			type tally struct{ right, all int64 }
			var reads, writes tally
			var differ int64
			// The compiler has made one instruction of each.
			count := make(map[uint64]int64)
			for _, r := range p.Records {
				count[r.Use[0].Address] += r.Observations
			}
			for _, r := range p.Records {
				if r.Kind != model.Reuse {
					continue
				}
				sum, want := &writes, 4*w.roundNS
				if count[r.Use[0].Address] == slices.Max(slices.Collect(maps.Values(count))) {
					sum, want = &reads, w.roundNS
				}
				sum.all += r.Observations
				// A factor of two either way: on a busy machine the walk itself is
				// now fast, now slow.
				if math.Abs(math.Log2(float64(r.Native)/want)) <= 1 {
					sum.right += r.Observations
				}
				// The calls of walk may be several: the frames outside of main's
				// and the leaf are the same.
				if len(r.Use) < 3 || len(r.Use) != len(r.Reuse) || r.Use[0].Address != r.Reuse[0].Address || r.Use[2].Address != r.Reuse[2].Address && len(r.Use) > 3 {
					differ += r.Observations
					t.Logf("use %s, reuse %s", stackString(r.Use), stackString(r.Reuse))
				}
			}
			t.Logf("round of %.0f ns; reads %+v, writes %+v of %v; %+v", w.roundNS, reads, writes, count, p.Counts)
			// The first stacks may be cut short: where they end is not known yet.
			if all := reads.all + writes.all; float64(differ) > .1*float64(all) {
				t.Errorf("the stacks of use and reuse differ in %d of %d", differ, all)
			}
			if len(count) != 2 {
				t.Errorf("%d instructions", len(count))
			}
			for _, sum := range []tally{reads, writes} {
				if sum.all < 10 || float64(sum.right) < .9*float64(sum.all) {
					t.Errorf("%d of %d reuses in the right place", sum.right, sum.all)
				}
			}
			// Nothing is read ahead of an access that is over.
			if p.Block != estimate.WordBytes || p.CountOf(model.NoSlot) > 0 {
				t.Errorf("blocks of %d bytes; %v", p.Block, p.Counts)
			}
			if p.Source != "watched words" {
				t.Errorf("source %q", p.Source)
			}
		})
	}
}

func stackString(stack []*model.Location) string {
	s := ""
	for _, l := range stack {
		s += fmt.Sprintf(" %#x", l.Address)
	}
	return s
}

// Lines that can be watched whole take one slot each. Of a program that uses one
// word of each line a watchpoint on that word stands in for one on its line; how
// the line is watched is all that differs. Where there are no such watchpoints
// lines are watched by halves, and the profile says why.
func TestWholeLines(t *testing.T) {
	needs.Watchpoints(t)
	for _, whole := range []bool{true, false} {
		t.Run(fmt.Sprint(whole), func(t *testing.T) {
			w := startWalker(t, "-DSTRIDE=8")
			cfg := Config{Source: Clock, Clock: CPUTime, Granularity: Line, Slots: sampler.NumSlots, Burst: AutoBurst, Duration: 2 * time.Second}
			says := "lines: watched by halves, because: the processor or its hypervisor offers no range breakpoints"
			if whole {
				says = "lines: watched whole"
				cfg.armLine = (*sampler.Kernel).Arm
			}
			p, err := w.profile(t, cfg)
			if err != nil {
				t.Fatal(err)
			}
			w.end()
			if !whole && strings.Contains(strings.Join(p.Comments, "\n"), "lines: watched whole") {
				t.Skip("needs a processor without range breakpoints")
			}
			var right, all, halves int64
			for _, r := range p.Records {
				if r.Half {
					halves += r.Observations
				}
				if r.Kind != model.Reuse {
					continue
				}
				all += r.Observations
				if math.Abs(math.Log2(float64(r.Native)/w.roundNS)) <= 1 {
					right += r.Observations
				}
			}
			t.Logf("%d of %d reuses right, %d halves; %v", right, all, halves, p.Counts)
			if all < 10 || float64(right) < .9*float64(all) {
				t.Errorf("%d of %d reuses in the right place", right, all)
			}
			if p.Block != estimate.LineBytes || (halves == 0) != whole {
				t.Errorf("blocks of %d bytes, %d halves", p.Block, halves)
			}
			if !strings.Contains(strings.Join(p.Comments, "\n"), says) {
				t.Errorf("no %q in %q", says, p.Comments)
			}
		})
	}
}

// The time sampled is the time that the program ran, whatever periods were set
// meanwhile.
func TestTimeSampled(t *testing.T) {
	const lasts = 3 * time.Second
	w := startWalker(t)
	before := processTime(t, w.cmd.Process.Pid)
	p, err := w.profile(t, Config{Source: Clock, Clock: CPUTime, Burst: AutoBurst, Duration: lasts})
	if err != nil {
		t.Fatal(err)
	}
	ran := processTime(t, w.cmd.Process.Pid) - before
	for _, c := range p.Counts {
		if c.Name != model.CPUSampled {
			continue
		}
		t.Logf("%v sampled, in a session of %v; the program ran for %v", time.Duration(c.N), lasts, ran)
		// A tick in the kernel is none. To attach and to detach takes time, too: longer where others want the CPU.
		if sampled := float64(c.N); sampled < .7*float64(lasts) || sampled > 1.05*float64(ran) {
			t.Errorf("%v of the CPU time were sampled", time.Duration(c.N))
		}
		return
	}
	t.Error("no time sampled")
}

// processTime is the CPU time of a process.
func processTime(t *testing.T, pid int) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// Sources that fail, or were never any good, each found out within a second of
// the target's CPU time.

// refusing can't be opened.
type refusing struct {
	sampler.Source
	err error
}

func (r refusing) Open(*sampler.Kernel, int, uint64) (*sampler.Ticker, error) {
	return nil, fmt.Errorf("sample thread: %w", r.err)
}

// stalling stops when told to.
type stalling struct {
	sampler.Source
	tickers *[]*sampler.Ticker
}

func (s stalling) Open(k *sampler.Kernel, tid int, period uint64) (*sampler.Ticker, error) {
	t, err := s.Source.Open(k, tid, period)
	*s.tickers = append(*s.tickers, t)
	return t, err
}

// silent counts and does not interrupt, as a source that is throttled all the
// time.
type silent struct{ sampler.Source }

func (s silent) Open(k *sampler.Kernel, tid int, _ uint64) (*sampler.Ticker, error) {
	return s.Source.Open(k, tid, 1<<50)
}

// failing profiles the program by a source that was asked for, and expects the
// session to end by an error that says so, within a second.
func failing(t *testing.T, w *walker, cfg Config, since func() moment, says ...string) error {
	t.Helper()
	cfg.Duration = 20 * time.Second
	_, err := w.profile(t, cfg)
	t.Logf("after %v: %v", since().within(t, w), err)
	for _, want := range says {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("asked for, it fails with %v, want %q", err, want)
		}
	}
	return err
}

// What stands still because others have its counter, and what is throttled:
// found out and named with the remedy, in a running session.
func TestSourceStarves(t *testing.T) {
	needs.Watchpoints(t)
	timer := sampler.Precise{Label: "timer", Align: 1, Attr: sampler.PreciseAttr(sampler.Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK})}
	// Of twenty groups that should take turns there is one, which has a counter
	// a twentieth of the time, then.
	starved := sampler.AccessSourceOf("timer", sampler.Accesses, 20, 20_000, []sampler.Precise{timer})
	for _, tc := range []struct {
		name   string
		source sampler.Source
		period time.Duration
		says   []string
	}{
		// One that has its counter so seldom ticks seldom.
		{"others have the counter", starved, 20 * defaultPeriod, []string{"others have its counter", "/proc/sys/kernel/nmi_watchdog", "CPUs are offline"}},
		{"throttled", silent{sampler.NewPMUSource(taskClock)}, defaultPeriod, []string{"does not interrupt", "/proc/sys/kernel/perf_event_max_sample_rate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := startWalker(t)
			failing(t, w, Config{source: tc.source, Clock: CPUTime, Source: PMU, period: float64(tc.period)}, func() moment { return w.sessionStart }, tc.says...)
		})
	}
}

// pageFaults is a clock of programs that fault, and stands still when they cease to.
var pageFaults = sampler.Counted{Unit: sampler.Cycles, Events: []sampler.Event{{Label: "page-faults", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS}}}

// faultsARound of the walking program.
const faultsARound = 64

// fewestTimed reuses of walked words tell whether a clock that fails leaves wrong ones.
const fewestTimed = 10

// timedPairs is how many reuses were timed so far.
func timedPairs(s *sampling) (n int) {
	s.tracing.tracer.Do(func() {
		for _, o := range s.kept.seen {
			if o.State == record.Done && o.Kind == model.Reuse && o.Counted == 0 {
				n++
			}
		}
	})
	return n
}

// A clock whose counters are gone, or can be read and stand still from some moment on, as
// those that a hypervisor fakes, ends the session, whether the source goes on or stops, too.
// None of the times by it is kept.
func TestClockFails(t *testing.T) {
	needs.Watchpoints(t)
	for _, tc := range []struct {
		name      string
		zero, all bool
		says      []string
	}{
		{"taken away", false, false, []string{"can't be read any more", "/proc/sys/kernel/nmi_watchdog"}},
		{"turns to zero", true, false, []string{"counts nothing any more", "--clock cpu-time"}},
		{"turns to zero, and so does the source", true, true, []string{"counts nothing any more", "--clock cpu-time"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := startWalker(t, fmt.Sprintf("-DFAULTS=%d", faultsARound))
			clock := sampler.CounterClock(pageFaults)
			var tickers []*sampler.Ticker
			var source sampler.Source = sampler.CPUClock{}
			if tc.all {
				source = stalling{sampler.NewPMUSource(taskClock), &tickers}
			}
			var session *Session
			var taken moment
			ask := func(p Progress) {
				s := session.sampling
				now := w.now(t)
				if taken != (moment{}) || p.Elapsed < time.Second || timedPairs(s) < 3*fewestTimed {
					return
				}
				taken = now
				if tc.zero {
					if _, err := w.stdin.Write([]byte{1}); err != nil {
						t.Error(err)
					}
				}
				s.tracing.tracer.Do(func() {
					for _, ticker := range tickers {
						if err := ticker.Stop(); err != nil {
							t.Error(err)
						}
					}
					for _, th := range s.targets.threads {
						if !tc.zero {
							if err := th.counter.Close(); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			var err error
			session, err = Start(Config{PID: w.cmd.Process.Pid, Overhead: .1, Seed: 1, source: source, clock: &clock, Burst: AutoBurst, Duration: time.Minute, Progress: ask})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			p, err := session.Wait(context.Background())
			t.Logf("after %v: %v", taken.within(t, w), err)
			for _, want := range tc.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			w.end()
			// By a clock that stands still all reuses are immediate.
			var short, all int64
			for _, r := range p.Records {
				// Its own frame the program touches more than once a round.
				walked := r.Data == nil || r.Data.Kind != model.DataStack
				if r.Kind == model.Reuse && !r.Exact && walked {
					all += r.Observations
					if r.Native < faultsARound/2 {
						short += r.Observations
					}
				}
			}
			t.Logf("%d of %d timed reuses are short; %v", short, all, p.Counts)
			if all < fewestTimed || short > 0 {
				t.Errorf("%d of %d timed reuses are short", short, all)
			}
		})
	}
}

func TestSourceFails(t *testing.T) {
	needs.Watchpoints(t)
	software := func(label string, config uint64) sampler.Counted {
		return sampler.Counted{Unit: sampler.Accesses, Events: []sampler.Event{{Label: label, Type: unix.PERF_TYPE_SOFTWARE, Config: config}}}
	}
	timer := sampler.Precise{Label: "timer", Align: 1, Attr: sampler.PreciseAttr(sampler.Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK})}
	var tickers []*sampler.Ticker
	for _, tc := range []struct {
		name   string
		source sampler.Source
		says   string
		stall  bool
	}{
		{"counts nothing", sampler.NewPMUSource(software("dummy", unix.PERF_COUNT_SW_DUMMY)), "counts nothing", false},
		{"busy", refusing{sampler.NewPMUSource(software("busy", 0)), unix.EBUSY}, "busy", false},
		{"no addresses", sampler.AccessSourceOf("timer", sampler.Accesses, 1, 20_000, []sampler.Precise{timer}), "has an address", false},
		{"turns to zero", stalling{sampler.NewPMUSource(software("task-clock", unix.PERF_COUNT_SW_TASK_CLOCK)), &tickers}, "counts nothing", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := startWalker(t)
			tickers = nil
			stalled := moment{}
			progress := func(p Progress) {
				if tc.stall && stalled == (moment{}) && p.Elapsed > 500*time.Millisecond {
					stalled = w.now(t)
					for _, ticker := range tickers {
						if err := ticker.Stop(); err != nil {
							t.Error(err)
						}
					}
				}
			}
			cfg := Config{source: tc.source, Clock: CPUTime, Source: PMU, Progress: progress}
			err := failing(t, w, cfg, func() moment {
				if tc.stall {
					return stalled
				}
				return w.sessionStart
			}, tc.says)
			if tc.name == "busy" && !errors.Is(err, unix.EBUSY) {
				t.Error("the reason is not in the error")
			}

			// Not asked for, the clock takes over and the profile says so.
			tickers, stalled = nil, moment{}
			cfg.Source, cfg.Duration = Auto, 3*time.Second
			p, err := w.profile(t, cfg)
			if err != nil {
				t.Fatal(err)
			}
			w.end()
			var all, right, lost int64
			for _, r := range p.Records {
				if r.Kind == model.Reuse {
					all += r.Observations
					if math.Abs(math.Log2(float64(r.Native)/w.roundNS)) <= 1 {
						right += r.Observations
					}
				}
			}
			for _, c := range p.Counts {
				if model.LostBecause.Has(c.Name) {
					lost += c.N
				}
			}
			t.Logf("%d of %d reuses right, %d lost; source %s; %v", right, all, lost, p.Source, p.Comments[:2])
			if all < 10 || float64(right) < .8*float64(all) {
				t.Errorf("%d of %d reuses in the right place", right, all)
			}
			if want := tc.source.Name() + ", then cpu-clock"; p.Source != want || !strings.Contains(strings.Join(p.Comments, "\n"), tc.says) {
				t.Errorf("source %q, want %q; comments %q", p.Source, want, p.Comments)
			}
			// What the samples stand for is the time sampled, by either source.
			var weight, cpu float64
			for _, r := range p.Records {
				weight += r.Accesses
			}
			for _, c := range p.Counts {
				if c.Name == model.CPUSampled {
					cpu = float64(c.N)
				}
			}
			if ratio := weight / (cpu * p.Clock.Rate); ratio < .7 || ratio > 1.1 {
				t.Errorf("samples stand for %.2f of the time sampled", ratio)
			}
		})
	}
}

func TestClockHealth(t *testing.T) {
	h := clockHealth{}
	for i, step := range []struct {
		now  clockHealth
		dead bool
	}{
		{clockHealth{0, fewestReadings - 1}, false},
		{clockHealth{1, fewestReadings}, false}, // one was read meanwhile
		{clockHealth{1, 2*fewestReadings - 1}, false},
		{clockHealth{2, 3 * fewestReadings}, false},
		{clockHealth{2, 3 * fewestReadings}, false},
		{clockHealth{2, 4 * fewestReadings}, true},
	} {
		if dead := h.dead(step.now); dead != step.dead {
			t.Errorf("step %d: dead is %v", i, dead)
		}
	}
}

// A clock that no running thread can read, or that stands still in all of them, is given
// up after some ticks, whatever the clocks of sleeping threads: theirs is taken when they
// wake up.
func TestClockTaken(t *testing.T) {
	const (
		goes = iota
		fails
		stands
		falls // to zero
	)
	for _, tc := range []struct {
		name       string
		busy, idle int
		idles      bool
		says       string
	}{
		{"all well", goes, goes, false, ""},
		{"a sleeping thread still has it", fails, goes, true, "can't be read"},
		{"another that runs still has it", fails, goes, false, ""},
		{"nobody has it", fails, fails, false, "can't be read"},
		{"taken while it sleeps", goes, fails, true, ""},
		{"stands still", stands, stands, false, "counts nothing any more"},
		{"stands still beside a sleeping thread", stands, goes, true, "counts nothing any more"},
		{"stands still in one of two", stands, goes, false, ""},
		{"falls to zero", falls, falls, false, "counts nothing any more"},
	} {
		busy, idle := &thread{tid: 1, shared: new(sampler.Thread)}, &thread{tid: 2, shared: new(sampler.Thread)}
		clock := sampler.CounterClock(taskClock)
		s := (&sampling{timing: timing{clock: clock}, targets: targets{threads: map[int]*thread{1: busy, 2: idle}}, account: account{losses: make(map[model.CountName]int64)}}).wire()
		does := map[*thread]int{}
		now := uint64(1000)
		read := func(th *thread) (uint64, error) {
			now++
			switch does[th] {
			case fails:
				return 0, sampler.ErrNotRunning
			case stands:
				return th.clockAt, nil
			case falls:
				return 0, nil
			}
			return now, nil
		}
		tick := func(idles bool) error {
			busy.shared.Ticks++
			if !idles {
				idle.shared.Ticks++
			}
			return s.timing.fails(read)
		}
		if err := tick(false); err != nil { // all goes well at first
			t.Fatal(err)
		}
		before := float64(sampler.Monotonic())
		// Timed before, timed after, read ahead after, another thread's.
		seen := []*record.Observation{
			{TID: 1, State: record.Done, Sharing: record.Sharing{End: before - 1}}, {TID: 1, State: record.Done, Sharing: record.Sharing{End: math.MaxFloat64}},
			{TID: 1, State: record.Done, Sharing: record.Sharing{End: math.MaxFloat64}, Counted: 5}, {TID: 3, State: record.Done, Sharing: record.Sharing{End: math.MaxFloat64}},
		}
		s.kept.seen = seen
		busy.wentOn = time.Duration(before)
		does[busy], does[idle] = tc.busy, tc.idle
		var err error
		rounds := 0
		for ; err == nil && rounds < fewestReadings; rounds++ {
			err = tick(tc.idles)
		}
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v after %d ticks, want %q", tc.name, err, rounds, tc.says)
		}
		stood := tc.busy == stands || tc.busy == falls
		for i, lost := range []bool{false, stood, false, false} {
			if (seen[i].State == record.Void) != lost {
				t.Errorf("%s: observation %d lost: %v, want %v", tc.name, i, !lost, lost)
			}
		}
	}
}

// What is judged from numbers alone.
func TestJudgeSource(t *testing.T) {
	pmu := sampler.NewPMUSource(accesses)
	before := health{ran: 1e9, lag: 1e8, counted: 5e8, sampled: 5e8, ticks: 500}
	fine := health{ran: 2e9, lag: 1e8, counted: 1e9, sampled: 1e9, ticks: 1000}
	for _, tc := range []struct {
		name  string
		alter func(h *health)
		says  string
	}{
		{"fine", func(h *health) {}, ""},
		{"less lag than before, as read", func(h *health) { h.lag = 0 }, ""},
		{"half of the time", func(h *health) { h.lag += 5e8 }, ""},
		{"taken by others", func(h *health) { h.lag += 99e7; h.counted, h.sampled, h.ticks = 5e8, 5e8, 500 }, "nmi_watchdog"},
		{"stands still", func(h *health) { h.counted, h.sampled, h.ticks = 5e8, 5e8, 500 }, "counts nothing"},
		{"zero", func(h *health) { h.counted, h.sampled, h.ticks = 0, 5e8, 500 }, "counts nothing"},
		{"throttled", func(h *health) { h.sampled, h.ticks = 5.1e8, 510 }, "perf_event_max_sample_rate"},
		{"throttled, of short periods", func(h *health) { h.sampled, h.ticks, h.throttles = 5.1e8, 630, 130 }, ""},
		{"throttled for good", func(h *health) { h.sampled, h.ticks, h.throttles = 5.1e8, 510, 10 }, "perf_event_max_sample_rate"},
		{"short periods, not throttled", func(h *health) { h.sampled, h.ticks = 5.1e8, 630 }, "perf_event_max_sample_rate"},
		{"a third throttled", func(h *health) { h.sampled, h.ticks = 8.3e8, 830 }, ""},
		{"periods changed", func(h *health) { h.sampled, h.cut, h.ticks = 5e8, 3e8, 500 }, ""},
		{"too few to say", func(h *health) { h.counted, h.sampled, h.ticks = 5.1e8, 5e8, 500 }, ""},
	} {
		now := fine
		tc.alter(&now)
		err := before.stands(now, pmu)
		if err == nil {
			err = before.silent(now, pmu, 1e6)
		}
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
	// Of PEBS each tick is of an access, of IBS one in six.
	pebs := sampler.AccessSourceOf("pebs", sampler.Accesses, 2, 1, nil)
	ibs := sampler.AccessSourceOf("ibs", sampler.Operations, 1, 1, nil)
	for _, tc := range []struct {
		name   string
		source sampler.Source
		now    addressed
		bad    bool
	}{
		{"addresses", pebs, addressed{600, 600}, false},
		{"none", pebs, addressed{520, 500}, true},
		{"none, too few to say", pebs, addressed{519, 500}, false},
		{"few", pebs, addressed{520, 501}, false},
		{"none of many operations", ibs, addressed{600, 500}, true},
		{"none of some operations", ibs, addressed{599, 500}, false},
		{"none is wanted", pmu, addressed{9999, 500}, false},
	} {
		if err := (addressed{500, 500}).judge(tc.now, tc.source); (err != nil) != tc.bad {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// However long the periods, a source that counts and does not interrupt, or reports no
// addresses, is found out within a second of the time that threads run; and one that
// does what it should is not.
func TestSilentAtLongPeriods(t *testing.T) {
	pmu, pebs := sampler.NewPMUSource(accesses), sampler.AccessSourceOf("pebs", sampler.Accesses, 2, 1, nil)
	for _, tc := range []struct {
		name   string
		source sampler.Source
		period time.Duration
		ticks  bool
		says   string
	}{
		{"none, short periods", pmu, minPeriod, false, "perf_event_max_sample_rate"},
		{"none, long periods", pmu, maxPeriod, false, "perf_event_max_sample_rate"},
		{"all, short periods", pmu, minPeriod, true, ""},
		{"all, long periods", pmu, maxPeriod, true, ""},
		{"no addresses, long periods", pebs, maxPeriod, true, "--source pmu"},
	} {
		s := (&sampling{cfg: Config{Source: PMU}, src: sourceState{source: tc.source}, ticks: tickPace{meanPeriod: float64(tc.period)}, targets: targets{processes: target.NewSet()}}).wire()
		s.targets.processes.Add(os.Getpid())
		sum, stats := estimate.Totals{CPU: 5e9, Counted: 5e9, Ticked: 5e9}, sampler.Stats{}
		var ran time.Duration
		for ; s.account.err == nil && ran < 5*time.Second; ran += tickInterval {
			s.src.watch(sum, stats)
			s.src.health.at = s.src.health.at.Add(-tickInterval)
			s.src.health.user -= tickInterval // all of it was in user mode
			sum.CPU += uint64(tickInterval)
			sum.Counted += float64(tickInterval)
			if tc.ticks {
				stats.Ticks = uint64((sum.Counted - 5e9) / s.ticks.meanPeriod)
				sum.Ticked = 5e9 + float64(stats.Ticks)*s.ticks.meanPeriod
			}
			if tc.source.Reports() != sampler.NoAccess {
				stats.NoAddress = stats.Ticks
			}
		}
		if (s.account.err == nil) != (tc.says == "") || s.account.err != nil && (!strings.Contains(s.account.err.Error(), tc.says) || ran > time.Second) {
			t.Errorf("%s: after %v: %v, want %q", tc.name, ran, s.account.err, tc.says)
		}
	}
}

// A source whose counter others have is found out within a second of the time
// that threads run, also if none of it is known to be in user mode; that it counts
// nothing is no sign of a fault then.
func TestStarvedInKernel(t *testing.T) {
	for _, tc := range []struct {
		name string
		lag  float64 // share of the time that others have the counter
		says string
	}{{"taken", .95, "nmi_watchdog"}, {"half taken", .5, ""}, {"in the kernel all the time", 0, ""}} {
		s := (&sampling{cfg: Config{Source: PMU}, src: sourceState{source: sampler.NewPMUSource(accesses)}, ticks: tickPace{meanPeriod: 1e6}, targets: targets{processes: target.NewSet()}}).wire()
		sum := estimate.Totals{CPU: 5e9, Counted: 3e9, Ticked: 3e9} // so far all was well
		const step = uint64(healthInterval)
		var ran time.Duration
		for s.account.err == nil && ran < 5*time.Second {
			s.src.watch(sum, sampler.Stats{})
			s.src.health.at = s.src.health.at.Add(-healthInterval)
			sum.CPU += step
			sum.Shared += uint64(tc.lag * float64(step))
			ran += healthInterval
		}
		if (s.account.err == nil) != (tc.says == "") || s.account.err != nil && (!strings.Contains(s.account.err.Error(), tc.says) || ran > time.Second) {
			t.Errorf("%s: after %v: %v, want %q", tc.name, ran, s.account.err, tc.says)
		}
	}
}
