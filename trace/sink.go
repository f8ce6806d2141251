package trace

import "github.com/rdx-profiler/rdx/model"

// batchLen is how many accesses Run hands on at a time, about: few enough for
// a processor's second-level cache.
const batchLen = 1 << 11

// batcher hands accesses on in batches.
type batcher struct {
	each func([]model.Access)
	// next is the memory for the next batch, once each has had one; nil if it
	// is free again.
	next func() []model.Access
	buf  []model.Access // batchRoom long
	n    int
}

// batchRoom is the length of a batch's memory: with the last entry it may be
// longer than it should.
const batchRoom = batchLen + 2*maxSites

func newBatcher(each func([]model.Access)) *batcher {
	return &batcher{each: each, buf: make([]model.Access, batchRoom)}
}

func (b *batcher) open(int) (sink, error) { return b, nil }

func (b *batcher) after(f func()) { f() }

func (b *batcher) enter(d *decoder, w []uint64, i int) (int, error) {
	for i < len(w) {
		g, next, err := d.whole(w, i)
		if err != nil {
			return 0, err
		}
		if g == nil {
			break
		}
		b.n += g.expand(b.buf[b.n:], w[i:next], d.reached(g, w, next), d.thread)
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
		if b.next != nil {
			b.buf = b.next()
		}
	}
}
