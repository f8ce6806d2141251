package model

import "testing"

// A program is half of its time in code that makes an access in a nanosecond, and half in code in which each tenth
// waits. The band holds the true miss ratio whether it waits for no time, for the third cache or for memory.
func TestBandOfWaits(t *testing.T) {
	const assumed = 12
	for _, wait := range []float64{0, 3, 30, 80, 250} {
		p := &Profile{Block: 64, Clock: Clock{Unit: "nanoseconds", Rate: 1, RateSource: "flag", PlainNS: 1, WaitNS: assumed}}
		for h := range 400 {
			r := Record{Kind: Reuse, Cluster: Cluster{Hold: uint64(h + 1)}, Weight: Weight{Observations: 1, Accesses: 1000}, Timing: Timing{Exact: true, Time: 4}, Lookahead: Lookahead{Distinct: 3}}
			if h%2 == 0 {
				r.Open = .1
				r.Accesses = 1000 / (1 + .1*assumed) * .9
				far := r
				far.Exact, far.Distinct, far.Time, far.After, far.Native, far.Accesses = false, 0, 40_000_000, 2000, 40_000_000, r.Accesses/9
				p.Records = append(p.Records, far)
			}
			p.Records = append(p.Records, r)
		}
		waits := 1 / (1 + .1*wait) // accesses in a moment of it
		truth := .1 * waits / (1 + waits)
		got, err := p.MissRatios([]uint64{512 * 64}, CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if q := got.Points[0]; !(q.Low <= truth && truth <= q.High) || q.High-q.Low > .06 {
			t.Errorf("waits %v ns: %.3g [%.3g, %.3g], exactly %.3g", wait, q.MissRatio, q.Low, q.High, truth)
		}
	}
	// Of a profile that says nothing of waits nothing follows from them.
	x := bander{p: &Profile{}, base: []float64{.25}}
	if got, err := x.waits(80); err != nil || got[0] != .25 {
		t.Errorf("a profile without waits: %v, %v", got, err)
	}
}
