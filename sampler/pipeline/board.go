package pipeline

import (
	"math/bits"
	"slices"
)

// What a core has room for: those of the last ten years have 4 to 8 a cycle and 200 to 500.
const (
	width      = 5.0 // instructions that enter in a cycle
	room       = 256 // that are under way
	fills      = 16  // lines that the first cache waits for
	storeRoom  = 56  // stores that wait for their lines
	ports      = 2.5 // accesses in a cycle
	queued     = 16  // that wait for one
	firstWait  = 4.0 // cycles that the first cache takes, or a store whose word is read again
	mispredict = 15.0
	early      = 10.0 // cycles by which fetching is before what enters
)

// board is a core in one of the cases: where lines come from that were not touched before. Times are in cycles.
type board struct {
	level int // they come from, 0: the first cache
	every uint64
	wait  float64 // for one of them
	row   float64 // between two in a row
	costs *conflictCycles

	ready   [numStates]float64
	retired [room]float64
	n       int     // instructions
	entered float64 // the last one
	done    float64 // all up to the last one
	fetch   float64 // when fetching goes on after a branch that was foretold wrongly
	fetched float64 // when the last instruction was
	unit    float64 // when what divides is free
	port    float64 // when one for accesses is free
	missing [fills]float64
	misses  int
	left    [storeRoom]float64
	stores  int
	rows    float64 // when the next line of a row is there
	crowd   float64 // when the last line was that competes for its set

	stored  []float64 // by word
	arrives []float64 // by line
}

// touch is an access, with what all boards know of it.
type touch struct {
	word, line int32
	store      bool
	cold       bool // its line was not touched before
	lone       bool // of cold ones, it may come from afar
	row        bool // it follows one of which it is known
	draw       uint64
	since      int   // other lines at its place in a page since it was touched before
	degree     uint8 // how crowded that place is
	found      int   // the level at which its set leaves it, where it was touched before
}

// reset begins anew, with room for so many words and lines.
func (b *board) reset(words, lines int) {
	*b = board{level: b.level, every: b.every, wait: b.wait, row: b.row, costs: b.costs,
		stored: zeros(b.stored, words), arrives: zeros(b.arrives, lines)}
}

func zeros(s []float64, n int) []float64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// latest is when all registers of a set are there.
func (b *board) latest(set registers, t float64) float64 {
	for s := uint64(set); s != 0; s &= s - 1 {
		t = max(t, b.ready[bits.TrailingZeros64(s)%numStates])
	}
	return t
}

// pass takes an instruction with its accesses. apart: it is fetched in another cycle than the one before. missed: it is a branch that was
// foretold wrongly.
func (b *board) pass(o *operation, accesses []touch, apart, missed bool) {
	slot := b.n % room
	b.n++
	if apart {
		b.fetched = max(b.fetched+1, b.entered-early)
	}
	b.fetched = max(b.fetched, b.fetch)
	enter := max(b.entered+1/width, b.retired[slot], b.fetched)
	if n := float64(len(accesses)); n > 0 {
		b.port = max(b.port, enter) + n/ports
		enter = max(enter, b.port-max(queued, n)/ports)
	}
	start := b.latest(o.reads, enter)
	if len(accesses) > 0 {
		from := b.latest(o.address, enter)
		for i := range accesses {
			if a := &accesses[i]; !a.store {
				start = max(start, b.load(a, from))
			}
		}
	}
	if o.busy > 0 {
		start = max(start, b.unit)
		b.unit = start + float64(o.busy)
	}
	end := start + float64(o.latency)
	for i := range accesses {
		if a := &accesses[i]; a.store {
			if at := b.left[b.stores%storeRoom]; at > enter {
				enter = at
			}
			b.store(a, end, b.latest(o.address, enter))
		}
	}
	for s := uint64(o.writes); s != 0; s &= s - 1 {
		b.ready[bits.TrailingZeros64(s)%numStates] = end
	}
	b.entered = enter + float64(o.stalls)
	b.done = max(b.done, end)
	b.retired[slot] = b.done
	if missed {
		b.fetch = end + mispredict
	}
}

// fill is when the line of an access is there, that is asked for at t.
func (b *board) fill(a *touch, t float64) float64 {
	if !a.cold {
		if t = max(t, b.arrives[a.line]); a.found > 0 {
			t = b.compete(a, a.found, t)
			b.arrives[a.line] = t
		}
		return t
	}
	switch {
	case b.level == 0 || !a.lone || a.draw%b.every != 0:
	case a.degree > 0:
		t = b.compete(a, b.level, t)
	case a.row:
		b.rows = max(b.rows, t-b.wait) + b.row // it was asked for long before, but one comes after the other
		t = max(t, b.rows)
	default:
		slot := b.misses % fills
		b.misses++
		t = max(t, b.missing[slot]) + b.wait
		b.missing[slot] = t
	}
	b.arrives[a.line] = t
	return t
}

func (b *board) load(a *touch, t float64) float64 {
	return max(t, b.stored[a.word], b.fill(a, t)) + firstWait
}

// store leaves in order, when its line is there.
func (b *board) store(a *touch, end, address float64) {
	b.stored[a.word] = end
	last := b.left[(b.stores+storeRoom-1)%storeRoom]
	b.left[b.stores%storeRoom] = max(last+1, end, b.fill(a, address))
	b.stores++
}

// elapsed is how long it all was.
func (b *board) elapsed() float64 { return max(b.done, b.entered) }
