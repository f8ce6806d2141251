package exact

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
	least    uint32 // room that a reset leaves at least

	bitmap []uint64
	// later holds, for each run, seven numbers of 9 bits: the k-th is how many
	// live bits the run has after its word k. It saves counting word by word.
	later []uint64
	// The open run is the one that holds now. Its bits are not in the tree
	// yet, which makes moves from near the top and every push cheap.
	openLive uint32
	closed   runTree // the closed runs' live bits
}

const (
	runShift = 9 // a run is one cache line of bitmap
	runBits  = 1 << runShift
	runWords = runBits / 64

	// laterBits is the width of a number in recency.later, which is at most
	// 7*64.
	laterBits = 9

	minPositions = 1 << 15
	maxPositions = 1<<32 - runBits
	maxLive      = maxPositions / 4 * 3
)

// before[k] is 1 in each number of recency.later that counts word k.
var before = func() (b [runWords]uint64) {
	for k := 1; k < runWords; k++ {
		b[k] = b[k-1] | 1<<(laterBits*(k-1))
	}
	return b
}()

func (r *recency) full() bool { return r.now == r.end }

func (r *recency) bytes() uint64 {
	return 8*uint64(cap(r.bitmap)+cap(r.later)) + r.closed.bytes()
}

// reset makes live positions 1..live live and leaves room for about
// spread times as many, but at least minPositions, and r.least more from the
// next word on.
func (r *recency) reset(live, spread uint32) {
	n := max(uint64(live)*uint64(spread), minPositions, uint64(live)+64+uint64(r.least))
	n = min((n+runBits-1)&^(runBits-1), maxPositions)
	r.bitmap = cleared(r.bitmap, int(n/64))
	r.later = cleared(r.later, int(n/runBits))
	r.end = uint32(n)
	r.closed.reset(n / runBits)
	r.now, r.live, r.openLive = 1, live, 0
	r.putNext(live)
}

// putNext makes the next n positions live, and leaves live as it is.
func (r *recency) putNext(n uint32) {
	for n > 0 {
		n -= r.putWord(n)
	}
}

// putWord is putNext, but not of more than a word has room for; it returns how many.
func (r *recency) putWord(n uint32) uint32 {
	w := r.now / 64
	n = min(n, 64-r.now%64)
	r.enter(w, (1<<n-1)<<(r.now%64), n)
	r.now += n
	if r.now%runBits == 0 {
		r.close(w / runWords)
	}
	return n
}

// cleared returns n zeros, in the memory of s where that is large enough but
// not wastefully so.
func cleared[E uint64 | treeNode](s []E, n int) []E {
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
	w := now / 64
	r.bitmap[w] |= 1 << (now % 64)
	r.later[w/runWords] += before[w%runWords]
	r.openLive++
	r.now = now + 1
	if r.now%runBits == 0 {
		r.close(now >> runShift)
	}
}

// put makes position p live, which is now or after it, and leaves live as it is.
func (r *recency) put(p uint32) {
	r.closeBefore(p)
	r.now = p
	r.advance()
}

// putAll is put of from more than each of the offsets, which increase.
func (r *recency) putAll(offsets []uint32, from uint32) {
	for len(offsets) > 0 {
		last := offsets[0] + from
		w := last / 64
		word := uint64(1) << (last % 64)
		n := 1
		for ; n < len(offsets); n++ {
			p := offsets[n] + from
			if p/64 != w {
				break
			}
			word |= 1 << (p % 64)
			last = p
		}
		offsets = offsets[n:]
		r.closeBefore(last)
		r.enter(w, word, uint32(n))
		if r.now = last + 1; r.now%runBits == 0 {
			r.close(last >> runShift)
		}
	}
}

// move replaces the live position p by position now and returns how many live
// positions were above p. The bitmap must not be full.
func (r *recency) move(p uint32) uint32 {
	n := r.take(p)
	r.advance()
	return n
}

// take makes the live position p free and returns how many live positions are
// above it. It leaves live as it is.
func (r *recency) take(p uint32) uint32 {
	w := p / 64
	run := w / runWords
	word := r.bitmap[w]
	bit := uint64(1) << (p % 64)
	r.bitmap[w] = word &^ bit
	later := r.later[run]
	r.later[run] = later - before[w%runWords]
	n := uint32(bits.OnesCount64(word&(-bit<<1))) + uint32(later>>(laterBits*(w%runWords)))%(1<<laterBits)
	if run == r.now>>runShift {
		r.openLive--
		return n
	}
	return n + r.closed.remove(run) + r.openLive
}

