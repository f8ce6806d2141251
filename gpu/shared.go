package gpu

import (
	"sync"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
)

// SharedStack is exact.SharedStack on a GPU: each touch by itself, told of late, in their order, and on another goroutine.
type SharedStack struct {
	*Session
	gran   model.Granularity
	each   func(*exact.Touch)
	filled batch
	singly []uint8

	mu     sync.Mutex
	queue  []batch // of which nothing was found yet
	spare  []batch
	behind int // touches of queue[0] that were told of
}

// batch is touches on their way.
type batch struct {
	blocks []uint64
	of     []toucher
}

// toucher is whose touch it is.
type toucher struct {
	pc     uint64
	thread int32
	op     model.Op
}

// eachSegment is how many touches are analysed at once where each one is told of: what is kept of them here is 32 bytes each.
const eachSegment = 1 << 20

// NewSharedStack starts an analysis that calls each with all touches.
func NewSharedStack(blockBytes int, c Config, each func(*exact.Touch)) (*SharedStack, error) {
	g, err := model.NewGranularity(blockBytes)
	if err != nil {
		return nil, err
	}
	if c.Segment == 0 {
		c.Segment = eachSegment
	}
	s := &SharedStack{gran: g, each: each, singly: make([]uint8, SlotRuns)}
	s.Session, err = StartSession(Start{Device: c.Device, Edges: []uint64{0}, Untimed: true, Segment: c.Segment, Each: true}, c.Segment, s.tell)
	return s, err
}

// Add analyses the next accesses.
func (s *SharedStack) Add(accesses []model.Access) error {
	for i := range accesses {
		a := &accesses[i]
		for b, last := s.gran.Span(a); ; b++ {
			s.filled.blocks = append(s.filled.blocks, b)
			s.filled.of = append(s.filled.of, toucher{a.PC, a.Thread, a.Op})
			if len(s.filled.blocks) == SlotRuns {
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

func (s *SharedStack) flush() error {
	b := s.filled
	s.mu.Lock()
	s.queue = append(s.queue, b)
	s.filled = batch{}
	if n := len(s.spare); n > 0 {
		s.filled, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	s.mu.Unlock()
	return s.Touch(b.blocks, s.singly[:len(b.blocks)])
}

// tell is called by the session.
func (s *SharedStack) tell(dists, times []uint64) {
	var t exact.Touch
	for len(dists) > 0 {
		s.mu.Lock()
		b := s.queue[0]
		s.mu.Unlock()
		blocks, of := b.blocks[s.behind:], b.of[s.behind:]
		n := min(len(dists), len(blocks))
		for i, d := range dists[:n] {
			t = exact.Touch{Block: blocks[i], PC: of[i].pc, Thread: of[i].thread, Op: of[i].op, Dist: d, Time: times[i]}
			if d == model.Infinite {
				t.Kind = model.Cold
			}
			s.each(&t)
		}
		dists, times = dists[n:], times[n:]
		if s.behind += n; s.behind < len(b.blocks) {
			continue
		}
		s.behind = 0
		s.mu.Lock()
		s.queue = s.queue[1:]
		s.spare = append(s.spare, batch{b.blocks[:0], b.of[:0]})
		s.mu.Unlock()
	}
}

// Finish waits until all touches were told of.
func (s *SharedStack) Finish() error {
	defer s.Close()
	if len(s.filled.blocks) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	_, err := s.Session.Finish()
	return err
}
