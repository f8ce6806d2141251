package exact

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/rdx-profiler/rdx/model"
)

// Counted is what another analyser has counted of a stream cut into Touches, of the first touch of each
// run: values below SmallValues one by one, others in the bins from that of SmallValues on.
type Counted struct {
	Times         CountedValues // reuse times
	Windows       []uint64      // sums of stack distance + 1, by time as Times has them
	Loads, Stores CountedValues // stack distances
	First         CountedValues // of a block's first touch, the number of touches up to and including it
	Last          CountedValues // of a block's last touch, the number of touches from it on
	Cold          [2]uint64     // first touches; [1] by stores, [0] by all else
	Blocks        uint64        // distinct
	// Of an approximate merge, see Parallel, distances between pieces in MergedBins, by Cold's order, and
	// the distinct blocks of each piece, added up.
	Merged [2]CountedValues
	Pieces uint64
}

// CountedValues has the number of values by value and then by bin, and their sums, of 128 bits.
type CountedValues struct {
	N           []uint64
	SumHi, SumL []uint64
}

// SmallValues is below which values are counted one by one.
const SmallValues = smallValues

// NewCountedValues has room for the given number of bins from that of SmallValues on.
func NewCountedValues(bins int) CountedValues {
	n := SmallValues + bins
	return CountedValues{make([]uint64, n), make([]uint64, n), make([]uint64, n)}
}

// Add adds n values, whose sum is hi, lo, at a place. For small ones no sum is needed.
func (c *CountedValues) Add(at int, n, hi, lo uint64) {
	c.N[at] += n
	var carry uint64
	c.SumL[at], carry = bits.Add64(c.SumL[at], lo, 0)
	c.SumHi[at] += hi + carry
}

// into adds the values to a tally.
func (c *CountedValues) into(t *tally) error {
	if c.N == nil {
		return nil
	}
	first := t.bins.Index(smallValues)
	if len(c.N) != smallValues+t.bins.Len()-first || len(c.SumHi) != len(c.N) || len(c.SumL) != len(c.N) {
		return fmt.Errorf("counted values: %d places, want %d", len(c.N), smallValues+t.bins.Len()-first)
	}
	for v, n := range c.N[:smallValues] {
		t.small[v] += n
	}
	for i, n := range c.N[smallValues:] {
		b := &t.bin[first+i]
		b.n += n
		var carry uint64
		b.sumL, carry = bits.Add64(b.sumL, c.SumL[smallValues+i], 0)
		b.sumHi += c.SumHi[smallValues+i] + carry
	}
	return nil
}

// CountedAnalysis is an exact analysis whose touches were counted elsewhere: the same results as those of an
// Analysis that has seen them.
type CountedAnalysis struct {
	Counts
	last            tally
	touches, blocks uint64
	approximate     bool
	pieces          uint64
}

// MergedBins has the lower edges of the bins in which an approximate merge counts distances between pieces.
func MergedBins() []uint64 { return model.LogBins(mergedBins).Edges() }

// NewCountedAnalysis takes what was counted; without has what is known of the touches without their blocks, of
// which Blocks and Runs are not looked at.
// Where the merge was approximate factor says that the effective factor applies.
func NewCountedAnalysis(blockBytes int, bins *model.Bins, c *Counted, without *model.Touches, factor bool) (*CountedAnalysis, error) {
	counts, err := newCounts(blockBytes, bins)
	if err != nil {
		return nil, err
	}
	e := &CountedAnalysis{Counts: counts, last: newTally(bins), blocks: c.Blocks, approximate: c.Pieces > 0, pieces: c.Pieces}
	for _, x := range []struct {
		from *CountedValues
		to   *tally
	}{{&c.Times, &e.time}, {&c.Loads, &e.dist[0]}, {&c.Stores, &e.dist[1]}, {&c.First, &e.first}, {&c.Last, &e.last}} {
		if err := x.from.into(x.to); err != nil {
			return nil, err
		}
	}
	first := bins.Index(smallValues)
	if c.Windows != nil {
		if len(c.Windows) != smallValues+bins.Len()-first {
			return nil, fmt.Errorf("counted windows: %d places, want %d", len(c.Windows), smallValues+bins.Len()-first)
		}
		copy(e.windows.small[:], c.Windows)
		copy(e.windows.bin[first:], c.Windows[smallValues:])
	}
	for store, n := range c.Cold {
		e.dist[store].cold += n
		e.time.cold += n
		e.touches += n
	}
	for _, d := range []*CountedValues{&c.Loads, &c.Stores, &c.Merged[0], &c.Merged[1]} {
		for _, n := range d.N {
			e.touches += n
		}
	}
	if e.approximate {
		merged := [2]tally{newTally(model.LogBins(mergedBins)), newTally(model.LogBins(mergedBins))}
		for store := range merged {
			if err := c.Merged[store].into(&merged[store]); err != nil {
				return nil, err
			}
		}
		f := 1.0
		if factor {
			f = e.Factor()
		}
		e.addMerged(&merged, e.blocks, f)
	}
	e.repeated(without)
	e.touches += without.Repeats[0] + without.Repeats[1]
	return e, nil
}

// Touches is the number of blocks touched, repetitions included.
func (e *CountedAnalysis) Touches() uint64 { return e.touches }

// Blocks is the number of distinct blocks touched.
func (e *CountedAnalysis) Blocks() uint64 { return e.blocks }

// Times is Counts.Times; nil for an approximate merge.
func (e *CountedAnalysis) Times() *model.Hist {
	if e.approximate {
		return nil
	}
	return e.Counts.Times()
}

// Footprint is Analysis.Footprint; nil for an approximate merge.
func (e *CountedAnalysis) Footprint() []model.FootprintPoint {
	if e.approximate {
		return nil
	}
	return e.footprintOf(e.touches, e.blocks, &e.last)
}

// WindowError is Analysis.WindowError; not a number for an approximate merge.
func (e *CountedAnalysis) WindowError() float64 {
	if e.approximate {
		return math.NaN()
	}
	return e.windowError(e.Footprint())
}

// Factor is Parallel.Factor.
func (e *CountedAnalysis) Factor() float64 { return float64(e.blocks) / float64(max(e.pieces, 1)) }
