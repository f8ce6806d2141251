package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
)

// A program that touches its 1000 blocks one after the other, each twice: n touches overlap n/2 blocks. Where a block costs 3 ns
// more after a hold and a touch takes 1, n touches take n + 1.5 n, up to the 1000.
func TestColdCaches(t *testing.T) {
	p := &model.Profile{Block: 64, Clock: model.Clock{Unit: "nanoseconds", Rate: 1}, BinsPerOctave: 32}
	p.Records = append(p.Records,
		model.Record{Kind: model.Reuse, Timing: model.Timing{Time: 1}, Weight: model.Weight{Accesses: 1000, Observations: 1000}},
		model.Record{Kind: model.Reuse, Timing: model.Timing{Time: 1999}, Weight: model.Weight{Accesses: 1000, Observations: 1000}})
	fp, err := p.Footprint()
	if err != nil {
		t.Fatal(err)
	}
	c := &coldCaches{lineCost: lineCost{each: 3}, most: math.Inf(1), footfall: fp, modes: &modes{}}
	for _, want := range []float64{100, 1000} {
		if got := c.warm(2.5*want, 2.5*want); math.Abs(got-want) > 0.04*want {
			t.Errorf("%.0f ns: %.0f touches, want %.0f", 2.5*want, got, want)
		}
	}
	// Long reuses are as good as not changed: all blocks are fetched once.
	if got := c.warm(1e6, 1e6); math.Abs(got-(1e6-3000)) > 0.01e6 {
		t.Errorf("1 ms: %.0f touches", got)
	}
	// What the second cache has no room for was not near before.
	c.most = 100
	for _, want := range []float64{100, 1000} {
		ns := want + min(1.5*want, 300)
		if got := c.warm(ns, ns); math.Abs(got-want) > 0.04*want {
			t.Errorf("%.0f ns with a cache of 100 blocks: %.0f touches, want %.0f", ns, got, want)
		}
	}
	// Of a program that is in the kernel for three quarters of its time, the kernel comes by as many lines in as much time.
	c.most, c.modes = math.Inf(1), &modes{user: 0.25}
	if got := c.warm(7*100, 7*100); math.Abs(got-100) > 4 {
		t.Errorf("with the kernel: %.0f touches, want 100", got)
	}
	if got := (*coldCaches)(nil).warm(10, 20); got != 20 {
		t.Errorf("without: %v", got)
	}
}

// What can have no reuse any more has no time.
func TestColdHasNoTime(t *testing.T) {
	var r model.Record
	s := NewStage(Input{})
	s.SetTime(&r, &record.Observation{State: record.Done, Kind: model.Cold, Native: 1000, Counted: 3}, PerWall{})
	if r.Time != 0 || r.Native != 0 || r.Exact {
		t.Errorf("%+v", r.Timing)
	}
}
