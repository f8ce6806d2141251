package gpu

import (
	"math/bits"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
)

// PrivateStacks is exact.PrivateStacks with a GPU: each touch by itself, told of late. A block's use, the holes that
// invalidations leave and which of them a touch fills depend on all touches before, and are found here; how many positions of
// the stack are above the use, which costs most, is counted by the GPU, for a segment of the touches of all threads at once.
//
// A touch adds a position on top of its thread's stack and removes one at most: that of the use, or the hole that it fills. So
// the distance is the positions after the use, less those of them that were removed by touches before.
type PrivateStacks struct {
	*Session
	gran    model.Granularity
	each    func(*exact.Touch)
	threads map[int32]*privateStack
	all     []*privateStack
	holders table // by block: 1 + the number of the one thread that holds it, or manyHolders
	segment int
	touches []privateTouch
}

type privateTouch struct {
	block  uint64
	pc     uint64
	time   uint64
	stack  uint32 // number of the thread
	number uint32 // among its touches of the segment
	op     model.Op
	kind   model.Kind
}

const (
	invalidPos  = ^uint32(0)
	manyHolders = ^uint32(0)
)

// NewPrivateStacks starts an analysis that calls each with all touches, in their order.
func NewPrivateStacks(blockBytes int, c Config, each func(*exact.Touch)) (*PrivateStacks, error) {
	g, err := model.NewGranularity(blockBytes)
	if err != nil {
		return nil, err
	}
	if c.Segment == 0 {
		c.Segment = eachSegment
	}
	s := &PrivateStacks{gran: g, each: each, threads: map[int32]*privateStack{}, segment: c.Segment}
	s.Session, err = StartSession(Start{Device: c.Device, Segment: c.Segment, Private: true}, c.Segment, nil)
	return s, err
}

// Threads is the number of threads seen.
func (s *PrivateStacks) Threads() int { return len(s.all) }

// Add analyses the next accesses.
func (s *PrivateStacks) Add(accesses []model.Access) error {
	for i := range accesses {
		a := &accesses[i]
		stack := s.threads[a.Thread]
		if stack == nil {
			stack = &privateStack{thread: a.Thread, number: uint32(len(s.all)), now: 1, start: 1}
			s.threads[a.Thread] = stack
			s.all = append(s.all, stack)
		}
		for b, last := s.gran.Span(a); ; b++ {
			t := privateTouch{block: b, pc: a.PC, op: a.Op, stack: stack.number, number: uint32(len(stack.asked))}
			stack.touch(&t)
			s.share(stack, b, a.Op == model.Store)
			if s.touches = append(s.touches, t); len(s.touches) == s.segment {
				if err := s.flush(); err != nil {
					return err
				}
			}
			if b == last {
				break
			}
		}
	}
	return nil
}

// share notes that own holds b now, and if it was a write that nobody else does.
func (s *PrivateStacks) share(stack *privateStack, b uint64, write bool) {
	holder := &s.holders.slot(b).pos
	me := stack.number + 1
	switch {
	case *holder == me:
	case *holder == 0:
		*holder = me
	case !write:
		*holder = manyHolders
	case *holder == manyHolders:
		for _, other := range s.all {
			if other != stack {
				other.invalidate(b)
			}
		}
		*holder = me
	default:
		s.all[*holder-1].invalidate(b)
		*holder = me
	}
}

// flush has the segment's touches counted, and tells of them.
func (s *PrivateStacks) flush() error {
	if len(s.touches) == 0 {
		return nil
	}
	counted, asked, greater, err := s.shared.Count(len(s.touches))
	if err != nil {
		return err
	}
	at, values := 0, uint64(1) // one is added to all: 0 is none
	for _, p := range s.all {
		p.at = at
		if values+uint64(p.live)+uint64(len(p.asked)) >= 1<<31 {
			return exact.ErrTooManyBlocks
		}
		for i := range p.asked {
			counted[at], asked[at] = p.valued(p.removed[i], uint32(values)), p.valued(p.asked[i], uint32(values))
			at++
		}
		if len(p.asked) > 0 {
			values += uint64(p.live) + uint64(len(p.asked))
		}
	}
	if err := s.Count(len(s.touches), uint32(values)); err != nil {
		return err
	}
	var t exact.Touch
	for i := range s.touches {
		x := &s.touches[i]
		p := s.all[x.stack]
		t = exact.Touch{Block: x.block, PC: x.pc, Thread: p.thread, Op: x.op, Kind: x.kind, Dist: model.Infinite, Time: model.Infinite}
		if x.kind == model.Reuse {
			t.Time = x.time
			t.Dist = uint64(p.live) + uint64(x.number) - uint64(p.rank(p.asked[x.number])) - 1 - uint64(greater[p.at+int(x.number)])
		}
		s.each(&t)
	}
	s.touches = s.touches[:0]
	for _, p := range s.all {
		p.settle()
	}
	return nil
}

// Finish waits until all touches were told of.
func (s *PrivateStacks) Finish() error {
	defer s.Close()
	if err := s.flush(); err != nil {
		return err
	}
	_, err := s.Session.Finish()
	return err
}

// privateStack is one thread's. Positions are handed out in order, from 1 on.
type privateStack struct {
	thread int32
	number uint32
	blocks table
	holes  holes
	now    uint32 // the next position
	time   uint64 // touches

	start  uint32   // the first position of the segment
	live   uint32   // positions that there were before it
	bitmap []uint64 // which of those before it
	before []uint32 // how many of them before each word
	at     int      // of the segment's elements, the first of this thread

	asked   []uint32 // by touch of the segment: the position of the use, 0 if it is none
	removed []uint32 // and the one that was removed, 0 if none was
}

