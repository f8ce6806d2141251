// Needs: nothing, but TestCopyingInAccount, and TestWatchTurns: root, bpf, watchpoint, gcc.
package collector

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// The union of spans is what a walk through all moments finds.
func TestUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var spans []span
		var in [40]bool
		const from, to = 8, 32
		for range r.IntN(6) {
			s := span{from: time.Duration(r.IntN(40)), to: time.Duration(r.IntN(40))}
			spans = append(spans, s)
			for i := s.from; i < s.to; i++ {
				in[i] = true
			}
		}
		want := time.Duration(0)
		for _, v := range in[from:to] {
			if v {
				want++
			}
		}
		if got := union(spans, from, to); got != want {
			t.Fatalf("%v: %d, want %d", spans, got, want)
		}
	}
}

const ms = time.Millisecond

// fakeCopying has a byte cost 0.5 ns more beside a watched word, and takes what process 7 has copied from bytes.
func fakeCopying(bytes *uint64) copyCost {
	return copyCost{perByte: .5, of: make(map[*target.Process]*copies), copied: func(pid int) (uint64, error) {
		if pid != 7 {
			return 0, fs.ErrNotExist
		}
		return *bytes, nil
	}}
}

// Of what a process copied that share costs more of whose time words were watched: in any of its threads where they are in all, else by the
// CPU time of the threads that they were in. It is charged once.
func TestSettleCopying(t *testing.T) {
	watching := func(cpu uint64, spans ...span) *thread { return &thread{cpu: cpu, spans: spans} }
	open := func(cpu uint64, since, silent time.Duration) *thread {
		th := &thread{cpu: cpu}
		th.slots[2] = watch{point: new(sampler.Watchpoint), since: since, silent: silent}
		return th
	}
	for _, c := range []struct {
		name    string
		group   bool
		threads []*thread
		share   float64
	}{
		{"none", false, nil, 0},
		{"never watched", false, []*thread{watching(100)}, 0},
		{"one, two words at a time", false, []*thread{watching(100, span{110 * ms, 120 * ms}, span{115 * ms, 140 * ms})}, .3},
		{"one, begun before, still open", false, []*thread{open(100, 50*ms, 0)}, 1},
		{"one, that has taken its last trap", false, []*thread{open(100, 50*ms, 125*ms)}, .25},
		{"one at work, one that waits", false, []*thread{watching(math.MaxInt32, span{100 * ms, 150 * ms}), open(0, 100*ms, 0)}, .5},
		{"in all threads", true, []*thread{watching(100, span{110 * ms, 120 * ms}), open(0, 190*ms, 0)}, .2},
	} {
		t.Run(c.name, func(t *testing.T) {
			bytes := uint64(5000)
			cp := fakeCopying(&bytes)
			p := &target.Process{PID: 7, Ran: 4e6}
			cp.of[p] = &copies{seen: 100 * ms, read: 100 * ms, bytes: 1000}
			for _, th := range c.threads {
				if th.process = p; c.group {
					th.group = new(group)
				}
			}
			const now = 200 * ms
			for range 2 { // the second at the same moment, with nothing new
				for _, th := range c.threads {
					cp.noteWatched(th, now)
				}
				cp.settle(p, now, false)
			}
			near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want)+1e-9 }
			if !near(cp.watched, c.share*4e6) || cp.cpu != 4e6 || !near(cp.bytes, c.share*4000) || !near(cp.cost, c.share*2000) {
				t.Errorf("watched %v of %v ns, %v bytes, cost %v ns; want a share of %v of 4e6 ns and of 4000 bytes", cp.watched, cp.cpu, cp.bytes, cp.cost, c.share)
			}
			// From here on nothing is watched, and nothing charged.
			bytes += 1e9
			p.Ran += 1e6
			for _, th := range c.threads {
				th.slots[2].point = nil
			}
			before := cp.cost
			cp.settle(p, now+100*ms, false)
			if cp.cost != before || cp.cpu != 5e6 {
				t.Errorf("without a watched word %v ns were charged, of %v ns", cp.cost-before, cp.cpu)
			}
		})
	}
}

