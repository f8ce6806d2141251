package pipeline

import (
	"math"
	"math/rand/v2"
	"testing"
)

// conflicts are a machine's whose first cache has 8 lines at a place in a page, the second 256.
func conflicts() Costs {
	c := costs
	c.Conflicts.Rooms = [2]int{8, 256}
	for d := 1; d < Degrees; d++ {
		c.Conflicts.Loads[d] = [2]float64{0.5 * float64(d), 1.5 * float64(d)}
		c.Conflicts.Stores[d] = [2]float64{2 * float64(d), 3 * float64(d)}
	}
	return c
}

// Lines so many bytes apart, once and again: whether they compete, and what an access takes, in ns.
func TestConflicts(t *testing.T) {
	c := conflicts()
	for _, test := range []struct {
		name         string
		step, lines  int
		store        bool
		degree       int
		second, last float64 // if all come from the second cache, the third
		again        float64 // what a second lap takes
	}{
		{"a page", 4096, 400, false, 4, 2, 6, 6},
		{"a page, few enough for the second cache", 4096, 200, false, 4, 2, 6, 2},
		{"a page, few enough for the first", 4096, 8, false, 4, 2, 6, 0},
		{"half a page", 2048, 400, false, 3, 1.5, 4.5, 1.5},
		{"an eighth", 512, 600, false, 1, 0.5, 1.5, 0.5},
		{"a page, stored", 4096, 400, true, 4, 8, 12, 12.0 * (400 - storeRoom) / 400}, // the last ones wait beside what follows
		{"pages and a line", 4096 + 64, 400, false, 0, 3.0 / fills, 11.0 / fills, 0},
	} {
		in := load
		if test.store {
			in = storeRCX
		}
		of := func(laps int) Times {
			path, code := loop(laps*test.lines, in, jump)
			accesses := accessesOf(laps*test.lines, 2, func(lap int) (uint64, bool) { return uint64(lap % test.lines * test.step), false })
			for i := range accesses {
				accesses[i].Store = test.store
			}
			return New(c).Foretell(path, accesses, code.at)
		}
		once, twice := of(1), of(2)
		if test.degree > 0 && once.Crowded[test.degree] != test.lines || test.degree == 0 && once.Crowded != [Degrees]int{} {
			t.Errorf("%s: of %d lines %v compete", test.name, test.lines, once.Crowded)
		}
		if twice.Cold != once.Cold || twice.Crowded != once.Crowded {
			t.Errorf("%s: with a second lap %d lines, %v of which compete", test.name, twice.Cold, twice.Crowded)
		}
		n := float64(test.lines)
		for level, want := range []float64{test.second, test.last} {
			if got := (once.Near + once.Far[level][1]) / n; math.Abs(got-want) > 0.2*want+0.1 {
				t.Errorf("%s: level %d takes %.2f ns each, want %.2f", test.name, level+1, got, want)
			}
		}
		if got := (twice.Near - once.Near) / n; math.Abs(got-test.again) > 0.1*test.again+0.3 {
			t.Errorf("%s: again %.2f ns each, want %.2f", test.name, got, test.again)
		}
	}
}

// Lines anywhere don't compete, nor do a few that lie a page apart, nor any where it is not known what that costs.
func TestNoConflicts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	anywhere := func(int) (uint64, bool) { return rng.Uint64N(1<<30) &^ 7, false }
	few := func(lap int) (uint64, bool) { return uint64(lap % 7 * 4096), false }
	page := func(lap int) (uint64, bool) { return uint64(lap * 4096), false }
	for _, test := range []struct {
		name string
		at   func(int) (uint64, bool)
		c    Costs
	}{{"anywhere", anywhere, conflicts()}, {"few", few, conflicts()}, {"not known", page, costs}} {
		for _, laps := range []int{20, 200, 1500} {
			path, code := loop(laps, load, jump)
			took := New(test.c).Foretell(path, accessesOf(laps, 2, test.at), code.at)
			if took.Crowded != [Degrees]int{} || took.Near > float64(laps) {
				t.Errorf("%s: %d accesses: %v compete, near %.0f ns", test.name, laps, took.Crowded, took.Near)
			}
		}
	}
}
