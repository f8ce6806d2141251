// Needs: root, bpf, watchpoint, gcc. A program whose accesses differ in how long they take.
package main_test

import (
	"math"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// A timer finds slow accesses; those that are looked at lie so far behind that it makes no
// difference. Of the next 255 accesses far's would be 6 %.
func TestTicksFindSlowCode(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	bin := compile(t, "uneven", "-O1", "-g")
	// Holds: if eight uses of each are independent, 0.025 is seven standard deviations of so many. Beside other work
	// there are fewer; of the fewest, as many deviations still leave out the 6 %.
	const enough, fewest = 1000, 400
	const want = 31.0 / (31 + 271) // its own accesses, and each function's return
	far, all, holds := 0.0, 0.0, 0
	for end := time.Now().Add(samplesWithin); holds < enough; {
		p := rdx(t, "run", "-q", "--granularity", "word", "--overhead", "30", "--", bin, "2").profile()
		holds += countOf(p, model.Holds)
		for i := range p.Records {
			r := &p.Records[i]
			if r.Kind.OfLine() {
				continue // tells of no access's outcome
			}
			if len(r.Use) == 0 || len(r.Use[0].Lines) == 0 {
				continue
			}
			switch r.Use[0].Lines[0].Function {
			case "far":
				far += r.Accesses
				all += r.Accesses
			case "near":
				all += r.Accesses
			} // what main does at its start faults at each page, of which nothing is known
		}
		if time.Now().Before(end) {
			continue
		}
		if holds < fewest {
			t.Fatalf("%d holds in %v: %v", holds, samplesWithin, p.Counts)
		}
		break
	}
	margin := .025 * math.Sqrt(max(1, float64(enough)/float64(holds)))
	t.Logf("%.3f of far's and near's accesses are far's, by construction %.3f (%d holds)", far/all, want, holds)
	if math.Abs(far/all-want) > margin {
		t.Errorf("%.3f of far's and near's accesses are far's, want %.3f within %.3f", far/all, want, margin)
	}
}
