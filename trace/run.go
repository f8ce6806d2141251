package trace

import (
	"context"

	"github.com/rdx-profiler/rdx/model"
)

// batchLen is how many accesses Run hands on at a time, about.
const batchLen = 1 << 12

// Run runs a program under the engine and calls each with its accesses in the
// order in which they happened. The slice is reused: it is valid during the
// call only. Threads carry their kernel ids. With Options.Children the
// batches of several processes alternate; calls never overlap.
//
// The error is about the engine; how the program itself ended, and why
// accesses are missing if any are, is in the result.
func Run(ctx context.Context, cmd Command, opt Options, each func(batch []model.Access)) (Result, error) {
	s := &batcher{each: each}
	res, err := run(ctx, cmd, opt, s)
	s.flush()
	return res, err
}

type batcher struct {
	each func([]model.Access)
	buf  [batchLen + 2*maxSites]model.Access
	n    int
}

func (b *batcher) open(int) (sink, error) { return b, nil }

func (b *batcher) enter(d *decoder, w []uint64, i int) (int, error) {
	for i < len(w) {
		g, next := d.at(w, i)
		if g == nil {
			break
		}
		if next > len(w) {
			return 0, errShort(g.words, i, next, len(w))
		}
		b.n += g.expand(b.buf[b.n:], w[i+1:next], d.reached(g, w, next), d.thread)
		if b.n >= batchLen {
			b.flush()
		}
		i = next
	}
	return i, nil
}

func (b *batcher) flush() {
	if b.n > 0 {
		b.each(b.buf[:b.n])
		b.n = 0
	}
}
