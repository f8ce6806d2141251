// Needs: root, bpf, watchpoint, gcc. Reuses that take some microseconds.
package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// A hold leaves caches cold for longer than such a reuse takes, so that on a virtual machine first reuses take up to five
// times as long: whatever the stack, not more than what bands allow for, which is six, and not less than they should. A session measures what two traps take before it begins, and the laps are shorter than that:
// if the machine is slow just then, all of the session's times are too short. So it is the middle one of nine sessions that counts.
func TestReusesAfterHold(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := compile(t, "laps", "-O1")
	const sessions, fewest, perNS = 9, 30, 4 // accesses assumed; what is read ahead is less than a lap
	const half = sessions/2 + 1              // that agree decide where the middle one is, whatever the others say
	for stack, others := range map[string][]string{
		"own":     nil,
		"private": nil,
		"shared":  {"idle"}, // or its time would be in between
	} {
		t.Run(stack, func(t *testing.T) {
			var medians []float64 // of the laps that a session's reuses took
			low, right, high := 0, 0, 0
			seconds := 1
			for end := time.Now().Add(samplesWithin); max(low, right, high) < half && len(medians) < sessions; {
				args := []string{"run", "-q", "--stack", stack, "--granularity", "word", "--access-rate", fmt.Sprint(perNS), "--burst", "2047", "--overhead", "20", "--", bin, fmt.Sprint(seconds)}
				if laps := timedLaps(t, rdx(t, append(args, others...)...), perNS); len(laps) >= fewest {
					slices.Sort(laps)
					m := laps[len(laps)/2]
					medians = append(medians, m)
					switch {
					case m < 0.5:
						low++
					case m > 6:
						high++
					default:
						right++
					}
				} else {
					seconds *= 2 // beside other work it has little CPU time
				}
				if time.Now().After(end) {
					t.Fatalf("%d sessions of %d timed reuses in %v", len(medians), fewest, samplesWithin)
				}
			}
			t.Logf("timed reuses of one lap take, at the median of each session, %.2f", medians)
			if max(low, high) >= half {
				t.Errorf("of %d sessions %d have reuses of one lap take less than 0.5 at the median, and %d more than 6", len(medians), low, high)
			}
		})
	}
}

// timedLaps is how many laps of its thread each reuse took that was timed.
func timedLaps(t *testing.T, s *session, perNS float64) (laps []float64) {
	t.Helper()
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
	return laps
}
