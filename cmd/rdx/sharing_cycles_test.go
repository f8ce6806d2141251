// Needs: root, bpf, watchpoint, gcc. Threads that run at once, whose distances in one stack are known by construction.
package main_test

import (
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// What another thread brings between a use and a reuse that were read ahead is what that thread
// touches, and not as much as the first one does.
func TestSharedDistances(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := compile(t, "cycles", "-O1", "-g", "-fno-omit-frame-pointer")
	const far, near, fewest = 700, 4, 100
	// reads are the function's uses whose reuse was read ahead.
	reads := func(p *model.Profile, function string) (all []*model.Record, n int64) {
		for i := range p.Records {
			r := &p.Records[i]
			if r.Kind == model.Reuse && r.Exact && len(r.Use) > 0 && len(r.Use[0].Lines) > 0 && r.Use[0].Lines[0].Function == function {
				all = append(all, r)
				n += r.Observations
			}
		}
		return all, n
	}
	// A thread with fewer observations is taken to touch what all do: how many there are depends on what
	// else the machine does.
	var p *model.Profile
	for end := time.Now().Add(samplesWithin); ; {
		p = rdx(t, "run", "-q", "--stack", "shared", "--overhead", "30", "--", bin, "3").profile()
		_, a := reads(p, "far_walk")
		_, b := reads(p, "near_walk")
		if min(a, b) >= fewest {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d and %d reuses, and never %d of both in %v: %v", a, b, fewest, samplesWithin, p.Counts)
		}
	}
	for _, c := range []struct {
		function      string
		cycle, others uint64 // words of its own, and of the other's
	}{
		{"far_walk", far, near},
		{"near_walk", near, far},
	} {
		var wrong int64
		var cycles float64
		all, n := reads(p, c.function)
		for _, r := range all {
			cycles += float64(r.Observations) * float64(r.Time) / float64(c.cycle)
			// What is written is the middle of a bin, within a twentieth: Time touches, of which all but
			// the cycle's are the other's, of as many words as it has at most.
			d, nearest, longest := r.Distinct-1, c.cycle-1, min(r.Time-1, c.cycle-1+c.others)
			if wide := d / 20; d+wide < nearest || d > longest+wide || c.others > r.Time && d+wide < longest {
				wrong += r.Observations
				t.Logf("%s: %d blocks within %d touches, %d times", c.function, d, r.Time, r.Observations)
			}
		}
		mean := cycles / float64(n)
		t.Logf("%s: %d reuses, of %.2f cycles by the clock of both threads; %d with a wrong distance", c.function, n, mean, wrong)
		if mean < 0.95 || mean > 2.3 {
			t.Errorf("%s: cycles take %.2f of the thread's own, beside one other", c.function, mean)
		}
		// Laps begin and end in between: those have a call's words, too.
		if wrong > n/20 {
			t.Errorf("%s: of %d reuses %d are of a wrong distance", c.function, n, wrong)
		}
	}
}

// Two threads in cycles of 60 words that both read and 60 of each one's own: in one stack of both no word
// is further away than these 180, and the common ones come again sooner than each thread's own, at the other's visit.
func TestSharedCommonWords(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := compile(t, "common", "-O1", "-g", "-fno-omit-frame-pointer")
	const half, fewest = 60, 200
	for end := time.Now().Add(samplesWithin); ; {
		p := rdx(t, "run", "-q", "--stack", "shared", "--overhead", "30", "--", bin, "3").profile()
		var n int64
		var all, far, cycles float64 // accesses: of code whose words the other was seen to come to first, few observations stand for all
		for i := range p.Records {
			r := &p.Records[i]
			if r.Kind != model.Reuse || !r.Exact || len(r.Use) == 0 || len(r.Use[0].Lines) == 0 || r.Use[0].Lines[0].Function != "walk" {
				continue
			}
			n += r.Observations
			all += r.Accesses
			cycles += r.Accesses * float64(r.Time) / (2 * half)
			// What is written is the middle of a bin, within a twentieth.
			if d := r.Distinct - 1; d-d/20 > 3*half {
				far += r.Accesses
				t.Logf("%d blocks within %d touches, %d times", d, r.Time, r.Observations)
			}
		}
		if n < fewest {
			if time.Now().After(end) {
				t.Fatalf("%d reuses, and never %d in %v: %v", n, fewest, samplesWithin, p.Counts)
			}
			continue
		}
		mean := cycles / all
		t.Logf("%d reuses, of %.2f cycles by the clock of both threads; %.3f of them with a wrong distance", n, mean, far/all)
		// Of the common words they take 1 cycle on average, of others 2, where both threads run.
		if mean < 0.95 || mean > 1.7 {
			t.Errorf("reuses take %.2f cycles, want 1.5", mean)
		}
		if far > all/20 {
			t.Errorf("of the reuses %.3f are further away than there are words", far/all)
		}
		return
	}
}
