// Needs: root, bpf, watchpoint, gcc. Reuses that take some microseconds.
package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// A hold leaves caches cold for longer than such a reuse takes. Whatever the stack, half of them
// are timed right within a factor of two all the same: first reuses take 2.5 to 4 times as long on a virtual
// machine.
func TestReusesAfterHold(t *testing.T) {
	needRoot(t)
	bin := compile(t, "laps", "-O1")
	const fewest, perNS = 60, 4 // accesses assumed: what is read ahead is less than a lap
	for stack, others := range map[string][]string{
		"own":     nil,
		"private": nil,
		"shared":  {"idle"}, // or its time would be in between
	} {
		t.Run(stack, func(t *testing.T) {
			var laps []float64 // that reuses took
			for end := time.Now().Add(deadline); len(laps) < fewest; {
				args := []string{"run", "-q", "--stack", stack, "--granularity", "word", "--access-rate", fmt.Sprint(perNS), "--overhead", "20", "--", bin, "2"}
				s := rdx(t, append(args, others...)...)
				p := s.profile()
				var tid [2]int
				var lap [2]float64 // the threads' pages decide how fast their caches are
				if line := s.line(); len(strings.Fields(line)) != 4 {
					t.Fatalf("laps said %q", line)
				} else if _, err := fmt.Sscan(line, &tid[0], &lap[0], &tid[1], &lap[1]); err != nil {
					t.Fatalf("laps said %q: %v", line, err)
				}
				for i := range p.Records {
					r := &p.Records[i]
					thread := slices.Index(tid[:], r.TID)
					if r.Kind != model.Reuse || r.Exact || thread < 0 {
						continue
					}
					for range r.Observations {
						laps = append(laps, float64(r.Time)/perNS/lap[thread])
					}
				}
				if time.Now().After(end) {
					t.Fatalf("%d timed reuses in %v: %v", len(laps), deadline, p.Counts)
				}
			}
			slices.Sort(laps)
			n := len(laps)
			t.Logf("%d timed reuses of one lap take %.2f at p25, %.2f at the median, %.2f at p75", n, laps[n/4], laps[n/2], laps[3*n/4])
			if got := laps[n/2]; got < 0.5 || got > 2 {
				t.Errorf("reuses of one lap take %.2f at the median, want 0.5 to 2", got)
			}
		})
	}
}
