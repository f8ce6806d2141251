package exact

import (
	"math/bits"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// timedOrder is a recency that knows when each live position was handed out,
// where each position handed out is one access.
type timedOrder struct {
	recency
	clock
	// untimed: nobody asks for times, and old is empty.
	untimed bool
	// keepUses: oldUses lists the positions below base of blocks that were touched again, in their order.
	keepUses bool
	oldUses  []uint32
}

// clock is when positions were handed out. Only a compaction changes it.
type clock struct {
	// A position at or above base was handed out at time
	// baseTime+position-base, those below have theirs in old.
	base     uint32
	baseTime uint64
	old      timeList
}

// A bitmap of eight times the blocks makes compaction cost each access a
// seventh of one renumbering, and the bitmap one byte a block.
const olkenSpread = 8

func (o *timedOrder) init() {
	o.begin(0)
	o.baseTime = 0
	o.old = timeList{low: o.old.low[:0], wraps: o.old.wraps[:0]}
}

func (o *timedOrder) bytes() uint64 { return o.recency.bytes() + o.old.bytes() }

// elapsed is the number of positions ever handed out.
func (o *timedOrder) elapsed() uint64 { return o.baseTime + uint64(o.now-o.base) }

// at is the number of accesses before the one that got live position p.
func (o *timedOrder) at(p uint32) uint64 {
	if p >= o.base {
		return o.baseTime + uint64(p-o.base)
	}
	return o.old.at(p - 1)
}

// since is the number of accesses from the one that got live position p to
// the one that gets position now.
func (o *timedOrder) since(p uint32) uint64 { return o.sinceAt(p, o.now) }

// sinceAt is since at a time at which position now was the next to be handed
// out, but not before the last compaction.
func (c *clock) sinceAt(p, now uint32) uint64 {
	if p >= c.base {
		return uint64(now - p)
	}
	return c.baseTime + uint64(now-c.base) - c.old.at(p-1)
}

// touch moves the blocks whose positions the slots hold to the top, one after
// the other, and sets what Olken.Touch says. A run says in its upper bits how
// many more touches of its block follow the first one. There must be room for
// maxRun positions each.
func (o *timedOrder) touch(slots []*uint32, runs []uint8, dist, time []uint64) {
	for len(slots) > 0 {
		n := o.touchWord(slots, runs, dist, time)
		slots, runs, dist, time = slots[n:], runs[n:], dist[n:], time[n:]
	}
}

// touchWord is touch for those that end in the same word of the bitmap as the
// first one, and returns their number. That word and the one before it are kept
// in registers and counted in no sum meanwhile: most accesses are to what was
// accessed just before, and cost no branch.
func (o *timedOrder) touchWord(slots []*uint32, runs []uint8, dist, time []uint64) int {
	now := o.now
	w, first, older, newer := o.openWords(runs[0])
	from, width := first*64, w*64+64-first*64
	runs, dist, time = runs[:len(slots)], dist[:len(slots)], time[:len(slots)]
	n := len(slots)
	for i, slot := range slots {
		last := now + uint32(runs[i]>>1)
		if last/64 != w {
			n = i
			break
		}
		p := *slot
		*slot = last
		if p-from < width { // not for coldPos
			s := p - w*64 + 64 // 64 and above: in newer
			dist[i] = above(older, newer, s)
			time[i] = uint64(now - p)
			older &^= 1 << s
			newer &^= 1 << (s - 64) // nothing if s is below
		} else if p == coldPos {
			o.live++
			dist[i], time[i] = model.Infinite, model.Infinite
		} else {
			if o.now = now; !o.untimed {
				time[i] = o.since(p)
			}
			o.noteUse(p)
			o.now = last
			dist[i] = uint64(int(o.take(p)) + bits.OnesCount64(older) + bits.OnesCount64(newer))
		}
		newer |= 1 << (last % 64)
		now = last + 1
	}
	o.closeWords(w, first, older, newer, now)
	return n
}

// openWords takes the word that a run ends in and the one before out of the sums. first is w
// where there is none before: only words of the open run can be changed like this, and only
// positions from the base on, which is a word's first, are times.
func (o *timedOrder) openWords(run uint8) (w, first uint32, older, newer uint64) {
	w = (o.now + uint32(run>>1)) / 64
	if w > o.now/64 {
		o.extend(w*64-o.now, nil)
	}
	first = max(w&^(runWords-1), w-1, o.base/64)
	if first < w {
		older = o.uncount(first)
	}
	return w, first, older, o.uncount(w)
}

// closeWords puts them back as they are now, with the position to be handed out next.
func (o *timedOrder) closeWords(w, first uint32, older, newer uint64, now uint32) {
	if first < w {
		o.recount(first, older)
	}
	o.recount(w, newer)
	o.now = now
	if now%runBits == 0 {
		o.close(w / runWords)
	}
}

// above is how many positions of the two words are above s, which counts from the older one's first.
func above(older, newer uint64, s uint32) uint64 {
	return uint64(bits.OnesCount64(older>>(s+1)) + bits.OnesCount64(newer>>(max(s, 63)-63)))
}

// noteUse notes that the block at position p was touched again.
func (o *timedOrder) noteUse(p uint32) {
	if o.keepUses && p < o.base {
		o.oldUses = append(o.oldUses, p)
	}
}

// compact moves the live positions together so that new ones fit. renumber is
// called with what the live positions become; nothing else may be live.
func (o *timedOrder) compact(renumber func(to *ranks)) {
	elapsed := o.elapsed()
	if !o.untimed {
		times := o.old.rewriter(int(o.live))
		for w, word := range o.bitmap {
			if p := uint32(w) * 64; p >= o.base {
				times.putWord(o.baseTime+uint64(p-o.base), word)
			} else {
				times.keepWord(int(p)-1, word)
			}
		}
		o.old = times.done()
	}
	renumber(o.ranks())
	o.begin(o.live)
	o.baseTime = elapsed
}

// begin makes positions 1..live live, and the next word's first the base.
func (o *timedOrder) begin(live uint32) {
	o.reset(live, olkenSpread)
	o.extend(-o.now%64, nil)
	o.base = o.now
}

// timeList is a list of increasing 64-bit times in 4 bytes each: the low
// halves, and the indexes at which the high half goes up.
type timeList struct {
	low []uint32
	// wraps[k] is the index of the first time whose high half is above k.
	wraps []uint32
}

func (l *timeList) bytes() uint64 { return 4 * uint64(cap(l.low)+cap(l.wraps)) }

func (l *timeList) at(i uint32) uint64 {
	high, _ := slices.BinarySearch(l.wraps, i+1) // wraps at or before i
	return uint64(high)<<32 | uint64(l.low[i])
}

// timeRewriter replaces a list by a later one in the same memory: entries
// taken out must have been asked for, in order, before their place is reused.
type timeRewriter struct {
	from, to timeList
	high     int
}

func (l *timeList) rewriter(n int) *timeRewriter {
	low := l.low[:cap(l.low)]
	if len(low) < n {
		low = make([]uint32, n)
		copy(low, l.low)
	}
	return &timeRewriter{
		from: timeList{low: low, wraps: l.wraps},
		to:   timeList{low: low[:0]},
	}
}

// next is from.at for indexes that increase from call to call.
func (r *timeRewriter) next(i uint32) uint64 {
	for r.high < len(r.from.wraps) && r.from.wraps[r.high] <= i {
		r.high++
	}
	return uint64(r.high)<<32 | uint64(r.from.low[i])
}

func (r *timeRewriter) put(t uint64) {
	for uint64(len(r.to.wraps)) < t>>32 {
		r.to.wraps = append(r.to.wraps, uint32(len(r.to.low)))
	}
	r.to.low = append(r.to.low, uint32(t))
}

// keepWord puts those of the old times from index first on whose bits are set.
func (r *timeRewriter) keepWord(first int, word uint64) {
	if r.high < len(r.from.wraps) || r.high > len(r.to.wraps) {
		for ; word != 0; word &= word - 1 {
			r.put(r.next(uint32(first + bits.TrailingZeros64(word))))
		}
		return
	}
	for to := r.room(word); word != 0; word &= word - 1 {
		to[0] = r.from.low[first+bits.TrailingZeros64(word)]
		to = to[1:]
	}
}

// putWord puts the times from first on whose bits are set.
func (r *timeRewriter) putWord(first, word uint64) {
	if uint64(len(r.to.wraps)) < (first+63)>>32 {
		for ; word != 0; word &= word - 1 {
			r.put(first + uint64(bits.TrailingZeros64(word)))
		}
		return
	}
	for to := r.room(word); word != 0; word &= word - 1 {
		to[0] = uint32(first) + uint32(bits.TrailingZeros64(word))
		to = to[1:]
	}
}

// room appends as many low halves as the word has bits, and returns them.
func (r *timeRewriter) room(word uint64) []uint32 {
	n := len(r.to.low)
	r.to.low = r.to.low[:n+bits.OnesCount64(word)]
	return r.to.low[n:]
}

func (r *timeRewriter) done() timeList { return r.to }