// Of a process that has ended with words watched it is counted that it is not known what it copied; one whose counts can't be read
// else is said.
func TestSettleUnread(t *testing.T) {
	bytes := uint64(0)
	cp := fakeCopying(&bytes)
	with := func(pid int, k copies) *target.Process {
		p := &target.Process{PID: pid}
		cp.of[p] = &k
		return p
	}
	watched := func(pid int) *target.Process { return with(pid, copies{spans: []span{{1 * ms, 2 * ms}}}) }
	cp.settle(watched(8), 10*ms, false) // has not been reaped yet
	cp.settle(with(8, copies{}), 10*ms, true)
	if cp.unread != 0 || cp.failed != nil {
		t.Errorf("%d unread, %v", cp.unread, cp.failed)
	}
	cp.settle(watched(8), 10*ms, true)
	if cp.unread != 1 || cp.failed != nil {
		t.Errorf("%d unread, %v", cp.unread, cp.failed)
	}
	cp.copied = func(int) (uint64, error) { return 0, errors.New("no io accounting") }
	cp.settle(watched(7), 10*ms, false)
	if said := strings.Join(cp.comments(), "\n"); !strings.Contains(said, "no io accounting") {
		t.Error(said)
	}
}

// What watched words cost copying is in the account, and holds get what it leaves, at least two thirds; without it all.
func TestBudgetWithCopying(t *testing.T) {
	for _, c := range []struct{ copied, holds float64 }{{0, .03}, {.005, .025}, {.01, .02}, {.5, .02}} {
		b := newBudget(.03, sampler.TwoTrap{P50: 3000}, sampler.Nanoseconds)
		var cpu uint64
		var stats sampler.Stats
		var held time.Duration
		var due float64
		for range 600 { // a minute
			cpu += uint64(tickInterval)
			ticks := float64(tickInterval) / float64(defaultPeriod)
			stats.Ticks += uint64(ticks)
			due += ticks * b.accepted()
			n := uint64(due)
			due -= float64(n)
			stats.Holds += n
			held += time.Duration(n) * 200 * time.Microsecond
			b.copied = c.copied * float64(cpu)
			b.update(cpu, stats, held, b.trapped(2*stats.Holds, 0))
		}
		holds := b.spent - c.copied
		if math.Abs(b.copiedShare-c.copied) > 1e-9 || holds > 1.25*c.holds || holds < .6*c.holds {
			t.Errorf("copying slowed by %.4f: spent %.4f, of which for holds %.4f, want %.4f", c.copied, b.spent, holds, c.holds)
		}
	}
}

// Whatever copying costs while words are watched, and though each would be watched for ever, it comes to its share of the budget and
// not far beyond, at any time; and words are watched then for as long as that pays for. Where it costs less, all the time.
func TestWatchTurnsKeepShare(t *testing.T) {
	const budget = .01
	for _, slow := range []float64{0, .001, .0033, .005, .02, .1, .5} { // CPU time while words are watched
		cp := copyCost{perByte: .5}
		cpu, step := 0.0, float64(2*lookEvery) // two threads
		for range 20_000 {
			cpu += step
			cp.cpu += step
			if !cp.paused {
				cp.watched += step
				cp.cost += slow * step
			}
			cp.turn(budget, uint64(cpu))
			if over := -cp.allowed(budget, uint64(cpu)); over > slow*step {
				t.Fatalf("slowed by %v: after %v ns %v ns too much, more than %v", slow, cpu, over, slow*step)
			}
		}
		want := 1.0
		if slow > copyingShare*budget {
			want = copyingShare * budget / slow
		}
		if got := cp.watched / cp.cpu; got < .9*want-step/cpu || got > 1.1*want {
			t.Errorf("slowed by %v: watched for %.4f of the time, want %.4f", slow, got, want)
		}
		if limits := cp.limits(budget); limits != (slow > copyingShare*budget) {
			t.Errorf("slowed by %v: limited %v", slow, limits)
		}
	}
}

