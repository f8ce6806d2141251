package gpu

import (
	"fmt"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
)

// Exact is exact.Analysis on a GPU: one LRU stack that all threads share. It is for one goroutine.
type Exact struct {
	*Session
	block   int
	bins    *model.Bins
	factor  bool
	cutter  *exact.Cutter
	without model.Touches // what is known without blocks
}

// Config says how a GPU analyses.
type Config struct {
	Device  string // a number of the list, a part of a name, or "" for the first GPU that can be used
	Segment int    // touches that are analysed at once; 0 is what suits the device. The exact result does not depend on it
	// Untimed leaves out reuse times and footprint.
	Untimed bool
	// Piece, if it is not 0, merges pieces of so many touches as the paper does, see exact.ParallelConfig, and Factor applies
	// its effective factor.
	Piece  int
	Factor bool
}

// NewExact starts an analysis with blocks of the given number of bytes, a power of two, whose histograms have the given bins.
func NewExact(blockBytes int, bins *model.Bins, c Config) (*Exact, error) {
	cutter, err := exact.NewCutter(blockBytes, SlotRuns, c.Piece)
	if err != nil {
		return nil, err
	}
	s, err := StartSession(Start{Device: c.Device, Edges: bins.Edges(), Untimed: c.Untimed, Segment: c.Segment, Piece: c.Piece}, 0, nil)
	if err != nil {
		return nil, err
	}
	return &Exact{Session: s, block: blockBytes, bins: bins, factor: c.Factor, cutter: cutter}, nil
}

// Add analyses the next accesses of the stream. Errors are permanent and may come late.
func (e *Exact) Add(accesses []model.Access) error { return e.cutter.Cut(accesses, e.AddTouches) }

// AddTouches is Add for accesses that were cut into touches of blocks of the same size.
func (e *Exact) AddTouches(t *model.Touches) error {
	for op, n := range t.Ops {
		e.without.Ops[op] += n
	}
	for store, n := range t.Repeats {
		e.without.Repeats[store] += n
	}
	return e.Touch(t.Blocks, t.Runs)
}

// Result ends the analysis.
func (e *Exact) Result() (*exact.CountedAnalysis, error) {
	counted, err := e.Finish()
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return exact.NewCountedAnalysis(e.block, e.bins, counted, &e.without, e.factor)
}

// Describe names the device.
func (r *Ready) Describe() string {
	return fmt.Sprintf("%s, segments of %d touches", r.Device, r.Segment)
}
