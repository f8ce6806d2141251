package sampler

import (
	"fmt"

	"github.com/elastic/go-perf"
)

// Tally counts, in one thread, what a source picks its samples from, by counters of
// its own: they do not interrupt, so that the kernel never stops them, as it does those
// that interrupt too often. It tells what the source missed meanwhile.
type Tally struct {
	counted Counted
	events  []*perf.Event
}

// OpenTally begins to count c in thread tid.
func OpenTally(c Counted, tid int) (*Tally, error) {
	events, err := openCounting(c, tid)
	if err != nil {
		return nil, fmt.Errorf("count %s in thread %d: %w", c.Unit, tid, err)
	}
	return &Tally{c, events}, nil
}

// Read is what has been counted, and how many nanoseconds of the thread's it lags
// behind. It fails if others have the counters.
func (t *Tally) Read() (value, lag uint64, err error) { return readCounting(t.counted, t.events) }

// Close ends the counting, if there is any.
func (t *Tally) Close() error {
	if t == nil {
		return nil
	}
	return closeAll(t.events)
}
