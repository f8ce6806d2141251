package report

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Two sessions of one program, whose rates were told as 1 and 6 accesses a ns: 300 of each thousand accesses are reuses after 20 µs. As the
// rate is known within a factor of four, it is no change that these miss in a cache of 1 MiB in one of them only; were it known, it is.
func TestChangeIsNotTheClock(t *testing.T) {
	at := func(name string) []*model.Location {
		return []*model.Location{{Address: uint64(len(name)), Lines: []model.Line{{Function: name}}}}
	}
	session := func(rate, within float64) *model.Profile {
		p := &model.Profile{Block: 64, BinsPerOctave: 16, Caches: []model.Cache{{Level: "L1d", Size: 1 << 20}},
			Clock: model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: rate, RateLow: rate / within, RateHigh: rate * within, RateSource: "estimated"}}
		for hold := range 400 {
			r := model.Record{Kind: model.Reuse, Use: at("f"), Ending: model.Ending{Reuse: at("ff")},
				Weight: model.Weight{Accesses: 1000, Observations: 1}, Cluster: model.Cluster{Hold: uint64(hold + 1)}}
			if hold%10 < 3 {
				r.Timing, r.After = model.Timing{Native: 20_000, Time: uint64(20_000 * rate)}, 1000
			} else {
				r.Timing = model.Timing{Time: 2, Exact: true}
			}
			p.Records = append(p.Records, r)
		}
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for within, want := range map[float64]bool{4: false, 1.01: true} {
		d, err := NewDiff(session(1, within), session(6, within), nil, model.CurveOptions{}, "l1d")
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Pairs) != 1 {
			t.Fatalf("%d pairs", len(d.Pairs))
		}
		p := d.Pairs[0]
		if t.Logf("within %v: pair %v, total %v, cache %v", within, p.changedShare, d.Total, d.Caches[0].changedShare); p.Significant != want || d.Total.Significant != want {
			t.Errorf("rate within %v: a change of %v, %v in all; want %v", within, p.changedShare, d.Total, want)
		}
	}
}
