package exact

import "github.com/rdx-profiler/rdx/model"

// Touch is one block touched by one access, and what became of the thread's
// previous use of it.
type Touch struct {
	Block  uint64
	PC     uint64
	Thread int32
	Op     model.Op
	// Kind is Reuse, Cold, or Invalidated: another thread wrote the block
	// since this thread's use (private stacks only).
	Kind model.Kind
	Dist uint64 // stack distance in blocks; Infinite unless Kind is Reuse
	Time uint64 // touches of the same stack since the use; Infinite unless Kind is Reuse
}

// Stacks is an exact analysis of the accesses of many threads.
type Stacks interface {
	// Add analyses the next accesses in the order in which they happened and
	// calls f with each block they touch, the lowest of an access first. f
	// must not keep the Touch. The only error is ErrTooManyBlocks.
	Add(accesses []model.Access, f func(*Touch)) error
}

// SharedStack is one LRU stack for all threads, their accesses interleaved as
// they come: the model of a shared cache (Schuff et al., section 2). A reuse
// is a reuse whichever thread made the use.
type SharedStack struct {
	gran  model.Granularity
	olken *Olken
}

// NewSharedStack returns an empty stack for blocks of the given number of
// bytes, a power of two.
func NewSharedStack(blockBytes int) (*SharedStack, error) {
	g, err := model.NewGranularity(blockBytes)
	if err != nil {
		return nil, err
	}
	return &SharedStack{g, NewOlken()}, nil
}

// Add implements Stacks.
func (s *SharedStack) Add(accesses []model.Access, f func(*Touch)) error {
	var (
		t                  Touch
		blocks, dist, time [exactChunk]uint64
		access             [exactChunk]int // index of the access that touches blocks[i]
		n                  int
	)
	flush := func() error {
		if err := s.olken.Touch(blocks[:n], dist[:n], time[:n]); err != nil {
			return err
		}
		for i := range n {
			a := &accesses[access[i]]
			t = Touch{Block: blocks[i], PC: a.PC, Thread: a.Thread, Op: a.Op, Dist: dist[i], Time: time[i]}
			if dist[i] == model.Infinite {
				t.Kind = model.Cold
			}
			f(&t)
		}
		n = 0
		return nil
	}
	for i := range accesses {
		b, last := s.gran.Span(&accesses[i])
		for ; ; b++ {
			blocks[n], access[n] = b, i
			if n++; n == exactChunk {
				if err := flush(); err != nil {
					return err
				}
			}
			if b == last {
				break
			}
		}
	}
	return flush()
}
