package trace

import (
	"context"

	"github.com/rdx-profiler/rdx/model"
)

// Run runs a program under the engine and calls each with its accesses in the
// order in which they happened. The slice is reused: it is valid during the
// call only. Threads carry their kernel ids. With Options.Children the
// batches of several processes alternate; calls never overlap.
//
// With Options.Skipper each has had all accesses before one of its methods is
// called.
//
// The error is about the engine; how the program itself ended, and why
// accesses are missing if any are, is in the result.
func Run(ctx context.Context, cmd Command, opt Options, each func(batch []model.Access)) (Result, error) {
	s := newBatcher(each)
	if opt.Skipper != nil {
		opt.Skipper = batchSkipper{s, opt.Skipper}
	}
	res, err := run(ctx, cmd, opt, s)
	s.flush()
	return res, err
}

// batchSkipper hands on what a batcher still has before it asks.
type batchSkipper struct {
	batches *batcher
	Skipper
}

func (s batchSkipper) Skip() uint64 {
	s.batches.flush()
	return s.Skipper.Skip()
}

func (s batchSkipper) Skipped(n uint64) {
	s.batches.flush()
	s.Skipper.Skipped(n)
}

// RunTouches is Run for analyses that need to know no more of an access than
// which blocks it touches, which takes a fraction of the time. each is called
// on another goroutine than the one that reads what the engine has written.
// There is no Options.Skipper.
func RunTouches(ctx context.Context, cmd Command, opt Options, blocks model.Granularity, each func(*model.Touches)) (Result, error) {
	t := newToucher(blocks)
	end := t.start(each)
	opt.Skipper, opt.online = nil, true
	res, err := run(ctx, cmd, opt, t)
	end()
	return res, err
}

// RunPlacedTouches is RunTouches for analyses that need to know of each touch where in the program it was made, and which
// bytes of its line are touched.
func RunPlacedTouches(ctx context.Context, cmd Command, opt Options, blocks model.Granularity, each func(*model.PlacedTouches)) (Result, error) {
	t := newPlacer(blocks)
	end := t.start(each)
	opt.Skipper, opt.online = nil, true
	res, err := run(ctx, cmd, opt, t)
	end()
	return res, err
}

// RunPairedTouches is RunTouches for analyses that count touches by where in the program they and the uses before them were made.
func RunPairedTouches(ctx context.Context, cmd Command, opt Options, blocks model.Granularity, each func(*model.PairedTouches)) (Result, error) {
	t := newPairer(blocks)
	end := t.start(each)
	opt.Skipper, opt.online = nil, true
	res, err := run(ctx, cmd, opt, t)
	end()
	return res, err
}