func (p *privateStack) touch(t *privateTouch) {
	slot := p.blocks.slot(t.block)
	use := slot.pos
	p.time++
	t.kind, t.time = model.Reuse, p.time-slot.time
	slot.pos, slot.time = p.now, p.time
	p.now++
	removed := use
	switch {
	case use == 0 || use == invalidPos:
		t.kind = model.Cold
		if use == invalidPos {
			t.kind = model.Invalidated
		}
		if use, removed = 0, 0; len(p.holes) > 0 {
			removed = p.holes.pop()
		}
	case len(p.holes) > 0 && p.holes[0] > use:
		removed = p.holes[0]
		p.holes.replaceTop(use)
	}
	p.asked, p.removed = append(p.asked, use), append(p.removed, removed)
}

// invalidate makes a hole of b if the stack holds it.
func (p *privateStack) invalidate(b uint64) {
	if slot := p.blocks.find(b); slot != nil && slot.pos != invalidPos {
		p.holes.push(slot.pos)
		slot.pos = invalidPos
	}
}

// rank is how many of the positions before the segment, and of the segment's own, are before this one.
func (p *privateStack) rank(pos uint32) uint32 {
	if pos >= p.start {
		return p.live + pos - p.start
	}
	w := pos / 64
	return p.before[w] + uint32(bits.OnesCount64(p.bitmap[w]&(1<<(pos%64)-1)))
}

// valued is a position among those of all threads; 0 stays 0.
func (p *privateStack) valued(pos, first uint32) uint32 {
	if pos == 0 {
		return 0
	}
	return first + p.rank(pos)
}

// settle ends the segment.
func (p *privateStack) settle() {
	if len(p.asked) == 0 {
		return
	}
	p.bitmap = append(p.bitmap, make([]uint64, int(p.now/64)+1-len(p.bitmap))...)
	for pos := p.start; pos < p.now; pos++ {
		p.bitmap[pos/64] |= 1 << (pos % 64)
	}
	for _, pos := range p.removed {
		if pos != 0 {
			p.bitmap[pos/64] &^= 1 << (pos % 64)
		}
	}
	p.asked, p.removed = p.asked[:0], p.removed[:0]
	p.start = p.now
	p.count()
	if uint64(p.now) > 4*uint64(p.live)+1<<16 {
		p.renumber()
	}
}

// count sets how many there are before each word.
func (p *privateStack) count() {
	p.before = append(p.before[:0], make([]uint32, len(p.bitmap))...)
	p.live = 0
	for w, b := range p.bitmap {
		p.before[w] = p.live
		p.live += uint32(bits.OnesCount64(b))
	}
}

// renumber moves the positions together.
func (p *privateStack) renumber() {
	p.blocks.each(func(e *entry) {
		if e.pos != invalidPos {
			e.pos = p.rank(e.pos) + 1
		}
	})
	for i, pos := range p.holes {
		p.holes[i] = p.rank(pos) + 1 // keeps the order, and so the heap
	}
	p.now = p.live + 1
	p.start = p.now
	p.bitmap = make([]uint64, p.now/64+1)
	for pos := uint32(1); pos < p.now; pos++ {
		p.bitmap[pos/64] |= 1 << (pos % 64)
	}
	p.count()
}

// holes are positions, the one nearest to the top first: a heap.
type holes []uint32

func (h *holes) push(p uint32) {
	*h = append(*h, p)
	s := *h
	i := len(s) - 1
	for ; i > 0 && s[(i-1)/2] < p; i = (i - 1) / 2 {
		s[i] = s[(i-1)/2]
	}
	s[i] = p
}

func (h *holes) pop() uint32 {
	s := *h
	top, last := s[0], s[len(s)-1]
	if *h = s[:len(s)-1]; len(*h) > 0 {
		h.replaceTop(last)
	}
	return top
}

func (h holes) replaceTop(p uint32) {
	i := 0
	for c := 1; c < len(h); c = 2*i + 1 {
		if c+1 < len(h) && h[c+1] > h[c] {
			c++
		}
		if h[c] <= p {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = p
}

// table maps blocks to positions. Position 0 is of what is not there.
type table struct {
	entries []entry
	n       int
}

type entry struct {
	block, time uint64
	pos         uint32
}

// find is the entry of a block that is there, nil if it is not.
func (t *table) find(block uint64) *entry {
	if len(t.entries) == 0 {
		return nil
	}
	if e := t.probe(block); e.pos != 0 {
		return e
	}
	return nil
}

func (t *table) probe(block uint64) *entry {
	mask := uint64(len(t.entries) - 1)
	for i := block * 0x9e3779b97f4a7c15 >> 20 & mask; ; i = (i + 1) & mask {
		if e := &t.entries[i]; e.pos == 0 || e.block == block {
			return e
		}
	}
}

// slot is the entry of a block, of which a new one must get a position.
func (t *table) slot(block uint64) *entry {
	if 2*t.n >= len(t.entries) {
		old := t.entries
		t.entries = make([]entry, max(1024, 2*len(old)))
		for i := range old {
			if old[i].pos != 0 {
				*t.probe(old[i].block) = old[i]
			}
		}
	}
	e := t.probe(block)
	if e.pos == 0 {
		e.block = block
		t.n++
	}
	return e
}

func (t *table) each(f func(*entry)) {
	for i := range t.entries {
		if t.entries[i].pos != 0 {
			f(&t.entries[i])
		}
	}
}
