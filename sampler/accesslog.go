package sampler

import "github.com/rdx-profiler/rdx/sampler/interp"

// accessLog is the accesses read ahead of one held thread, in order, and what
// blocks they touch.
type accessLog struct {
	block   uint64 // bytes
	all     []interp.Access
	touches []blockTouch
	last    map[uint64]int // by block: index of the last access that touched it
	matched int            // so many of touches were looked at for reuses
	wanted  []bool         // by index: there is a use at this access
}

// blockTouch is one access's touch of one block.
type blockTouch struct {
	block uint64
	at    int // index of the access
	prev  int // that of the one before that touched the block, or -1
}

// use is an access of the log whose reuse is looked for.
type use struct {
	candidate int    // its index among all uses
	at        int    // index of the access
	word      uint64 // one that it touches
	own       uint64 // the number of word's block
	reuse     int    // index of the next access that touches that, or -1
}

func (g *accessLog) reset(block int) {
	g.block, g.all, g.touches, g.matched, g.wanted = uint64(block), g.all[:0], g.touches[:0], 0, g.wanted[:0]
	clear(g.last)
}

// add appends the accesses of one run of the interpreter.
func (g *accessLog) add(accesses []interp.Access) {
	inst := int32(0)
	if n := len(g.all); n > 0 {
		inst = g.all[n-1].Inst + 1
	}
	for _, a := range accesses {
		// The interpreter counts from 0 in each run.
		a.Inst += inst
		from, to := g.blocks(a)
		for b := from; b <= to; b++ {
			prev, ok := g.last[b]
			if !ok {
				prev = -1
			}
			g.touches = append(g.touches, blockTouch{b, len(g.all), prev})
			g.last[b] = len(g.all)
		}
		g.all = append(g.all, a)
	}
}

// blocks are the numbers of the first and the last block an access touches.
func (g *accessLog) blocks(a interp.Access) (from, to uint64) {
	return a.Addr / g.block, (a.Addr + uint64(a.Size) - 1) / g.block
}

// use is the access at an index, by one of its words.
func (g *accessLog) use(candidate, at int, pick func(n int) int) use {
	a := g.all[at]
	l := Located{Addr: a.Addr, Size: int(a.Size)}
	word := l.Word(pick(l.Words()))
	for len(g.wanted) <= at {
		g.wanted = append(g.wanted, false)
	}
	g.wanted[at] = true
	return use{candidate, at, word, word / g.block, -1}
}

// match looks for reuses among the accesses that are new: those by the use's own
// instruction, which is one trap, and those up to burst accesses on. That others
// were read on for makes no difference: what is found must not depend on it.
func (g *accessLog) match(uses []use, burst int) {
	for ; g.matched < len(g.touches); g.matched++ {
		t := g.touches[g.matched]
		if t.prev < 0 || t.prev >= len(g.wanted) || !g.wanted[t.prev] {
			continue
		}
		for i := range uses {
			u := &uses[i]
			if u.at == t.prev && u.own == t.block && (t.at-u.at <= burst || g.all[t.at].Inst == g.all[u.at].Inst) {
				u.reuse = t.at
			}
		}
	}
}

// distinct is the stack distance of a reuse: how many blocks are touched from
// the use at index from until its reuse at index to, the used one among them.
func (g *accessLog) distinct(from, to int) int {
	n := 1
	for _, t := range g.touches {
		if t.at > from && t.at < to && t.prev <= from {
			n++
		}
	}
	return n
}
