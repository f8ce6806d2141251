package device

import (
	"fmt"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu/opencl"
)

// pieces is what an analysis keeps that merges by formula 1 of HP-RDA (Cui et al.): distances within a piece are
// exact; those between pieces add up the distinct blocks of each, so that a block in several of them counts several times.
// Pieces are those of exact.Parallel, and so are the results.
type pieces struct {
	touches int // of a piece; 0 if the merge is exact
	open    int // touches of the one that is being filled
	starts  []uint32
	before  uint32 // distinct blocks of each piece before the segment, added up
	total   uint64 // the same, of all

	startsAt *opencl.Buffer
	of       *opencl.Buffer // by run: its piece
	firsts   *opencl.Buffer // by run: first touches in their pieces before it
	lasts    *opencl.Buffer // and last ones
	heads    *opencl.Buffer
	fine     histogram // of distances between pieces, those of loads as times and those of stores as first touches
}

func (p *pieces) init(a *Analysis) error {
	p.touches = a.config.PieceTouches
	if p.touches == 0 {
		return nil
	}
	if p.touches > a.config.Segment {
		return fmt.Errorf("pieces of %d touches do not fit into a segment of %d (consider: a smaller --piece)", p.touches, a.config.Segment)
	}
	n := uint64(a.config.Segment)
	for _, b := range []**opencl.Buffer{&p.startsAt, &p.of, &p.firsts, &p.lasts, &p.heads} {
		var err error
		if *b, err = a.Alloc(4 * (n + 1)); err != nil {
			return err
		}
	}
	return p.fine.init(a.Context, exact.MergedBins())
}

// cut is how many of the runs the segment has room for, where the next one is its at-th: pieces are not cut.
func (p *pieces) cut(runs []uint8, at, segment int) int {
	for i, run := range runs {
		if p.open == 0 {
			if at+i+p.touches > segment {
				return i
			}
			p.starts = append(p.starts, uint32(at+i))
		}
		if p.open += int(run>>1) + 1; p.open >= p.touches {
			p.open = 0
		}
	}
	return len(runs)
}

func (p *pieces) compute(a *Analysis, in *input) error {
	n := uint32(in.n)
	key, order := a.key[a.sorted], a.order[a.sorted]
	e, err := a.Write(opencl.Compute, p.startsAt, 0, words(p.starts))
	if err != nil {
		return err
	}
	if err := a.Wait(e); err != nil {
		return err
	}
	starts := uint32(len(p.starts))
	p.starts = p.starts[:0]
	all := uint64(n) + 1
	if err := a.fill(p.of, all, 0); err != nil {
		return err
	}
	if err := a.each("piece_starts", uint64(starts), p.startsAt, starts, p.of); err != nil {
		return err
	}
	if err := a.scan(p.of, all); err != nil {
		return err
	}
	if err := a.each("piece_match", all, key, order, n, p.of, p.heads, p.firsts, p.lasts); err != nil {
		return err
	}
	for _, b := range []*opencl.Buffer{a.isNew, a.again, p.heads, p.firsts, p.lasts} {
		if err := a.scan(b, all); err != nil {
			return err
		}
	}
	if err := a.each("piece_number", uint64(n), key, order, n, a.before, a.isNew, a.again, p.heads, a.value, a.prior); err != nil {
		return err
	}
	if err := a.inversions(a.value, n, a.inv); err != nil {
		return err
	}
	h, f := &a.histogram, &p.fine
	return a.each("piece_tally", uint64(n), n, p.before, a.value, a.prior, a.inv, p.of, p.heads, p.firsts, p.lasts, a.stack.rank,
		in.runsOnDevice, h.edges, h.octaves, h.bins, h.words, f.edges, f.octaves, f.bins, f.words)
}

// settle counts the blocks of the segment's pieces.
func (p *pieces) settle(a *Analysis, n uint32) error {
	var blocks [1]uint32
	if err := a.Read(words(blocks[:]), p.firsts, 4*uint64(n)); err != nil {
		return err
	}
	if p.total += uint64(blocks[0]); p.total > maxBlocks {
		return fmt.Errorf("approximate merge: the pieces have more than %d blocks in all (consider: an exact merge)", uint64(maxBlocks))
	}
	return nil
}

func (p *pieces) finish(a *Analysis) (*exact.Counted, error) {
	h, f := &a.histogram, &p.fine
	if err := h.take(a.Context); err != nil {
		return nil, err
	}
	if err := f.take(a.Context); err != nil {
		return nil, err
	}
	c := h.counted()
	c.Blocks, c.Pieces, c.Merged = a.stack.blocks, p.total, [2]exact.CountedValues{f.times, f.first}
	return c, a.Context.Finish()
}
