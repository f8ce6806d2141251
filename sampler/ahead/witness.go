package ahead

import "github.com/rdx-profiler/rdx/sampler/interp"

// witness is a touch that has not been reused so far: as long as there is one of those by the first accesses, reading
// goes on, and the one that there is at the end is watched. They are looked at one after the other in random order, so that
// each open one is as likely to be the last. Most are reused soon, and most windows have open ones, so that this is
// a small part of finding the reuses of all touches, which is done when the thread runs on.
type witness struct {
	rest  []firstTouch // not looked at yet
	now   firstTouch
	upTo  int // access up to which no reuse of it is
	begun bool
	spent int  // accesses looked at
	tired bool // too many: nothing more is told
}

type firstTouch struct {
	block uint64
	at    int32 // index of the access
}

// mostLooks are as dear as to find all reuses by a table.
const mostLooks = 32 << 10

func (w *witness) reset() { w.rest, w.begun, w.spent, w.tired = w.rest[:0], false, 0, false }

// begin takes the touches by the first accesses.
func (w *witness) begin(g *accessLog, first int, pick func(n int) int) {
	w.begun = true
	for i := range g.all[:min(first, len(g.all))] {
		from, to := g.blocks(g.all[i])
		for b := from; b <= to; b++ {
			w.rest = append(w.rest, firstTouch{b, int32(i)})
		}
	}
	w.draw(pick)
}

// draw takes another touch, and says whether there is one.
func (w *witness) draw(pick func(n int) int) bool {
	n := len(w.rest)
	if n == 0 {
		return false
	}
	i := pick(n)
	w.now, w.rest[i] = w.rest[i], w.rest[n-1]
	w.rest = w.rest[:n-1]
	w.upTo = int(w.now.at) + 1
	return true
}

// stands says whether one of the touches has not been reused as far as the log goes.
func (w *witness) stands(g *accessLog, pick func(n int) int) bool {
	for {
		again := reuseOf(g.all[w.upTo:], w.now.block*g.block, g.block)
		if again < 0 {
			w.spent += len(g.all) - w.upTo
			w.upTo = len(g.all)
			return true
		}
		if w.spent += again + 1; w.spent > mostLooks {
			w.tired = true
			return false
		}
		if !w.draw(pick) {
			return false
		}
	}
}

// use is that of the touch, whose index is still to be told, by a word of its block.
func (w *witness) use(g *accessLog, pick func(n int) int) use {
	a := &g.all[w.now.at]
	return use{at: int(w.now.at), touch: -1, word: g.wordOf(a, w.now.block, pick), block: w.now.block, reuse: -1}
}

// reuseOf is the index of the first access that touches the block of so many bytes at start, -1 if none does.
func reuseOf(all []interp.Access, start, bytes uint64) int {
	for i := range all {
		a := &all[i]
		// Where the access ends behind the block's start, and begins before its end, by one comparison:
		// the difference is taken modulo 2^64.
		if size := uint64(a.Size); a.Addr+size-1-start < bytes+size-1 {
			return i
		}
	}
	return -1
}