// The profile says how long words were watched, and what that cost, or that it costs nothing, or is not known.
func TestCopyingComments(t *testing.T) {
	watched := copyCost{cpu: 4e9, watched: 1e9, bytes: 3e7, cost: 15e6, pauses: 2}
	for _, c := range []struct {
		perByte float64
		unknown error
		want    []string
	}{
		{.5, nil, []string{"copying slowed by watched words: 0.38%", "watched for 25.0%", "30.0 MB", "0.50 ns a byte", "2 times"}},
		{0, nil, []string{"watched for 25.0%", "does not slow copying"}},
		{0, sampler.ErrNoSlot, []string{"watched for 25.0%", "not known", sampler.ErrNoSlot.Error()}},
	} {
		watched.perByte, watched.unknown = c.perByte, c.unknown
		said := strings.Join(watched.comments(), "\n")
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%v ns, %v: %q is not in %q", c.perByte, c.unknown, want, said)
			}
		}
	}
}

// Half a line that was touched is watched on until its pair of words is.
func TestWaitsForPair(t *testing.T) {
	for _, c := range []struct {
		name   string
		halves bool
		o      *observation
		waits  bool
	}{
		{"a word, over", false, &observation{Observation: record.Observation{State: record.Done}}, false},
		{"nothing", true, nil, false},
		{"half a line, not touched", true, &observation{Observation: record.Observation{State: record.Used, Half: true}}, false},
		{"half a line, its pair not touched", true, &observation{Observation: record.Observation{State: record.Done, Half: true}}, true},
		{"half a line, its pair touched", true, &observation{Observation: record.Observation{State: record.Done, Half: true, PairEnded: true}}, false},
		{"half a line, lost", true, &observation{Observation: record.Observation{State: record.Void, Half: true}}, false},
	} {
		s := (&sampling{watches: watches{halves: c.halves}}).wire()
		if got := s.watches.waitsForPair(c.o); got != c.waits {
			t.Errorf("%s: waits for its pair: %v", c.name, got)
		}
	}
}

// reader reads a file again and again, which the kernel copies, and goes through memory whose words are used again later than is read ahead.
const reader = `
#include <fcntl.h>
#include <unistd.h>
static char buf[64 << 10];
static volatile long memory[1 << 15];
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY);
	for (;;) {
		if (fd < 0 || pread(fd, buf, sizeof(buf), 0) != sizeof(buf))
			return 1;
		for (int i = 0; i < 1 << 15; i++)
			memory[i]++;
	}
}
`

