package model

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Bins partitions the integers from 0 to 2^64-1 into half-open bins
// [Lo(i), Hi(i)). The last bin has Hi = 2^64-1 and holds that value too.
//
// A Bins is immutable and may be shared between histograms and goroutines.
type Bins struct {
	edges []uint64 // lower edges, edges[0] == 0, strictly increasing
	// start[k] is the bin of the least value whose key is k, so that Index
	// searches a thirty-second of an octave only.
	start [numKeys + 1]int32
	open  bool // the last bin is an overflow bin, without a meaningful width
}

// maxPerOctave bounds LogBins: finer bins could not be told from exact values
// for any histogram that fits in memory.
const maxPerOctave = 4096

// LogBins returns bins that grow by 2^(1/perOctave), with integer edges
// ceil(2^(k/perOctave)): values are exact (width 1) until a bin reaches two
// integers. Powers of two are always edges, so LogBins(n) nests in LogBins(1).
// perOctave is clamped to 1..4096.
func LogBins(perOctave int) *Bins {
	perOctave = min(max(perOctave, 1), maxPerOctave)
	edges := []uint64{0, 1}
	for octave := 0; octave < 64; octave++ {
		base := uint64(1) << octave
		for k := 0; k < perOctave; k++ {
			// The fraction is computed within one octave, so that rounding is
			// the same in all of them and 2^octave comes out exactly.
			f := math.Exp2(float64(k)/float64(perOctave)) - 1
			e := base + uint64(math.Ceil(f*float64(base)))
			if e > edges[len(edges)-1] {
				edges = append(edges, e)
			}
		}
	}
	b := &Bins{edges: edges}
	b.index()
	return b
}

// LinearBins returns n bins of the given width and an overflow bin above
// them. A width or n below 1 is taken as 1.
func LinearBins(width uint64, n int) *Bins {
	width, n = max(width, 1), max(n, 1)
	edges := make([]uint64, 0, n+1)
	for i := 0; i <= n; i++ {
		hi, e := bits.Mul64(width, uint64(i))
		if hi != 0 {
			break
		}
		edges = append(edges, e)
	}
	b := &Bins{edges: edges, open: true}
	b.index()
	return b
}

// EdgeBins returns bins with the given lower edges; the first must be 0, the
// others increase. The last bin is an overflow bin.
func EdgeBins(edges []uint64) (*Bins, error) {
	if len(edges) == 0 || edges[0] != 0 {
		return nil, fmt.Errorf("bins: the first edge must be 0")
	}
	for i := 1; i < len(edges); i++ {
		if edges[i] <= edges[i-1] {
			return nil, fmt.Errorf("bins: edge %d (%d) is not above the one before it (%d)", i, edges[i], edges[i-1])
		}
	}
	b := &Bins{edges: append([]uint64(nil), edges...), open: true}
	b.index()
	return b, nil
}

// With returns the bins with further lower edges.
func (b *Bins) With(edges []uint64) *Bins {
	all := slices.Concat(b.edges, edges)
	slices.Sort(all)
	c := &Bins{edges: slices.Compact(all), open: b.open}
	c.index()
	return c
}

// numKeys is the number of values of binKey.
const numKeys = 60 * 32

// binKey cuts the integers into parts: single ones below 64, then 32 to an octave.
func binKey(v uint64) uint {
	above := uint(max(bits.Len64(v), 6) - 6)
	return above*32 + uint(v>>(above&63))
}

func (b *Bins) index() {
	i := 0
	for k := range uint(numKeys) {
		first := uint64(k) // of the key's values
		if k >= 64 {
			above := k/32 - 1
			first = uint64(k-above*32) << above
		}
		for i+1 < len(b.edges) && b.edges[i+1] <= first {
			i++
		}
		b.start[k] = int32(i)
	}
	b.start[numKeys] = int32(len(b.edges) - 1)
}

// Edges has the lower edges of the bins. They are not to be changed.
func (b *Bins) Edges() []uint64 { return b.edges }

// Len is the number of bins.
func (b *Bins) Len() int { return len(b.edges) }

// Index is the bin that holds v.
func (b *Bins) Index(v uint64) int {
	k := binKey(v)
	lo, hi := int(b.start[k]), int(b.start[k+1]) // edges[lo] <= v; v's bin is in lo..hi
	for hi-lo > 1 {
		mid := int(uint(lo+hi+1) >> 1)
		if b.edges[mid] <= v {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	// Of bins that are not finer than keys most are here at once. Which of the two it is cannot be foretold: no branch.
	_, below := bits.Sub64(v, b.edges[hi], 0)
	return hi - int(below)
}

// Lo is the smallest value of bin i.
func (b *Bins) Lo(i int) uint64 { return b.edges[i] }

// Hi is one more than the largest value of bin i, 2^64-1 for the last bin.
func (b *Bins) Hi(i int) uint64 {
	if i+1 < len(b.edges) {
		return b.edges[i+1]
	}
	return math.MaxUint64
}

// Mid is a value in the middle of bin i: Index(Mid(i)) == i, so binning again
// what was written as Mid changes nothing. It is Lo for an overflow bin.
func (b *Bins) Mid(i int) uint64 {
	lo := b.Lo(i)
	if b.IsOpen(i) {
		return lo
	}
	return lo + (b.Hi(i)-1-lo)/2
}

// IsOpen says whether bin i is an overflow bin.
func (b *Bins) IsOpen(i int) bool { return b.open && i == len(b.edges)-1 }

// Equal says whether two partitions are the same.
func (b *Bins) Equal(o *Bins) bool {
	if b == o {
		return true
	}
	if len(b.edges) != len(o.edges) || b.open != o.open {
		return false
	}
	for i, e := range b.edges {
		if o.edges[i] != e {
			return false
		}
	}
	return true
}

// span is the range of values that a time can have in bin i, as the first
// value and the number of values: a reuse time is at least 1, and an overflow
// bin counts as its first value, the most that is known of it.
func (b *Bins) span(i int) (lo, width float64) {
	l, h := b.Lo(i), b.Hi(i)
	if l == 0 && h > 1 {
		l = 1
	}
	if b.IsOpen(i) {
		return float64(l), 1
	}
	return float64(l), float64(h - l)
}
