package model

import (
	"math"
	"testing"
)

// Blocks that are fetched again after a hold cost four times what is taken for it. What comes within 400 accesses was timed to more, by
// three of four, so that the holds that read so far and those that do not differ until it is put right.
func TestFitCold(t *testing.T) {
	const rate, near, far = 1.0, 100, 400
	p := &Profile{Block: 64, BinsPerOctave: 32, Clock: Clock{Unit: "nanoseconds", Rate: rate, ColdNS: 1}}
	add := func(hold uint64, r Record) {
		r.Kind, r.Hold, r.Observations, r.Accesses = Reuse, hold, 1, 1
		p.Records = append(p.Records, r)
	}
	for hold := range uint64(400) {
		add(hold+1, Record{Timing: Timing{Time: 10, Native: 10, Exact: true}})
		// Half of what is open comes after 150 to 350 accesses, the rest after 10,000.
		n := 150 + hold/2%200
		if hold%2 == 1 {
			n = 10_000
		}
		if hold%8 == 0 || hold%8 == 5 {
			if n < far {
				add(hold+1, Record{Timing: Timing{Time: n, Native: n, Exact: true}})
			} else {
				add(hold+1, Record{Timing: Timing{Time: n, Native: n}, Lookahead: Lookahead{After: 2 * far}})
			}
			continue
		}
		// A time of n (1 + w) ns, of which 1 + 1/4 w were taken to be without what is fetched again.
		native := 3 * n
		add(hold+1, Record{Timing: Timing{Time: uint64(float64(native) * math.Pow(1./3, .25)), Native: native}, Lookahead: Lookahead{After: near}})
	}
	times, within, err := p.FitCold(near, far)
	if err != nil {
		t.Fatal(err)
	}
	// Any that puts the near ones below 400 and leaves the far ones above would do.
	soon := 0
	for i := range p.Records {
		if r := &p.colder(times).Records[i]; !r.Exact && r.After == near && r.Time <= far {
			soon++
		}
	}
	if soon < 120 || soon > 160 || !(within >= 1) {
		t.Errorf("%.2f times within a factor of %.2f: %d of 150 timed ones come within 400", times, within, soon)
	}
	// Without holds that read farther nothing is found.
	for i := range p.Records {
		if r := &p.Records[i]; r.Exact && r.Time > near || r.After > near {
			r.Kind = Lost
		}
	}
	if times, within, err := p.FitCold(near, far); times != 1 || !math.IsInf(within, 1) || err != nil {
		t.Errorf("of no hold that reads farther: %v within %v, %v", times, within, err)
	}
}
