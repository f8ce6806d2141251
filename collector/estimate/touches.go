package estimate

import (
	"math"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// holdShare is what a hold stands for.
type holdShare struct {
	accesses float64 // of the program's
	ns       float64 // of CPU time; 0 where samples are not drawn by it
}

// holdShares are those of all holds, by number less one.
func (s *stage) holdShares(perSource float64) []holdShare {
	shares := make([]holdShare, len(s.Holds))
	for _, o := range s.Seen {
		if o.State != record.Done || o.Hold == 0 || o.Epoch == nil {
			continue
		}
		h := &shares[o.Hold-1]
		h.accesses += o.Weight() * perSource
		if s.Unit == sampler.Nanoseconds {
			h.ns += o.Epoch.PerObservation() * o.Times()
		}
	}
	return shares
}

// addTouches adds how memory is touched, and where time goes.
func (s *stage) addTouches(p *model.Profile, m *recorder) {
	type touchKey struct {
		process *target.Process
		pc      uint64
		op      model.Op
		pattern model.Manner
		stride  int64
		data    *model.Data
	}
	touches, moments := map[touchKey]int{}, map[momentKey]int{}
	for i, share := range s.holdShares(m.perSource) {
		h := &s.Holds[i]
		w := h.Window
		if w == nil || w.Counted == 0 || !(share.accesses > 0) {
			continue
		}
		s.addMoment(p, m, moments, h, share.ns)
		each := share.accesses / float64(w.Counted)
		for k := range w.Sites {
			x := &w.Sites[k]
			key := touchKey{h.Process, x.PC, x.Op, x.Manner, x.Stride, m.data.at(m.Stacks, h.Process, x, m.locations)}
			n, ok := touches[key]
			if !ok {
				n = len(p.Touches)
				touches[key] = n
				p.Touches = append(p.Touches, model.Touch{Use: m.locations.stack(h.Process, []uint64{x.PC}), Op: x.Op, Data: key.data, Manner: x.Manner, Stride: x.Stride, Within: x.Within})
			}
			t := &p.Touches[n]
			t.Windows++
			t.Accesses += each * float64(x.Accesses)
			t.Fetches += each * float64(x.Fetches)
			t.Used += each * float64(x.Used)
			t.Written += each * float64(x.Written)
		}
	}
}

type momentKey struct {
	process    *target.Process
	stack, tid int
	rates      model.MomentRates
	data       *model.Data
	pattern    model.Manner
	stride     int64
}

// addMoment adds where a hold found its thread, which stands for so much CPU time, if samples are drawn by that.
func (s *stage) addMoment(p *model.Profile, m *recorder, known map[momentKey]int, h *record.Hold, ns float64) {
	if !(ns > 0) {
		return
	}
	w := h.Window
	rates := model.MomentRates{Near: rounded(100 * w.Near), Chases: rounded(1e4 * w.Chases), Apart: rounded(1e4 * w.Apart), Streams: rounded(1e4 * w.Streams)}
	if t := h.Times; t != nil && t.Instructions > 0 {
		rates.Runs = rounded(1000 * t.Near / float64(t.Instructions))
	}
	key := momentKey{process: h.Process, stack: s.Stacks.ID(w.Stack), tid: h.TID, rates: rates,
		pattern: w.Held.Manner, stride: w.Held.Stride}
	if w.Wait == model.WaitMemory {
		key.data = m.data.at(m.Stacks, h.Process, &w.Held, m.locations)
	}
	n, ok := known[key]
	if !ok {
		n = len(p.Moments)
		known[key] = n
		p.Moments = append(p.Moments, model.Moment{Stack: m.locations.stack(h.Process, s.Stacks.Stack(w.Stack)), TID: h.TID, Wait: w.Wait, Op: w.Held.Op,
			Data: key.data, Manner: key.pattern, Stride: key.stride, MomentRates: rates})
	}
	p.Moments[n].Samples++
	p.Moments[n].Nanoseconds += ns
}

// rounded keeps two digits or so: of numbers beyond twenty multiples of five, beyond a thousand of fifty.
func rounded(v float64) int {
	step := 1.0
	switch {
	case v >= 1000:
		step = 50
	case v >= 20:
		step = 5
	}
	return int(step * math.Round(v/step))
}
