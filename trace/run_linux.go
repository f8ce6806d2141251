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
// The error is about the engine; how the program itself ended, and why
// accesses are missing if any are, is in the result.
func Run(ctx context.Context, cmd Command, opt Options, each func(batch []model.Access)) (Result, error) {
	s := newBatcher(each)
	res, err := run(ctx, cmd, opt, s)
	s.flush()
	return res, err
}
