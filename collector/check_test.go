package collector

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Where other threads fight for the data of some code, the observations that
// were watched stand for those that were not; elsewhere all count.
func TestCheckWeights(t *testing.T) {
	p, e := &process{}, &epoch{cpu: 100, accepted: 100}
	s := &Session{}
	var all []*observation
	add := func(n int, pc uint64, checked bool, other int) {
		for range n {
			o := &observation{process: p, epoch: e, state: done, kind: model.Reuse, stack: model.StackPrivate, pc: pc, soon: 9, checked: checked, endTID: other}
			if other != 0 {
				o.kind = model.Invalidated
			}
			all = append(all, o)
		}
	}
	add(30, 1, false, 0) // of data that threads fight for
	add(6, 1, true, 7)
	add(4, 1, true, 0)
	add(40, 2, false, 0) // of a thread's own
	add(5, 2, true, 0)
	s.seen = append(all, &observation{process: p, epoch: e, state: done, stack: model.StackPrivate, pc: 1}) // reused later
	c := s.checkWeights()
	weight, invalidated := map[uint64]float64{}, 0.0
	for _, o := range all {
		w := c.of(o)
		weight[o.pc] += w
		if o.kind == model.Invalidated {
			invalidated += w
		}
	}
	if math.Abs(weight[1]-40) > 1e-9 || math.Abs(weight[2]-45) > 1e-9 || c.dropped != 30 {
		t.Errorf("weights %v, %d left out; want 40, 45 and 30", weight, c.dropped)
	}
	if math.Abs(invalidated-24) > 1e-9 {
		t.Errorf("%v invalidated, want six tenths of 40", invalidated)
	}
	if w := c.of(s.seen[len(s.seen)-1]); w != 1 {
		t.Errorf("weight %v of one that was not read ahead", w)
	}
}

// What its thread or memory outlived is known to have no reuse; of half a line, and of
// what has ended, nothing changes.
func TestOutlived(t *testing.T) {
	for _, c := range []struct {
		o    observation
		want model.Kind
	}{
		{observation{state: done, kind: model.Censored}, model.Cold},
		{observation{state: done, kind: model.Censored, half: true}, model.Censored},
		{observation{state: done, kind: model.Reuse}, model.Reuse},
		{observation{state: done, kind: model.Pruned}, model.Pruned},
		{observation{state: void, kind: model.Censored}, model.Censored},
	} {
		s := &Session{}
		if s.outlived(&c.o); c.o.kind != c.want || (s.never == 1) != (c.want == model.Cold) {
			t.Errorf("%v, %d counted; want %v", c.o.kind, s.never, c.want)
		}
	}
}

// A shared stack's clock goes as fast as threads run at the moment.
func TestTogether(t *testing.T) {
	p := &process{}
	if n := p.together(5e9); n != 1 {
		t.Errorf("%v threads before anything is known, want 1", n)
	}
	p.cpu = []cpuPoint{{0, 0}, {100e6, 50e6}, {200e6, 250e6}}
	for at, want := range map[float64]float64{50e6: 1, 150e6: 2} {
		if n := p.together(at); math.Abs(n-want) > 1e-9 {
			t.Errorf("%v threads at %v, want %v", n, at, want)
		}
	}
}