// uncount takes a word of the open run out of the sums and returns its bits;
// recount puts it back with other bits.
func (r *recency) uncount(w uint32) uint64 {
	word := r.bitmap[w]
	n := uint32(bits.OnesCount64(word))
	r.bitmap[w] = 0
	r.later[w/runWords] -= before[w%runWords] * uint64(n)
	r.openLive -= n
	return word
}

func (r *recency) recount(w uint32, word uint64) { r.enter(w, word, uint32(bits.OnesCount64(word))) }

// enter makes the n bits of word live in a word of the open run that has none of them.
func (r *recency) enter(w uint32, word uint64, n uint32) {
	r.bitmap[w] |= word
	r.later[w/runWords] += before[w%runWords] * uint64(n)
	r.openLive += n
}

// extend hands out n positions at once and makes those live that are now+offset
// for the offsets, which increase and are below n. There must be room for n.
func (r *recency) extend(n uint32, offsets []uint32) {
	end := r.now + n
	r.putAll(offsets, r.now)
	r.closeBefore(end)
	r.now = end
}

// above is the number of live positions above the live position p.
func (r *recency) above(p uint32) uint32 {
	run, w := p>>runShift, p/64
	n := uint32(bits.OnesCount64(r.bitmap[w]>>(p%64)>>1)) + uint32(r.later[run]>>(laterBits*(w%runWords)))%(1<<laterBits)
	if run == r.now>>runShift {
		return n
	}
	return n + r.closed.after(run) + r.openLive
}

// closeBefore closes the runs from the open one on that end before position p.
func (r *recency) closeBefore(p uint32) {
	if r.now>>runShift < p>>runShift { // here, so that the usual case is no call
		r.closeRuns(p >> runShift)
	}
}

func (r *recency) closeRuns(end uint32) {
	for run := r.now >> runShift; run < end; run++ {
		r.close(run)
	}
}

// close enters the open run into the tree.
func (r *recency) close(run uint32) {
	r.closed.add(run, r.openLive)
	r.openLive = 0
}

// nth returns the live position that has k live ones above it; k < live. No
// branch depends on where that is, as none of them could be predicted.
func (r *recency) nth(k uint32) uint32 {
	run, left := r.now>>runShift, uint64(k)
	if k >= r.openLive {
		var in uint32
		run, in = r.closed.find(k - r.openLive)
		left = uint64(in)
	}
	// Its word has at most left live bits after it, the ones before have more.
	later, w := r.later[run], uint64(0)
	for k := range runWords - 1 {
		_, more := bits.Sub64(left, later>>(laterBits*k)%(1<<laterBits), 0)
		w += more
	}
	left -= later >> (laterBits * w) % (1 << laterBits)
	word := r.bitmap[uint64(run)*runWords+w]
	return run*runBits + uint32(w)*64 + selectBit(word, uint64(bits.OnesCount64(word))-1-left)
}

// selectBit returns the index of the bit of x that has k set bits below it;
// there must be one. After Vigna, Broadword Implementation of Rank/Select
// Queries (WEA 2008).
func selectBit(x, k uint64) uint32 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := x - x>>1&0x5555555555555555
	n = n&0x3333333333333333 + n>>2&0x3333333333333333
	n = (n + n>>4) & 0x0f0f0f0f0f0f0f0f * ones // per byte: set bits in it and below
	at := 8 * bits.OnesCount64(((k*ones|tops)-n)&tops)
	k -= n << 8 >> at & 0xff
	return uint32(at) + uint32(bitOfByte[k&7][x>>at&0xff])
}

// bitOfByte[k][x] is the index of the bit of x that has k set bits below it.
var bitOfByte = func() (t [8][256]uint8) {
	for x := range 256 {
		k := 0
		for i := range 8 {
			if x>>i&1 == 1 {
				t[k][x] = uint8(i)
				k++
			}
		}
	}
	return t
}()

// each calls f with the live positions from the bottom up.
func (r *recency) each(f func(p uint32)) {
	for w, word := range r.bitmap {
		for ; word != 0; word &= word - 1 {
			f(uint32(w*64 + bits.TrailingZeros64(word)))
		}
	}
}

// ranks tells of live positions how many live ones there are up to each: the positions that
// they have after reset.
type ranks struct {
	bitmap []uint64
	below  []uint32 // by word of it: live positions in those before
}

func (r *recency) ranks() *ranks {
	below := make([]uint32, len(r.bitmap))
	var n uint32
	for w, word := range r.bitmap {
		below[w] = n
		n += uint32(bits.OnesCount64(word))
	}
	return &ranks{r.bitmap, below}
}

// of is that of position p, which is counted; 0 for 0.
func (r *ranks) of(p uint32) uint32 {
	w := p / 64
	return r.below[w] + uint32(bits.OnesCount64(r.bitmap[w]<<(63-p%64)))
}
