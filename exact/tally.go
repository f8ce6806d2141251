package exact

import (
	"math/bits"

	"github.com/rdx-profiler/rdx/model"
)

// tally counts values in bins and sums them there, in integers: at bin edges
// both the number of values above and their excess over the edge are exact.
type tally struct {
	bins  *model.Bins
	bin   []tallyBin
	cold  uint64
	small *[smallValues]uint64 // values counted one by one: most are small
}

type tallyBin struct {
	n           uint64
	sumHi, sumL uint64 // 128 bits
}

const smallValues = 4096

func newTally(b *model.Bins) tally {
	return tally{bins: b, bin: make([]tallyBin, b.Len()), small: new([smallValues]uint64)}
}

// add counts v; Infinite is a cold access.
func (t *tally) add(v uint64) {
	if v == model.Infinite {
		t.cold++
		return
	}
	t.addTo(t.bins.Index(v), v)
}

// addTo counts v, which is in bin i. Whether it is small cannot be foretold: it is added, or 0, to both.
func (t *tally) addTo(i int, v uint64) {
	_, small := bits.Sub64(v, smallValues, 0)
	t.small[v&-small%smallValues] += small
	b := &t.bin[i]
	b.n += 1 - small
	var carry uint64
	b.sumL, carry = bits.Add64(b.sumL, v&(small-1), 0)
	b.sumHi += carry
}

// addMany counts v, which is not Infinite, n times.
func (t *tally) addMany(v, n uint64) {
	if v < smallValues {
		t.small[v] += n
		return
	}
	b := &t.bin[t.bins.Index(v)]
	b.n += n
	hi, lo := bits.Mul64(v, n)
	var carry uint64
	b.sumL, carry = bits.Add64(b.sumL, lo, 0)
	b.sumHi += hi + carry
}

// merge adds what o has counted; their bins are the same.
func (t *tally) merge(o *tally) {
	t.cold += o.cold
	for v, n := range o.small {
		t.small[v] += n
	}
	for i := range o.bin {
		a, b := &t.bin[i], &o.bin[i]
		a.n += b.n
		var carry uint64
		a.sumL, carry = bits.Add64(a.sumL, b.sumL, 0)
		a.sumHi += b.sumHi + carry
	}
}

// each calls f with the number and the sum of the values of each bin.
func (t *tally) each(f func(i int, n uint64, sum float64)) {
	v := uint64(0)
	for i, b := range t.bin {
		sum := float64(b.sumHi)*(1<<64) + float64(b.sumL)
		for ; v < smallValues && v < t.bins.Hi(i); v++ {
			b.n += t.small[v]
			sum += float64(t.small[v]) * float64(v)
		}
		if b.n > 0 {
			f(i, b.n, sum)
		}
	}
}

// below returns how many values were counted, cold ones included, and how many
// of them are below v for certain: those of v's own bin are not, except where values are counted
// one by one.
func (t *tally) below(v uint64) (total, below uint64) {
	total = t.cold
	for x, n := range t.small {
		total += n
		if uint64(x) < v {
			below += n
		}
	}
	for i, b := range t.bin {
		total += b.n
		if t.bins.Hi(i) <= v {
			below += b.n
		}
	}
	return total, below
}

// tallied is the histogram of all that the tallies have counted; they have the
// same bins.
func tallied(tallies ...*tally) *model.Hist {
	h := model.NewHist(tallies[0].bins)
	for _, t := range tallies {
		t.each(func(i int, n uint64, _ float64) {
			h.W[i] += float64(n)
			h.N += int64(n)
		})
		h.Cold += float64(t.cold)
		h.N += int64(t.cold)
	}
	return h
}

// addExcess adds to excess[i] the sum of (v-w)+ over the values v counted,
// where w is the lower edge of bin i.
func (t *tally) addExcess(excess []float64) {
	n, sum := make([]float64, len(excess)), make([]float64, len(excess))
	t.each(func(i int, c uint64, s float64) { n[i], sum[i] = float64(c), s })
	var above, total float64
	for i := len(excess) - 1; i >= 0; i-- {
		above += n[i]
		total += sum[i]
		excess[i] += total - above*float64(t.bins.Lo(i))
	}
}

// windowTally sums footprints of reuse windows by the windows' length, as a
// tally counts the lengths. From the use to just before the reuse, a window has
// time accesses and touches distance+1 blocks.
type windowTally struct {
	bins  *model.Bins
	bin   []uint64
	small *[smallValues]uint64
}

func newWindowTally(b *model.Bins) windowTally {
	return windowTally{b, make([]uint64, b.Len()), new([smallValues]uint64)}
}

// addTo adds the footprint of a window of the given length, which is in bin i, as tally.addTo does.
func (w *windowTally) addTo(i int, length, footprint uint64) {
	_, small := bits.Sub64(length, smallValues, 0)
	w.small[length&-small%smallValues] += footprint & -small
	w.bin[i] += footprint & (small - 1)
}

// merge adds what o has summed; their bins are the same.
func (w *windowTally) merge(o *windowTally) {
	for v, n := range o.small {
		w.small[v] += n
	}
	for i, n := range o.bin {
		w.bin[i] += n
	}
}

// each calls f with the sum of footprints of each bin.
func (w *windowTally) each(f func(i int, sum float64)) {
	v := uint64(0)
	for i, sum := range w.bin {
		for ; v < smallValues && v < w.bins.Hi(i); v++ {
			sum += w.small[v]
		}
		f(i, float64(sum))
	}
}