// readerSession has a session on such a program, that takes a byte copied beside a watched word to cost so much. seen is
// called on the tracing thread every now and then, until it says that it has seen enough.
func readerSession(t *testing.T, perByte float64, cfg Config, seen func(s *sampling) (enough bool)) (*sampling, *model.Profile) {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	source, bin, input := filepath.Join(dir, "reader.c"), filepath.Join(dir, "reader"), filepath.Join(dir, "input")
	for name, what := range map[string]string{source: reader, input: strings.Repeat("r", 64<<10)} {
		if err := os.WriteFile(name, []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("gcc", "-O2", "-o", bin, source).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	cmd := exec.Command(bin, input)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var session *Session
	enough := false
	cfg.PID, cfg.Source, cfg.Clock, cfg.Seed = cmd.Process.Pid, Clock, CPUTime, 1
	cfg.copyCost = func() (float64, error) { return perByte, nil }
	cfg.Progress = func(Progress) {
		s := session.sampling
		s.tracing.tracer.Do(func() { enough = enough || seen(s) })
		if enough {
			cancel()
		}
	}
	var err error
	if session, err = Start(cfg); err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	p, err := session.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !enough {
		t.Fatalf("not seen in a minute: %+v", session.sampling.watches.copyCost)
	}
	return session.sampling, p
}

// stillOpen is how many words are still watched after a look that have been touched again and have nothing to show any more.
func stillOpen(s *sampling) (n int) {
	s.traps.drain()
	s.watches.clearEnded()
	for _, th := range s.targets.threads {
		for i := range th.slots {
			w := &th.slots[i]
			if w.point == nil || w.obs == nil || w.helper || w.obs.State != record.Done || s.watches.waitsForPair(w.obs) {
				continue
			}
			n++
		}
	}
	return n
}

// A program that only reads has what that costs more beside watched words in the account, which is what it read of the time that words
// were watched, and nothing where a watched word makes no difference.
func TestCopyingInAccount(t *testing.T) {
	needs.Watchpoints(t)
	for _, stack := range []string{OwnStack, BothStacks} {
		t.Run(stack, func(t *testing.T) {
			const perByte = 1e-6 // so little that it is never too much
			var copied uint64
			stale := 0
			s, p := readerSession(t, perByte, Config{Overhead: .3, Stack: stack}, func(s *sampling) bool {
				for pid := range s.targets.processes.Alive {
					if n, err := sampler.Copied(pid); err == nil {
						copied = n
					}
				}
				stale += stillOpen(s)
				return s.watches.copyCost.bytes > 1e6 && s.watches.copyCost.cost > 0 && s.kept.pairs >= 20
			})
			c := &s.watches.copyCost
			if c.bytes > 2*float64(copied) || math.Abs(c.cost-perByte*c.bytes) > 1e-6*c.cost || c.watched > c.cpu || c.failed != nil {
				t.Errorf("%v bytes of %d, which cost %v ns, in %v of %v ns: %v", c.bytes, copied, c.cost, c.watched, c.cpu, c.failed)
			}
			if stale > 0 {
				t.Errorf("%d times a word was still watched that had nothing to show any more", stale)
			}
			if s.ticks.budget.copied <= 0 || s.ticks.budget.copied > c.cost {
				t.Errorf("%v ns of %v are in the account", s.ticks.budget.copied, c.cost)
			}
			if n := countOf(p, model.CPUWatched); n == 0 || n > countOf(p, model.CPUTarget) {
				t.Errorf("words watched for %d of %d ns", n, countOf(p, model.CPUTarget))
			}
		})
	}
	t.Run("no difference", func(t *testing.T) {
		s, p := readerSession(t, 0, Config{Overhead: .3}, func(s *sampling) bool { return s.watches.copyCost.watched > 0 })
		if s.watches.copyCost.cost != 0 || s.watches.copyCost.passed != 0 || s.watches.copyCost.givenUp != 0 {
			t.Errorf("%+v", s.watches.copyCost)
		}
		if countOf(p, model.CPUWatched) == 0 {
			t.Error("no words watched")
		}
	})
}

// Where copying would cost many times its share, words are watched by turns: none is in a pause, some are after it, and what
// is given up is cut off, and counted.
func TestWatchTurns(t *testing.T) {
	needs.Watchpoints(t)
	for _, stack := range []string{OwnStack, BothStacks} {
		t.Run(stack, func(t *testing.T) {
			wrong, inPause := 0, 0.0
			s, p := readerSession(t, 2, Config{Overhead: .3, Stack: stack}, func(s *sampling) bool {
				open := 0
				for _, th := range s.targets.threads {
					for _, w := range th.slots {
						if w.point != nil {
							open++
						}
					}
				}
				if open != s.watches.copyCost.points || s.watches.copyCost.paused && open > 0 {
					wrong++
				}
				if s.watches.copyCost.paused && inPause == 0 { // the first that is met
					inPause = s.watches.copyCost.watched
				}
				return s.watches.copyCost.passed > 0 && s.watches.copyCost.watched > inPause && inPause > 0
			})
			if wrong > 0 {
				t.Errorf("%d times a word was watched in a pause, or not counted", wrong)
			}
			if s.watches.copyCost.points != 0 {
				t.Errorf("%d watchpoints are open in the end", s.watches.copyCost.points)
			}
			if countOf(p, model.WatchesPassed) == 0 {
				t.Error("no sample was not watched")
			}
			censored := int64(0)
			for _, r := range p.Records {
				if r.Kind == model.Censored {
					censored += r.Observations
				}
			}
			if n := countOf(p, model.WatchesGivenUp); n > censored {
				t.Errorf("%d given up, %d cut off", n, censored)
			}
		})
	}
}

func countOf(p *model.Profile, name model.CountName) (n int64) {
	for _, c := range p.Counts {
		if c.Name == name {
			n += c.N
		}
	}
	return n
}
