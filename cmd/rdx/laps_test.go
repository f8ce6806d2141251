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

// A third of the accesses go round through 640 KiB: they miss half of that and hit three times as much. A round takes some times as
// long after a hold as it does else, on a virtual machine: what lines cost there is told by laps of the words that each round counts
// in. As all is by one distance, bands say how well that is known.
func TestRoundsAfterHold(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	p := start(t, compile(t, "rounds"))
	if p.line() != "ready" {
		t.Fatal("not ready")
	}
	const sessions = 3 // beside other work one may have few holds
	for range sessions {
		profile := attach(t, p.pid, "-d", "10s", "--overhead", "10").profile()
		c := &profile.Clock
		curve, err := profile.MissRatios([]uint64{320 << 10 / 64, 2 << 20 / 64}, model.CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		half, thrice := curve.Points[0], curve.Points[1]
		t.Logf("lines cost %.3g ns within %.3g; misses %.3f [%.3f, %.3f] and %.3f [%.3f, %.3f]; %.3g accesses per ns [%.3g, %.3g]", c.ColdNS, c.ColdWithin,
			half.MissRatio, half.Low, half.High, thrice.MissRatio, thrice.Low, thrice.High, c.Rate, c.RateLow, c.RateHigh)
		if half.Low > 1./3 || half.High < 1./3 {
			t.Errorf("at 320 KiB %.3f [%.3f, %.3f] miss, want 0.333", half.MissRatio, half.Low, half.High)
		}
		if thrice.Low > 0.01 {
			t.Errorf("at 2 MiB %.3f [%.3f, %.3f] miss, want 0", thrice.MissRatio, thrice.Low, thrice.High)
		}
		if slices.ContainsFunc(profile.Comments, func(said string) bool { return strings.Contains(said, "laps that were timed behind holds") }) {
			return
		}
	}
	t.Errorf("in %d sessions no laps tell what lines cost", sessions)
}
