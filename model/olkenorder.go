package model

import "math/bits"

// recency keeps a set of positions in the order they were handed out: each
// push or move sets the next bit of a bitmap, a move clears the bit that was
// set before. Counts over runs of bits make "how many live positions are above
// this one" and "which is the k-th from the top" logarithmic.
//
// It knows nothing of blocks: Olken maps blocks to positions, the generator
// positions to blocks.
type recency struct {
	// Positions 1..now-1 have been handed out (0 is left free to mean none);
	// the bitmap has room for those below end, a multiple of runBits.
	now, end uint32
	live     uint32 // bits set

	bitmap []uint64
	// The open run is the one that holds now. Its bits are not in the tree
	// yet, which makes moves from near the top and every push cheap.
	openLive uint32
	// right[i] is the number of live bits under the right child of node i of
	// a complete binary tree (root 1) over the closed runs.
	right  []uint32
	leaves uint32
}

const (
	runShift = 9 // a run is one cache line of bitmap
	runBits  = 1 << runShift
	runWords = runBits / 64

	minPositions = 1 << 15
	maxPositions = 1<<32 - runBits
	maxLive      = maxPositions / 4 * 3
)

func (r *recency) full() bool { return r.now == r.end }

func (r *recency) bytes() uint64 { return 8*uint64(cap(r.bitmap)) + 4*uint64(cap(r.right)) }

// reset makes live positions 1..live live and leaves room for about
// spread times as many, but at least minPositions.
func (r *recency) reset(live, spread uint32) {
	n := max(uint64(live)*uint64(spread), minPositions)
	n = min((n+runBits-1)&^(runBits-1), maxPositions)
	r.bitmap = cleared(r.bitmap, int(n/64))
	r.end = uint32(n)
	r.leaves = uint32(1) << bits.Len64(n/runBits-1)
	r.right = cleared(r.right, int(r.leaves))
	r.now, r.live, r.openLive = 1, 0, 0
	for range live {
		r.push()
	}
}

// cleared returns n zeros, in the memory of s where that is large enough but
// not wastefully so.
func cleared[E uint32 | uint64](s []E, n int) []E {
	if cap(s) < n || cap(s) > 2*n {
		return make([]E, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// push makes position now live. The bitmap must not be full.
func (r *recency) push() {
	r.live++
	r.advance()
}

func (r *recency) advance() {
	now := r.now
	r.bitmap[now/64] |= 1 << (now % 64)
	r.openLive++
	r.now = now + 1
	if r.now%runBits == 0 {
		r.close(now >> runShift)
	}
}

// move replaces the live position p by position now and returns how many live
// positions were above p. The bitmap must not be full.
func (r *recency) move(p uint32) uint32 {
	now := r.now
	run, w := p>>runShift, p/64
	word := r.bitmap[w]
	bit := uint64(1) << (p % 64)
	r.bitmap[w] = word &^ bit
	n := uint32(bits.OnesCount64(word & (-bit << 1))) // the positions after p
	if run == now>>runShift {
		for _, x := range r.bitmap[w+1 : now/64+1] {
			n += uint32(bits.OnesCount64(x))
		}
		r.openLive--
	} else {
		for _, x := range r.bitmap[w+1 : (run+1)*runWords] {
			n += uint32(bits.OnesCount64(x))
		}
		n += r.remove(run) + r.openLive
	}
	r.advance()
	return n
}

// remove takes one live bit out of a closed run and returns the number of
// live bits in the closed runs after it.
func (r *recency) remove(run uint32) uint32 {
	var after uint32
	right := r.right
	for i := run + r.leaves; i > 1; i >>= 1 {
		// Left child: the right one counts. Right child: one fewer there.
		isRight := i & 1
		n := &right[i>>1]
		after += *n & (isRight - 1)
		*n -= isRight
	}
	return after
}

// above is the number of live positions above the live position p.
func (r *recency) above(p uint32) uint32 {
	run, w := p>>runShift, p/64
	n := uint32(bits.OnesCount64(r.bitmap[w] >> (p % 64) >> 1))
	// Bits from now on are clear, so that a whole run can be counted.
	for _, x := range r.bitmap[w+1 : (run+1)*runWords] {
		n += uint32(bits.OnesCount64(x))
	}
	if run == r.now>>runShift {
		return n
	}
	for i := run + r.leaves; i > 1; i >>= 1 {
		if i&1 == 0 {
			n += r.right[i>>1]
		}
	}
	return n + r.openLive
}

// close enters the open run into the tree.
func (r *recency) close(run uint32) {
	for i := run + r.leaves; i > 1; i >>= 1 {
		if i&1 == 1 {
			r.right[i>>1] += r.openLive
		}
	}
	r.openLive = 0
}

// nth returns the live position that has k live ones above it; k < live.
func (r *recency) nth(k uint32) uint32 {
	w := r.now / 64
	if r.now == r.end {
		w--
	}
	if k >= r.openLive {
		k -= r.openLive
		i := uint32(1)
		for i < r.leaves {
			// Right if k < n, else left with k-n; without a branch, as it
			// cannot be predicted.
			n := r.right[i]
			_, isRight := bits.Sub32(k, n, 0)
			i = 2*i + isRight
			k -= n & (isRight - 1)
		}
		w = (i-r.leaves)*runWords + runWords - 1
	}
	for {
		n := uint32(bits.OnesCount64(r.bitmap[w]))
		if k < n {
			return w*64 + selectBit(r.bitmap[w], n-1-k)
		}
		k -= n
		w--
	}
}

// selectBit returns the index of the bit of x that has k set bits below it.
func selectBit(x uint64, k uint32) uint32 {
	var at uint32
	for half := uint32(32); half > 0; half /= 2 {
		n := uint32(bits.OnesCount64(x & (1<<half - 1)))
		if k >= n {
			k -= n
			x >>= half
			at += half
		}
	}
	return at
}

// each calls f with the live positions from the bottom up.
func (r *recency) each(f func(p uint32)) {
	for w, word := range r.bitmap {
		for ; word != 0; word &= word - 1 {
			f(uint32(w*64 + bits.TrailingZeros64(word)))
		}
	}
}

// rank returns a function from a live position to the number of live ones up
// to it, itself included: the positions they have after reset.
func (r *recency) rank() func(p uint32) uint32 {
	before := make([]uint32, len(r.bitmap)/runWords)
	var n uint32
	for w, word := range r.bitmap {
		if w%runWords == 0 {
			before[w/runWords] = n
		}
		n += uint32(bits.OnesCount64(word))
	}
	return func(p uint32) uint32 {
		w, run := p/64, p>>runShift
		n := before[run] + uint32(bits.OnesCount64(r.bitmap[w]<<(63-p%64)))
		for _, x := range r.bitmap[run*runWords : w] {
			n += uint32(bits.OnesCount64(x))
		}
		return n
	}
}
