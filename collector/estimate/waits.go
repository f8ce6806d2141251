package estimate

import (
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler"
)

// Ticks of a timer find code that waits for its data too often: a hold in code that makes an access in 10 ns stands for a
// tenth of the accesses of one that makes one in 1. Where probes don't tell the rates of the code, a
// hold stands for as many accesses as its window lets expect: by the instructions of an access, and by how many of the accesses
// have no reuse in what was read ahead, of which each may wait. How long they wait is not known, so the bands
// hold what follows if they don't at all, and if all wait for memory.

const (
	// plainInstructions are made in a nanosecond where nothing is waited for: the middle of what is possible.
	plainInstructions = 4.5
	// openWait is how long an open access is taken to wait, in ns: as from the third cache, or from memory with some
	// of them on the way at a time.
	openWait = 12
)

// windowTime is how long an access of a hold lasts, in ns, without waiting, and what share of them is open.
type windowTime struct{ plain, open float64 }

func (w windowTime) all() float64 { return w.plain + w.open*openWait }

// weighByWaits has each hold stand for as many accesses as its window lets expect, unless it is known better.
func (s *stage) weighByWaits() {
	if s.Rates.byCode() || !s.timed() {
		return
	}
	if s.foretold != nil {
		s.weighByForetold()
		return
	}
	windows := s.windowTimes()
	var rates, plain, n float64 // over the holds, which came at random moments
	for _, w := range windows {
		rates, plain, n = rates+1/w.all(), plain+w.plain, n+1
	}
	if n == 0 {
		return
	}
	for _, o := range s.Seen {
		if w, ok := windows[o.Hold]; ok {
			o.Fits = n / rates / w.all()
			o.Open = w.open
		}
	}
	s.plainNS, s.waitNS = plain/n, openWait
}

// weighByForetold has each hold stand for as many accesses as the model foretells.
func (s *stage) weighByForetold() {
	f := s.foretold
	mean := f.mean()
	for _, o := range s.Seen {
		if w, ok := f.windows[o.Hold]; ok {
			o.Fits = 1 / f.perAccess(w, 1) / mean
			o.Open, o.Late = w.open, f.late(o)
		}
	}
	s.plainNS, s.waitNS = f.plain()
}

// timed says whether holds came by time and nothing counts accesses.
func (s *stage) timed() bool {
	return s.Unit == sampler.Nanoseconds && s.Clock.Counted == nil
}

// windowTimes are by hold.
func (s *stage) windowTimes() map[int]windowTime {
	open, all := make(map[int]float64), make(map[int]float64)
	for _, o := range s.Seen {
		if o.Hold == 0 || o.State == record.Void {
			continue
		}
		if all[o.Hold] += o.Times(); o.Soon == 0 {
			open[o.Hold] += o.Times()
		}
	}
	out := make(map[int]windowTime)
	for hold, n := range all {
		if h := &s.Holds[hold-1]; h.Accesses > 0 && h.Instructions > 0 {
			out[hold] = windowTime{float64(h.Instructions) / float64(h.Accesses) / plainInstructions, open[hold] / n}
		}
	}
	return out
}
