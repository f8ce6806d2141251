package ahead

import (
	"math/bits"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// accessLog is the accesses read ahead of one held thread, in order, and what
// blocks they touch.
type accessLog struct {
	block   uint64 // bytes, a power of two
	shift   uint8  // its logarithm
	all     []interp.Access
	touches []blockTouch
	first   []int32 // by access: index of the first of its touches
	last    lastTouches
	matched int    // so many of touches were looked at for reuses
	wanted  []bool // by touch: there is a use at it

	classified int     // touches by the first accesses
	open       []int32 // those of these without a reuse, once closed
	next       []int32 // by touch of these: that of the block's next touch, 0 if there is none
	marks      marks
	indexed    int     // so many of all are in touches
	sizes      []int   // of the heads that are told of; nil: none are
	begins     []int32 // by touch, the first of its block
	uses       []int32 // by first touch of a block, how often it is touched soon
	lined      []interp.Access
}

// blockTouch is one access's touch of one block.
type blockTouch struct {
	block uint64
	at    int32 // index of the access
	prev  int32 // index of the touch before of the block, or -1
}

// use is an access of the log whose reuse is looked for.
type use struct {
	candidate int     // its index among all uses
	share     float64 // of all that were classified
	at        int     // index of the access
	touch     int     // of that of word's block
	word      uint64  // one that it touches
	block     uint64  // the number of word's block
	reuse     int     // index of the next access that touches that, or -1
	again     int     // index of that touch
	distinct  int     // blocks touched from it until then, or until the end
	heads     []uint16
}

// mostAtOnce are the accesses that one instruction makes, but for rare ones.
const mostAtOnce = 64

// reserve makes room for so many accesses, most of which touch one block.
func (g *accessLog) reserve(accesses int) {
	accesses += mostAtOnce // the last instruction's may be beyond
	touches := accesses + accesses/4
	g.all, g.first = room(g.all, accesses), room(g.first, accesses)
	g.touches, g.next, g.open = room(g.touches, touches), room(g.next, touches), room(g.open, touches)
	g.last.reserve(touches)
	g.marks.reset(touches)
}

func (g *accessLog) reset(block int) {
	g.block, g.all, g.touches, g.matched, g.wanted = uint64(block), g.all[:0], g.touches[:0], 0, g.wanted[:0]
	g.first, g.shift = g.first[:0], uint8(bits.TrailingZeros64(g.block))
	g.classified, g.open, g.next = 0, g.open[:0], g.next[:0]
	g.last.reset()
	g.indexed, g.sizes = 0, nil
}

// add appends the accesses of one run of the interpreter, and what they touch.
func (g *accessLog) add(accesses []interp.Access) {
	g.keep(accesses)
	g.index()
}

// keep appends the accesses alone: index is to be called before anything is asked of what they touch.
func (g *accessLog) keep(accesses []interp.Access) {
	inst := int32(0)
	if n := len(g.all); n > 0 {
		inst = g.all[n-1].Inst + 1
	}
	for _, a := range accesses {
		// The interpreter counts from 0 in each run.
		a.Inst += inst
		g.all = append(g.all, a)
	}
}

// index finds what the accesses touch.
func (g *accessLog) index() {
	for ; g.indexed < len(g.all); g.indexed++ {
		from, to := g.blocks(g.all[g.indexed])
		g.first = append(g.first, int32(len(g.touches)))
		for b := from; b <= to; b++ {
			prev := g.last.swap(b, len(g.touches))
			g.touches = append(g.touches, blockTouch{b, int32(g.indexed), int32(prev)})
		}
	}
}

// wordOf is one of the words of a block that an access touches.
func (g *accessLog) wordOf(a *interp.Access, block uint64, pick func(n int) int) uint64 {
	first, last := max(a.Addr, block*g.block)/sampler.WordSize, min(a.Addr+uint64(a.Size), (block+1)*g.block)-1
	return (first + uint64(pick(int(last/sampler.WordSize-first)+1))) * sampler.WordSize
}

// touching appends the accesses up to one that overlap so many bytes at addr.
func (g *accessLog) touching(upTo int, addr, size uint64) []interp.Access {
	g.lined = g.lined[:0]
	for all := g.all[:upTo]; ; {
		i := reuseOf(all, addr, size)
		if i < 0 {
			return g.lined
		}
		g.lined = append(g.lined, all[i])
		all = all[i+1:]
	}
}

// blocks are the numbers of the first and the last block an access touches.
func (g *accessLog) blocks(a interp.Access) (from, to uint64) {
	return a.Addr >> (g.shift & 63), (a.Addr + uint64(a.Size) - 1) >> (g.shift & 63)
}

// use is the access at an index, by one of its blocks and a word that it touches there.
func (g *accessLog) use(candidate, at int, pick func(n int) int) use {
	from, to := g.blocks(g.all[at])
	u := g.useOf(int(g.first[at])+pick(int(to-from)+1), pick)
	u.candidate = candidate
	for len(g.wanted) <= u.touch {
		g.wanted = append(g.wanted, false)
	}
	g.wanted[u.touch] = true
	return u
}

// useOf is that of a touch, by a word that it touches.
func (g *accessLog) useOf(touch int, pick func(n int) int) use {
	t := g.touches[touch]
	return use{at: int(t.at), touch: touch, word: g.wordOf(&g.all[t.at], t.block, pick), block: t.block, reuse: -1}
}

// match looks for reuses among the accesses that are new: those by the use's own
// instruction, which is one trap, and those up to burst accesses on. That others
// were read on for makes no difference: what is found must not depend on it.
func (g *accessLog) match(uses []use, burst int) {
	for ; g.matched < len(g.touches); g.matched++ {
		t := g.touches[g.matched]
		prev, at := int(t.prev), int(t.at)
		if prev < 0 || prev >= len(g.wanted) || !g.wanted[prev] {
			continue
		}
		for i := range uses {
			u := &uses[i]
			if u.touch == prev && (at-u.at <= burst || g.all[at].Inst == g.all[u.at].Inst) {
				u.reuse, u.again = at, g.matched
			}
		}
	}
}

// end is the index of the first touch after so many accesses behind one.
func (g *accessLog) end(at, accesses int) int {
	if at += accesses + 1; at < len(g.first) {
		return int(g.first[at])
	}
	return len(g.touches)
}

// tell says of a use, in f, when its reuse came, or that none did within burst
// accesses or as far as the log goes.
func (g *accessLog) tell(u use, burst int, f *Followed) {
	f.At = u.touch
	if u.reuse >= 0 {
		f.Reuse, f.Distinct = u.again-u.touch, g.distinct(u.touch, u.again)
		f.After = f.Reuse
		return
	}
	end := g.end(u.at, burst)
	f.After, f.Distinct = end-1-u.touch, g.distinct(u.touch, end)
}

// Touch is an access's touch of a block.
type Touch struct {
	Block  uint64 // its number: the address of its first byte by its size
	PC     uint64 // of the accessing instruction
	Before int32  // index of the block's touch before, -1 for its first
	Inst   int32  // number of the instruction among those read ahead
	Store  bool
	Bytes  uint8 // that it touches of a block that is a word, as bits; all of a larger one
}

// touched appends the touches, one after the other.
func (g *accessLog) touched(to []Touch) []Touch {
	for _, t := range g.touches {
		a := &g.all[t.at]
		to = append(to, Touch{Block: t.block, PC: a.PC, Before: t.prev, Inst: a.Inst, Store: a.Store, Bytes: g.bytesOf(a, t.block)})
	}
	return to
}

// bytesOf are the bytes of a block, if it is a word, that an access touches.
func (g *accessLog) bytesOf(a *interp.Access, block uint64) uint8 {
	const all = 1<<sampler.WordSize - 1
	if g.block != sampler.WordSize {
		return all
	}
	from, to := max(a.Addr, block*g.block), min(a.Addr+uint64(a.Size), (block+1)*g.block)
	return uint8(all >> (sampler.WordSize - (to - from)) << (from - block*g.block))
}

// nextIn is after how many touches behind one any block of its aligned stretch of so many bytes is touched again, 0 if
// none is as far as the log goes.
func (g *accessLog) nextIn(touch int, bytes uint64) int {
	blocks := bytes / g.block
	of := g.touches[touch].block / blocks
	for i := touch + 1; i < len(g.touches); i++ {
		if g.touches[i].block/blocks == of {
			return i - touch
		}
	}
	return 0
}

// cut forgets all but the first n accesses. Nothing may be added after it.
func (g *accessLog) cut(n int) {
	if n >= len(g.all) {
		return
	}
	g.touches, g.all = g.touches[:g.first[n]], g.all[:n]
	g.first = g.first[:n]
}

// distinct is the stack distance of a reuse: how many blocks are touched from
// touch from until its reuse, touch to, the used one among them.
func (g *accessLog) distinct(from, to int) int {
	n := 1
	for _, t := range g.touches[from+1 : to] {
		if int(t.prev) <= from {
			n++
		}
	}
	return n
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
