package trace

import (
	"context"
	"sync"

	"github.com/rdx-profiler/rdx/model"
)

// Live is a program that runs under the engine, read access by access: a
// model.TraceReader. The program waits while its accesses are not read.
type Live struct {
	cancel  context.CancelFunc
	batches chan []model.Access
	spare   chan []model.Access
	gone    chan struct{} // closed when nobody reads any more
	once    sync.Once
	ended   chan struct{}
	result  Result
	err     error

	batch []model.Access
	whole []model.Access // of which batch is the rest
}

var _ model.TraceReader = (*Live)(nil)

// StartLive starts the program. Close must be called.
func StartLive(ctx context.Context, cmd Command, opt Options) *Live {
	ctx, cancel := context.WithCancel(ctx)
	l := &Live{
		cancel:  cancel,
		batches: make(chan []model.Access, 2), spare: make(chan []model.Access, 4),
		gone: make(chan struct{}), ended: make(chan struct{}),
	}
	go func() {
		defer close(l.ended)
		defer close(l.batches)
		l.result, l.err = Run(ctx, cmd, opt, l.hand)
	}()
	return l
}

func (l *Live) hand(batch []model.Access) {
	var b []model.Access
	select {
	case b = <-l.spare:
	default:
	}
	select {
	case l.batches <- append(b[:0], batch...):
	case <-l.gone:
	}
}

// Next reads the next access and reports whether there is one.
func (l *Live) Next() bool {
	if len(l.batch) > 1 {
		l.batch = l.batch[1:]
		return true
	}
	if l.whole != nil {
		select {
		case l.spare <- l.whole:
		default:
		}
	}
	l.whole = <-l.batches
	l.batch = l.whole
	return l.batch != nil
}

// Record returns the access that Next has read. Lines there are none.
func (l *Live) Record() (*model.Access, *model.BadLine) { return &l.batch[0], nil }

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
