package coverage

import (
	"context"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/trace"
)

// made is a stream of the lines that f gives.
func made(t *testing.T, n int, f func(i int) (addr, pc uint64)) *Stream {
	t.Helper()
	m := newMaker(n)
	for i := 0; m.room(); i++ {
		addr, pc := f(i)
		m.add(&model.Access{Addr: addr, PC: pc, Size: 8})
	}
	s, err := m.stream(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A stream knows its exact ratios, what follows each touch, and when each begins.
func TestStream(t *testing.T) {
	// Three times within 20000 lines, from the second cache on, for each walk in one of 100, in the first.
	s := made(t, 80000, func(i int) (addr, pc uint64) {
		if i%4 == 0 {
			return uint64(i/4) * lineBytes, 0x400000
		}
		return 1<<30 + uint64(i%100)*lineBytes, 0x500000
	})
	want := [len(Sizes)]float64{0.25, 0.25, 0}
	if s.Exact != want {
		t.Errorf("miss ratios %v, want %v", s.Exact, want)
	}
	if got := s.after(4) - 4; got != 80000 {
		t.Errorf("the next touch of a line of the walk comes after %d, want a lap", got)
	}
	if got := s.after(79999) - 79999; got != 100 {
		t.Errorf("the next touch of a near line comes after %d, want 100", got)
	}
	c := &s.clocks[ByTime]
	for _, p := range []int{0, 1, 511, 512, 79999, 80000, 200001} {
		if got := c.find(c.at(p) - 0.01); got != p {
			t.Errorf("touch %d begins at %v, just before which %d comes next", p, c.at(p), got)
		}
	}
	if got := c.at(80001) - c.at(1); math.Abs(got-c.lap) > 1e-6*c.lap {
		t.Errorf("a lap takes %v, want %v", got, c.lap)
	}
}

// What a hold reads is what the stream has.
func TestWindow(t *testing.T) {
	s := made(t, 60000, func(i int) (addr, pc uint64) {
		if i%3 == 0 {
			return uint64(i/3) * lineBytes, 1
		}
		return 1<<30 + uint64(i%3)*lineBytes, 1
	})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		w := s.read(rng.IntN(60000), countedClassified, countedMost, rng)
		near := 0
		for _, o := range w.octaves {
			if near += o.n; o.n > 0 && (o.after != 3 || o.distinct != 3) {
				t.Fatalf("a reuse after %d touches of %d lines, want 3 of 3", o.after, o.distinct)
			}
		}
		if w.length < 10 {
			continue // ended early
		}
		if near+len(w.opens) != w.first || len(w.opens) < w.first/3 || len(w.opens) > w.first/3+3 || w.chosen < w.from {
			t.Fatalf("%+v", w)
		}
		if want := (w.from+w.length-w.chosen)/3 + 2; w.distinct < want || w.distinct > want+1 {
			t.Fatalf("%d lines from %d on, want %d: %+v", w.distinct, w.chosen, want, w)
		}
	}
}

// In a program that touches many lines for a while and then few for a while, as many lines come between a use and its reuse as in
// the former, and the conversion takes the mean of both: that is in the bands.
func TestCoverageOfPhases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := rand.New(rand.NewPCG(3, 3))
	s := made(t, 4_000_000, func(i int) (addr, pc uint64) {
		if i%400_000 < 130_000 {
			return uint64(i%100) * lineBytes, 1
		}
		return 1<<30 + rng.Uint64N(20_000)*lineBytes, 2
	})
	bandsHold(t, s, Setting{Clock: ByAccesses, Holds: 6000}, 6, 5, 0.6)
}

// bandsHold wants such a share of the sessions' bands, least, to hold the exact ratio, and gives what they told.
func bandsHold(t *testing.T, s *Stream, c Setting, sessions int, seed uint64, least float64) [len(Sizes)]Tally {
	t.Helper()
	tallies, err := s.Run(c, sessions, runtime.GOMAXPROCS(0), seed)
	if err != nil {
		t.Fatal(err)
	}
	for k := range tallies {
		x := &tallies[k]
		t.Logf("%s, %v, %d KiB: %v", s.Name, c, Sizes[k]>>10, x)
		if x.Held() < least {
			t.Errorf("%s, %v, %d KiB: bands hold the exact ratio in %.0f %% of the sessions", s.Name, c, Sizes[k]>>10, 100*x.Held())
		}
	}
	return tallies
}

