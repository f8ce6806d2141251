package trace

import (
	"context"
	"sync"

	"github.com/rdx-profiler/rdx/model"
)

// Live is a program that runs under the engine, read access by access: a
// AccessReader. The program waits while its accesses are not read.
type Live struct {
	cancel  context.CancelFunc
	batches chan []model.Access
	spare   chan []model.Access // batchRoom long each
	gone    chan struct{}       // closed when nobody reads any more
	once    sync.Once
	ended   chan struct{}
	result  Result
	err     error

	batch []model.Access
	whole []model.Access // of which batch is the rest
}

var _ BatchReader = (*Live)(nil)

// liveBatches is how many batches are under way.
const liveBatches = 4

// StartLive starts the program. Close must be called.
func StartLive(ctx context.Context, cmd Command, opt Options) *Live {
	ctx, cancel := context.WithCancel(ctx)
	l := &Live{
		cancel:  cancel,
		batches: make(chan []model.Access, liveBatches), spare: make(chan []model.Access, liveBatches),
		gone: make(chan struct{}), ended: make(chan struct{}),
	}
	for range liveBatches {
		l.spare <- make([]model.Access, batchRoom)
	}
	go func() {
		defer close(l.ended)
		defer close(l.batches)
		s := &batcher{each: l.hand, next: l.memory, buf: <-l.spare}
		l.result, l.err = run(ctx, cmd, opt, s)
		s.flush()
	}()
	return l
}

// hand hands a batch on; it cannot block, as there is room for all memory.
func (l *Live) hand(batch []model.Access) { l.batches <- batch }

// memory waits until the reader is done with a batch.
func (l *Live) memory() []model.Access {
	select {
	case b := <-l.spare:
		return b
	case <-l.gone:
		// Nobody reads any more: the rest is thrown away.
		select {
		case b := <-l.batches:
			return b[:batchRoom]
		case b := <-l.spare:
			return b
		}
	}
}

// NextBatch is the next accesses, nil if there are none. They stay valid until
// the next call.
func (l *Live) NextBatch() []model.Access {
	if l.whole != nil {
		l.spare <- l.whole[:batchRoom]
	}
	l.whole = <-l.batches
	l.batch = nil
	return l.whole
}

// Next reads the next access and reports whether there is one.
func (l *Live) Next() bool {
	if len(l.batch) > 1 {
		l.batch = l.batch[1:]
		return true
	}
	l.batch = l.NextBatch()
	return l.batch != nil
}

// Record returns the access that Next has read. Lines there are none.
func (l *Live) Record() (*model.Access, *BadLine) { return &l.batch[0], nil }

// Err is why the engine failed; nil if it did not. Valid when Next has
// returned false.
func (l *Live) Err() error {
	<-l.ended
	return l.err
}

// Result is how the program ended. Valid when Next has returned false.
func (l *Live) Result() Result {
	<-l.ended
	return l.result
}

// Close ends the program with SIGTERM, if it still runs, and waits for it.
func (l *Live) Close() {
	l.once.Do(func() { close(l.gone) })
	l.cancel()
	<-l.ended
}
