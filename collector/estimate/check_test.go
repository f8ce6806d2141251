package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

// Where other threads fight for the data of some code, the observations that
// were watched stand for those that were not; elsewhere all count.
func TestCheckWeights(t *testing.T) {
	p, e := &target.Process{}, &record.Epoch{CPU: 100, Accepted: 100}
	s := &stage{}
	var all []*record.Observation
	add := func(n int, pc uint64, checked bool, other int) {
		for range n {
			o := &record.Observation{Process: p, Epoch: e, State: record.Done, Kind: model.Reuse, Stack: model.StackPrivate, PC: pc, Soon: 9, Checked: checked, EndTID: other}
			if other != 0 {
				o.Kind = model.Invalidated
			}
			all = append(all, o)
		}
	}
	add(30, 1, false, 0) // of data that threads fight for
	add(6, 1, true, 7)
	add(4, 1, true, 0)
	add(40, 2, false, 0) // of a thread's own
	add(5, 2, true, 0)
	s.Seen = append(all, &record.Observation{Process: p, Epoch: e, State: record.Done, Stack: model.StackPrivate, PC: 1}) // reused later
	c := s.checkWeights()
	weight, invalidated := map[uint64]float64{}, 0.0
	for _, o := range all {
		w := c.of(o)
		weight[o.PC] += w
		if o.Kind == model.Invalidated {
			invalidated += w
		}
	}
	if math.Abs(weight[1]-40) > 1e-9 || math.Abs(weight[2]-45) > 1e-9 || c.dropped != 30 {
		t.Errorf("weights %v, %d left out; want 40, 45 and 30", weight, c.dropped)
	}
	if math.Abs(invalidated-24) > 1e-9 {
		t.Errorf("%v invalidated, want six tenths of 40", invalidated)
	}
	if w := c.of(s.Seen[len(s.Seen)-1]); w != 1 {
		t.Errorf("weight %v of one that was not read ahead", w)
	}
}