// All far reuses of a matrix multiply are by one distance, that of a matrix, which is a little larger than the second cache: whether they
// miss hangs on errors of a tenth.
func TestCoverageOfOneDistance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const n = 384
	s := made(t, 3_000_000, func(touch int) (addr, pc uint64) {
		i, j, k := touch/2/n/n%n, touch/2/n%n, touch/2%n
		if touch%2 == 0 {
			return 1<<30 + uint64(i*n+k)*8, 1
		}
		return 1<<31 + uint64(k*n+j)*8, 2
	})
	const sessions, leastHeld = 400, 0.915 // of 400 that hold in 95 of 100, 366 or more do but in one case of 100
	bandsHold(t, s, Setting{Clock: ByAccesses, Holds: 300}, sessions, 5, leastHeld)
}

// A program computes in a few lines, some of which are seldom touched, and copies 2 MiB now and then: a tenth of its time it waits in
// the copy, which makes a hundredth of its accesses. What is open where it computes is touched again soon, so that the copy's holds
// would stand for too many accesses if all that is open waited alike.
func TestCoverageOfCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const copied, computed = 65_536, 6_500_000  // touches, two of each line, and between copies
	const often, seldom, period = 20, 30, 900   // lines, and touches of the first between two of the others
	waiting := func(part float64) (pc uint64) { // code that waits for such a part of the time
		for kindOf(pc).alone() != part {
			pc += 512
		}
		return pc
	}
	code := [2]uint64{waiting(0.5), waiting(0.75)} // as the model takes it to do, on average
	s := made(t, copied+computed, func(i int) (addr, pc uint64) {
		line, pc := 1<<20+i*i/7%often, code[i%2]
		switch {
		case i < copied:
			line, pc = 1<<30+i/2, code[i/2%2]
		case i%period == 0:
			line = 1<<25 + i/period%seldom
		}
		return uint64(line) * lineBytes, pc
	})
	const sessions, leastHeld = 40, 0.8
	for k, x := range bandsHold(t, s, Setting{Clock: ByTime, Holds: 150}, sessions, 9, leastHeld) {
		if x.Exact > 0 && math.Abs(x.Bias()) > 0.3 {
			t.Errorf("%d KiB: told %+.0f %% off on average, want 30 %% at most", Sizes[k]>>10, 100*x.Bias())
		}
	}
}

// Needs valgrind, the engine (make engine) and gcc. What users get holds the truth in simulated sessions of recorded kernels; the
// long form is make coverage.
func TestCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	engine := needs.Engine(t, "../..")
	binary := filepath.Join(t.TempDir(), "kernels")
	if out, err := exec.Command("gcc", "-O1", "-g", "-o", binary, "../accuracy/kernels/kernels.c").CombinedOutput(); err != nil {
		t.Skipf("gcc can't build the kernels: %v: %s", err, out)
	}
	const sessions, leastHeld = 40, 0.8 // of 40 that hold in 95 of 100, 32 or more do but in one case of 10,000
	for _, name := range []string{"chains", "sort"} {
		s, err := Record(context.Background(), Recording{Name: name, Skip: 6_000_000, Length: 2_500_000,
			Command: trace.Command{Args: []string{binary, name, "1000000"}}, Options: trace.Options{Engine: engine}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []Setting{{Clock: ByAccesses, Holds: 150}, {Clock: ByTime, Holds: 150}} {
			for k, x := range bandsHold(t, s, c, sessions, 7, leastHeld) {
				if x.Exact > 0.02 && x.Quoted < sessions/2 {
					t.Errorf("%s, %v, %d KiB: %.3g %% is quoted in %d of %d sessions", name, c, Sizes[k]>>10, 100*x.Exact, x.Quoted, sessions)
				}
			}
		}
	}
}
