package exact

import "errors"

// ErrTooManyBlocks says that a trace touches more distinct blocks than the
// exact analyser can number (about 3e9).
var ErrTooManyBlocks = errors.New("exact stack: too many distinct blocks (consider: a larger block size)")

// Olken computes exact LRU stack distances and reuse times of a stream of
// block numbers, in O(log n) an access and about 20 bytes a distinct block.
//
// It is F. Olken's algorithm (LBL-12370, 1981): the stack distance of a reuse
// is the number of blocks whose last access lies after the use. The search
// tree over last accesses is replaced by a bitmap over time with counts; when
// that is full its live bits are moved together, which keeps their order.
//
// Where the processor has AVX2, the blocks on top of the stack are kept as they are,
// see vectorStack.
//
// The zero value is not usable; see NewOlken. An Olken is for one goroutine.
type Olken struct {
	index   blockIndex
	order   timedOrder
	vectors *vectorStack // nil if there is none
	tooMany bool

	moved   func(to *ranks)     // called when positions are moved together; nil if nobody needs to know
	single  [vectorChunk]uint8  // runs of one touch
	unasked [vectorChunk]uint64 // times that nobody asked for
}

const (
	// batch is the number of look-ups done ahead of the counting. They do
	// not depend on each other, so their cache misses overlap.
	batch = 64
	// maxRun is the number of touches that a run has at most.
	maxRun = 64
)

// NewOlken returns an empty stack.
func NewOlken() *Olken {
	o := &Olken{}
	o.index.init()
	o.order.least = batch * maxRun
	o.order.init()
	if haveAVX2 {
		o.vectors = &vectorStack{index: &o.index}
		o.vectors.clear()
	}
	return o
}

// Reset empties the stack and keeps its memory.
func (o *Olken) Reset() {
	o.index.clear()
	o.order.init()
	if o.vectors != nil {
		o.vectors.clear()
	}
	o.tooMany = false
}

// Blocks is the number of distinct blocks touched so far.
func (o *Olken) Blocks() uint64 { return uint64(o.order.live) }

// Accesses is the number of blocks touched so far, repetitions included.
func (o *Olken) Accesses() uint64 { return o.order.baseTime + uint64(o.position()-o.order.base) }

// Bytes is the memory held, in bytes.
func (o *Olken) Bytes() uint64 { return o.index.bytes() + o.order.bytes() }

// Touch accesses the blocks in their order. For blocks[i] it sets dist[i] to
// the number of distinct blocks touched since its previous access and time[i]
// to the number of accesses since (1 if it was the one before); both are
// Infinite at a first access. dist and time must be as long as blocks; time
// may be nil. It does not allocate except to grow with the number of blocks.
//
// The only error is ErrTooManyBlocks; it is permanent and leaves dist and
// time undefined.
func (o *Olken) Touch(blocks, dist, time []uint64) error {
	for len(blocks) > 0 {
		n := min(len(blocks), vectorChunk)
		times := o.unasked[:n]
		if time != nil {
			times, time = time[:n], time[n:]
		}
		if err := o.touch(blocks[:n], o.single[:n], dist[:n], times); err != nil {
			return err
		}
		blocks, dist = blocks[n:], dist[n:]
	}
	return nil
}

// touch is Touch for runs of touches of one block, see Touches; dist and time
// are those of the first touch of each.
func (o *Olken) touch(blocks []uint64, runs []uint8, dist, time []uint64) error {
	for len(blocks) > 0 {
		if o.tooMany {
			return ErrTooManyBlocks
		}
		n := o.touchSome(blocks, runs, dist, time)
		blocks, runs, dist, time = blocks[n:], runs[n:], dist[n:], time[n:]
		o.makeRoom()
	}
	return nil
}

// touchSome is touch for the first of the runs, and returns their number. makeRoom must follow.
func (o *Olken) touchSome(blocks []uint64, runs []uint8, dist, time []uint64) (n int) {
	f := o.vectors
	if f != nil && f.off == 0 {
		return o.touchVector(blocks, runs, dist, time)
	}
	var slots [batch]*uint32
	n = o.index.find(blocks[:min(len(blocks), batch)], &slots)
	o.order.touch(slots[:n], runs[:n], dist[:n], time[:n])
	if f != nil {
		f.off -= min(f.off, n)
	}
	return n
}

// makeRoom leaves as many positions as touch and touchVector may need.
func (o *Olken) makeRoom() {
	if o.order.end-o.position() < batch*maxRun {
		o.settle()
		o.compact()
	}
}

// LastAccesses calls f with the number of accesses that came before the last
// one to each block, in increasing order.
func (o *Olken) LastAccesses(f func(before uint64)) {
	o.settle()
	o.order.each(func(p uint32) { f(o.order.at(p)) })
}

// compact moves the live positions together so that new ones fit.
func (o *Olken) compact() {
	if o.order.live > maxLive {
		o.tooMany = true
		return
	}
	o.order.compact(func(to *ranks) {
		o.index.renumber(to)
		if o.moved != nil {
			o.moved(to)
		}
	})
}
