package trace

import "sync/atomic"

// pipe hands batches to another goroutine, and takes their memory back.
type pipe[B any] struct {
	full  chan B
	spare chan B
}

func newPipe[B any](empty func() B) pipe[B] {
	p := pipe[B]{full: make(chan B, touchBatches), spare: make(chan B, touchBatches)}
	for range touchBatches {
		p.spare <- empty()
	}
	return p
}

// hand calls each with the batches on another goroutine, until end is called, which flushes the last.
func (p *pipe[B]) hand(each func(B), flush func()) (end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := range p.full {
			each(b)
			p.spare <- b
		}
	}()
	return func() {
		flush()
		close(p.full)
		<-done
	}
}

// readBatches has t take all that is left of a source, which start hands on to each on another goroutine. Its first error
// ends the reading.
func readBatches[B any](s *Source, start func(func(B)) func(), t entryTaker, each func(B) error) error {
	var failed atomic.Pointer[error]
	end := start(func(b B) {
		if failed.Load() == nil {
			if err := each(b); err != nil {
				failed.Store(&err)
			}
		}
	})
	for s.err == nil && failed.Load() == nil {
		_, _, s.err = s.r.advance(func(b *blockReader) (int, error) { return b.touch(t) })
	}
	end()
	if err := failed.Load(); err != nil {
		return *err
	}
	return s.Err()
}
