package ahead

import "github.com/rdx-profiler/rdx/sampler/interp"

// witness is a touch that has not been reused so far: as long as there is one of those by the first accesses, reading
// goes on, and the one that there is at the end is watched. Random ones are looked at until one is not reused, so that
// each open one is as likely to be the last. Most are reused soon, and most windows have open ones, so that this is
// a small part of finding the reuses of all touches, which is done when the thread runs on. Where it is not, all that are open
// are looked for, from the end on back, and from then on those are looked at in random order.
type witness struct {
	now      firstTouch
	upTo     int // access up to which no reuse of it is; 0: there is none now
	first    int // accesses whose touches may be it
	most     int // blocks that one of them touches
	begun    bool
	spent    int  // accesses looked at
	searched int  // access up to which all open ones were looked for; 0: they were not
	tired    bool // too many: nothing more is told

	open []firstTouch // of those that were found, what was not looked at since
}

type firstTouch struct {
	block uint64
	at    int32 // index of the access
}

const (
	// fewLooks at each access that was read are less dear than to look for all that are open, manyLooks as dear as to find all reuses.
	fewLooks, manyLooks = 2, 8
	// mostDraws is how often a touch is drawn, where an access may touch so many blocks that most draws find none.
	mostDraws = 64
)

func (w *witness) reset() {
	w.upTo, w.begun, w.spent, w.searched, w.tired = 0, false, 0, 0, false
}

// begin takes the touches by the first accesses.
func (w *witness) begin(g *accessLog, first int) {
	w.begun, w.first, w.most = true, min(first, len(g.all)), 1
	for i := range g.all[:w.first] {
		from, to := g.blocks(g.all[i])
		w.most = max(w.most, int(to-from)+1)
	}
}

// stands says whether one of the touches has not been reused as far as the log goes.
func (w *witness) stands(g *accessLog, pick func(n int) int) bool {
	for {
		if w.upTo == 0 && !w.next(g, pick) {
			return false
		}
		again := reuseOf(g.all[w.upTo:], w.now.block*g.block, g.block)
		if again < 0 {
			w.spent += len(g.all) - w.upTo
			w.upTo = len(g.all)
			return true
		}
		w.spent += again + 1
		w.upTo = 0
	}
}

// next takes another touch, and says whether there is one.
func (w *witness) next(g *accessLog, pick func(n int) int) bool {
	if w.searched == 0 {
		if w.spent <= fewLooks*len(g.all) && w.draw(g, pick) {
			return true
		}
		w.search(g)
	}
	w.tired = w.spent > manyLooks*len(g.all)
	n := len(w.open)
	if n == 0 || w.tired {
		return false
	}
	i := pick(n)
	w.now, w.open[i] = w.open[i], w.open[n-1]
	w.open = w.open[:n-1]
	w.upTo = w.searched
	return true
}

// draw takes a random touch, if it finds one soon.
func (w *witness) draw(g *accessLog, pick func(n int) int) bool {
	for range mostDraws {
		at := pick(w.first)
		from, to := g.blocks(g.all[at])
		// Each touch is as likely, whatever else its access touches.
		if b := from + uint64(pick(w.most)); b <= to {
			w.now, w.upTo = firstTouch{b, int32(at)}, at+1
			return true
		}
	}
	return false
}

// search finds all that are open, by the log's table, which has nothing yet.
func (w *witness) search(g *accessLog) {
	defer g.last.reset()
	w.open = w.open[:0]
	for i := len(g.all) - 1; i >= 0; i-- {
		from, to := g.blocks(g.all[i])
		for b := from; b <= to; b++ {
			if g.last.swap(b, i) < 0 && i < w.first {
				w.open = append(w.open, firstTouch{b, int32(i)})
			}
		}
	}
	w.searched = len(g.all)
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
