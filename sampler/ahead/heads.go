package ahead

import (
	"math/bits"
	"slices"
)

// Heads say what comes when in a hold. A head is the beginning of what it tells of, so many touches as HeadSizes says, and of an
// access for each of these.
type Heads struct {
	Touches      int     // that the hold tells of
	Accesses     int     // that make them
	Instructions []int32 // of each head
	Met          []Met
	// Begun are the blocks that the hold first touches after a third and before half of what was read, up to HeadsReach times as far as
	// it tells of.
	Begun Uses
}

// Met are blocks that a hold first touches in the same head and in none before, and so often each.
type Met struct {
	Head, Uses uint8 // see UsesOf
	N          int32
}

// HeadSizes are the numbers of touches of the heads of so many: each an eighth more than the one before, the last all.
func HeadSizes(all int) (sizes []int) {
	for n := 1; n < all; n += max(1, n/8) {
		sizes = append(sizes, n)
	}
	return append(sizes, all)
}

// HeadsReach is how many times as far as a hold tells of it is looked at what comes when.
const HeadsReach = 3

// Uses counts blocks by how often they are touched within half of what was read.
type Uses [40]int32

// UsesOf is the place of so many touches, from one on: each number by itself up to 16, from there on four to an octave.
func UsesOf(n int) int {
	if n <= 16 {
		return n - 1
	}
	octave := bits.Len(uint(n)) // 5 and more
	return min(4*octave-4+int(uint(n)>>(octave-3)&3), len(Uses{})-1)
}

// HeadOf is the first of the heads of such sizes that has a touch.
func HeadOf(sizes []int, touch int) int {
	k, _ := slices.BinarySearch(sizes, touch+1)
	return k
}

// ReadsAll says whether so many touches are nearly as many as what comes when is looked at in, for a hold that tells of so many.
func ReadsAll(touches, told int) bool { return 10*touches >= 9*HeadsReach*told }

// behind is how many blocks are touched behind what is classified, up to HeadsReach times as far; ok says that nearly so much was read.
func (g *accessLog) behind() (n int, ok bool) {
	upTo := min(HeadsReach*g.classified, len(g.touches))
	if g.classified == 0 || !ReadsAll(upTo, g.classified) {
		return 0, false
	}
	for _, t := range g.touches[g.classified:upTo] {
		if int(t.prev) < g.classified {
			n++
		}
	}
	return n, true
}

// Behind is how many blocks the last Read has touched behind what it tells of, in twice as many touches, once Tell was called; ok says that nearly
// so much was read.
func (l *Locator) Behind() (blocks int, ok bool) { return l.log.behind() }

// headsOf counts in which heads touches are; nil where heads are not asked for.
func (g *accessLog) headsOf(touches []int32) []uint16 {
	if g.sizes == nil {
		return nil
	}
	n := make([]uint16, len(g.sizes))
	for _, t := range touches {
		n[HeadOf(g.sizes, int(t))]++
	}
	return n
}

// tellHeads says what comes when in what was classified; nil where that is nothing.
func (g *accessLog) tellHeads() *Heads {
	if g.classified == 0 {
		return nil
	}
	g.sizes = HeadSizes(g.classified)
	h := &Heads{Touches: g.classified, Accesses: int(g.touches[g.classified-1].at) + 1, Instructions: make([]int32, len(g.sizes))}
	for k, n := range g.sizes {
		h.Instructions[k] = g.all[g.touches[n-1].at].Inst + 1
	}
	upTo := min(len(g.touches), HeadsReach*g.classified) // else what is long ago and soon would hang on how far was read
	third, half := upTo/3, upTo/2
	g.begins, g.uses = slices.Grow(g.begins[:0], len(g.touches))[:len(g.touches)], slices.Grow(g.uses[:0], len(g.touches))[:len(g.touches)]
	for i, t := range g.touches[:upTo] {
		first := int32(i)
		if t.prev >= 0 {
			first = g.begins[t.prev]
		} else {
			g.uses[i] = 0
		}
		if g.begins[i] = first; i-int(first) < max(half, 1) {
			g.uses[first]++
		}
	}
	met := make([]Uses, len(g.sizes))
	for i, t := range g.touches[:max(half, g.classified)] {
		if t.prev >= 0 {
			continue
		}
		uses := UsesOf(int(g.uses[i]))
		if i >= third && i < half {
			h.Begun[uses]++
		}
		if i < g.classified {
			met[HeadOf(g.sizes, i)][uses]++
		}
	}
	for k := range met {
		for uses, n := range met[k] {
			if n > 0 {
				h.Met = append(h.Met, Met{uint8(k), uint8(uses), n})
			}
		}
	}
	return h
}
