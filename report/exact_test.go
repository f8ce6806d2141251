// Needs: nothing.

package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// analysed is a report of four touches: one of 3 blocks' distance, one of none, and two first ones.
func analysed(stack string) (*Exact, ExactResult) {
	h := model.NewHist(model.LogBins(1))
	h.Add(3, 1)
	h.Add(0, 1)
	h.AddKind(model.Cold, 0, 2)
	return &Exact{Trace: "t", Method: "exact", Block: 64, Stack: stack, Accesses: 4, Touches: 4, Blocks: 4}, ExactResult{Distances: h}
}

// Without sizes miss ratios are up to the first cache that holds everything, and where the blocks are not known, that all
// distances fit in.
func TestExactSizesOfItsOwn(t *testing.T) {
	for _, blocks := range []uint64{4, 0} {
		r, found := analysed("shared")
		r.Blocks = blocks
		r.Tabulate(found, nil)
		if n := len(r.Misses); n != 3 || r.Misses[n-1] != (ExactMiss{Bytes: 256, Ratio: .5}) || r.Misses[0].Ratio != .75 {
			t.Errorf("of %d blocks: %+v", blocks, r.Misses)
		}
	}
	r, found := analysed("shared")
	if r.Tabulate(found, []uint64{128}); len(r.Misses) != 1 || r.Misses[0] != (ExactMiss{Bytes: 128, Ratio: .75}) {
		t.Errorf("%+v", r.Misses)
	}
}

// An estimate has its error, in text and table, and what is invalidated is told of private stacks alone.
func TestExactShown(t *testing.T) {
	r, found := analysed("private")
	found.MissRatio = func(uint64) (ratio, plusMinus float64) { return .5, .125 }
	r.Tabulate(found, []uint64{128})
	text := r.Text()
	for _, want := range []string{"4 distinct in the thread with most (256B)", "invalidated              0.0%", "128B   50.0% +- 12.5%"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if rows := r.Table(); !slices.ContainsFunc(rows, func(row []string) bool {
		return slices.Equal(row, []string{"miss_ratio_plus_minus", "128", "", "0.125"})
	}) {
		t.Errorf("%q", rows)
	}
	shared, found := analysed("shared")
	if shared.Tabulate(found, nil); strings.Contains(shared.Text(), "invalidated") {
		t.Error(shared.Text())
	}
}

// Instructions stand in the order of their traffic at the last cache, then of their accesses; caches have the sums.
func TestPatternsOrder(t *testing.T) {
	in := func(pc, accesses uint64, fills float64) PatternInput {
		at := &model.Location{Address: pc, Lines: []model.Line{{Function: "f", File: "/src/f.c", Line: 7}}}
		return PatternInput{At: at, Op: model.Load, Accesses: accesses, Traffic: []model.Traffic{{Fills: fills}}, LineUse: []model.LineUse{{Stays: fills, Bytes: 16 * fills}}}
	}
	of := &Exact{Trace: "t", Accesses: 60, Touches: 60, Blocks: 9}
	r := NewPatterns(of, []model.Cache{{Level: "C1", Size: 1024}}, []uint64{2}, []PatternInput{in(0x10, 10, 1), in(0x20, 20, 1), in(0x30, 30, 5)}, []string{"said"})
	var order []string
	for _, x := range r.Instructions {
		order = append(order, x.Address)
	}
	if !slices.Equal(order, []string{"0x30", "0x20", "0x10"}) {
		t.Error(order)
	}
	if c := r.Caches[0]; c.Fills != 7 || c.Traffic != 7*64 || *c.LineUse != 16 || c.DirtyAtEnd != 2 {
		t.Errorf("%+v", c)
	}
	if text := r.Text(); !strings.Contains(text, "load f f.c:7") || !strings.HasSuffix(text, "note: said\n") {
		t.Error(text)
	}
	if rows := r.Table(); len(rows) != 1+1+3 {
		t.Errorf("%q", rows)
	}
}
