// Needs: root, bpf, watchpoint, gcc. Threads that run at once, whose distances in one stack are known by construction.
package main_test

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// What another thread brings between a use and a reuse that were read ahead is what that thread
// touches, and not as much as the first one does.
func TestSharedDistances(t *testing.T) {
	needRoot(t)
	bin := compile(t, "cycles", "-O1", "-g", "-fno-omit-frame-pointer")
	const far, near, fewest = 700, 4, 100
	p := rdx(t, "run", "-q", "--stack", "shared", "--overhead", "30", "--", bin, "3").profile()
	for _, c := range []struct {
		function         string
		cycle            uint64
		nearest, longest uint64 // distances: none runs beside it, and one all the time
	}{
		{"far_walk", far, far - 1, far - 1 + near},
		{"near_walk", near, near - 1, near - 1 + near},
	} {
		n, wrong, time := 0, 0, 0.0
		for i := range p.Records {
			r := &p.Records[i]
			if r.Kind != model.Reuse || !r.Exact || len(r.Use) == 0 || len(r.Use[0].Lines) == 0 || r.Use[0].Lines[0].Function != c.function {
				continue
			}
			n++
			time += float64(r.Time) / float64(c.cycle)
			if d := r.Distinct - 1; d < c.nearest || d > c.longest {
				if wrong++; wrong < 5 {
					t.Logf("%s: %d blocks within %d touches", c.function, d, r.Time)
				}
			}
			if r.Time < c.cycle || r.Time > 2*c.cycle+c.cycle/10 {
				t.Errorf("%s: a cycle of %d touches took %d, with one other thread", c.function, c.cycle, r.Time)
			}
		}
		t.Logf("%s: %d reuses, of %.2f cycles of both threads each; %d with another distance than %d to %d", c.function, n, time/float64(n), wrong, c.nearest, c.longest)
		// Laps begin and end in between: those have a call's words, too.
		if n < fewest || wrong > n/20 {
			t.Errorf("%s: of %d reuses, %d or more wanted, %d are of another distance than %d to %d", c.function, n, fewest, wrong, c.nearest, c.longest)
		}
	}
}
