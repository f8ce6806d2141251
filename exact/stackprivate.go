package exact

import "github.com/rdx-profiler/rdx/model"

// PrivateStacks is one LRU stack for each thread, kept coherent: a write takes
// the block out of all other threads' stacks. It is the model of private
// caches of Schuff et al., section 2.
//
// A block taken out leaves a hole, which keeps its place in the order and
// counts as a block in distances. A block brought to the top fills the hole
// nearest to the top if that was above it, and leaves a hole where it was; a
// block new to the stack just fills the hole. So nothing ever rises in a
// stack but by being accessed.
//
// Each thread's stack costs about 20 bytes a block it has touched, and as much
// again is needed to know which threads hold a block.
type PrivateStacks struct {
	gran    model.Granularity
	threads map[int32]*privateStack
	all     []*privateStack
	// holders maps a block to the number of the one thread whose stack holds
	// it, plus one, or to manyHolders. It makes writes to data that is not
	// shared cheap.
	holders blockIndex
}

type privateStack struct {
	thread int32
	number uint32 // in PrivateStacks.all
	index  blockIndex
	order  timedOrder
	holes  holeHeap
}

const (
	// invalidPos marks a block that was in the stack until another thread
	// wrote it.
	invalidPos  = noPos
	manyHolders = noPos
)

// NewPrivateStacks returns empty stacks for blocks of the given number of
// bytes, a power of two.
func NewPrivateStacks(blockBytes int) (*PrivateStacks, error) {
	g, err := model.NewGranularity(blockBytes)
	if err != nil {
		return nil, err
	}
	s := &PrivateStacks{gran: g}
	s.reset()
	return s, nil
}

// reset begins anew with empty stacks.
func (s *PrivateStacks) reset() {
	s.threads, s.all = map[int32]*privateStack{}, nil
	s.holders = blockIndex{}
	s.holders.init()
}

// Threads is the number of threads seen.
func (s *PrivateStacks) Threads() int { return len(s.all) }

// Add implements Stacks.
func (s *PrivateStacks) Add(accesses []model.Access, f func(*Touch)) error {
	var t Touch
	var stack *privateStack
	for i := range accesses {
		a := &accesses[i]
		if stack == nil || stack.thread != a.Thread {
			stack = s.stackOf(a.Thread)
		}
		b, last := s.gran.Span(a)
		for ; ; b++ {
			t = Touch{Block: b, PC: a.PC, Thread: a.Thread, Op: a.Op}
			if err := stack.touch(&t); err != nil {
				return err
			}
			s.share(stack, b, a.Op == model.Store)
			f(&t)
			if b == last {
				break
			}
		}
	}
	return nil
}

func (s *PrivateStacks) stackOf(thread int32) *privateStack {
	stack := s.threads[thread]
	if stack == nil {
		stack = &privateStack{thread: thread, number: uint32(len(s.all))}
		stack.index.init()
		stack.order.init()
		s.threads[thread] = stack
		s.all = append(s.all, stack)
	}
	return stack
}

// share notes that own now holds b, and if it was a write that nobody else does.
func (s *PrivateStacks) share(stack *privateStack, b uint64, write bool) {
	holder := s.holders.slot(b)
	me := stack.number + 1
	switch {
	case *holder == me:
	case *holder == coldPos:
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

// touch accesses t.Block and sets t's Kind, Dist and Time.
func (s *privateStack) touch(t *Touch) error {
	if s.order.full() {
		if s.order.live > maxLive {
			return ErrTooManyBlocks
		}
		s.order.compact(s.renumber)
	}
	slot := s.index.slot(t.Block)
	p := *slot
	*slot = s.order.now
	t.Kind, t.Dist, t.Time = model.Reuse, model.Infinite, model.Infinite
	switch p {
	case coldPos:
		t.Kind = model.Cold
	case invalidPos:
		t.Kind = model.Invalidated
	default:
		t.Time = s.order.since(p)
		if len(s.holes) == 0 || s.holes[0] < p {
			t.Dist = uint64(s.order.move(p))
		} else {
			t.Dist = uint64(s.order.above(p))
			s.order.move(s.holes[0])
			s.holes.replaceTop(p)
		}
		return nil
	}
	if len(s.holes) == 0 {
		s.order.push()
	} else {
		s.order.move(s.holes.pop())
	}
	return nil
}

// invalidate makes a hole of b if the stack holds it.
func (s *privateStack) invalidate(b uint64) {
	slot := s.index.lookup(b)
	if slot == nil || *slot == invalidPos {
		return
	}
	s.holes.push(*slot)
	*slot = invalidPos
}

func (s *privateStack) renumber(to *ranks) {
	s.index.renumber(to)
	for i, p := range s.holes {
		s.holes[i] = to.of(p) // keeps the order, and so the heap
	}
}

// holeHeap holds the positions of holes, the one nearest to the top first.
type holeHeap []uint32

func (h *holeHeap) push(p uint32) {
	*h = append(*h, p)
	s := *h
	i := len(s) - 1
	for i > 0 && s[(i-1)/2] < p {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = p
}

func (h *holeHeap) pop() uint32 {
	s := *h
	top, last := s[0], s[len(s)-1]
	*h = s[:len(s)-1]
	if len(*h) > 0 {
		h.replaceTop(last)
	}
	return top
}

func (h holeHeap) replaceTop(p uint32) {
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
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
