package main

import (
	"io"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Values of --gpu that are no device's.
const (
	gpuFirst = "first"
	gpuList  = "list"
)

func (f *exactFlags) gpuConfig() gpu.Config {
	c := gpu.Config{Device: f.gpu, Segment: f.gpuSegment, Untimed: f.log2}
	if c.Device == gpuFirst {
		c.Device = ""
	}
	if f.approximate != "" {
		c.Piece, c.Factor = f.piece, f.approximate == "factor"
		if c.Piece == 0 {
			c.Piece = exact.PieceTouches
		}
	}
	return c
}

// onGPU is a sink that may have a GPU at work.
type onGPU interface{ close() }

// gpuSink is the analysis of one stack on a GPU.
type gpuSink struct {
	*gpu.Exact
	how *exactFlags
}

func newGPUSink(r *exactRun, f *exactFlags, bins *model.Bins) (exactSink, error) {
	if f.log2 {
		bins = model.LogBins(1)
	}
	e, err := gpu.NewExact(r.Block, bins, f.gpuConfig())
	return &gpuSink{e, f}, err
}

func (s *gpuSink) add(a []model.Access) error        { return s.Add(a) }
func (s *gpuSink) addTouches(t *model.Touches) error { return s.AddTouches(t) }
func (s *gpuSink) close()                            { s.Close() }

func (s *gpuSink) fill(r *exactRun) error {
	e, err := s.Result()
	if err != nil {
		return err
	}
	r.Device = s.Device
	if s.how.log2 {
		r.Method = log2Method
		r.Accesses, r.Loads, r.Stores, r.Touches, r.Blocks, r.found.Distances = e.Accesses(), e.Loads(), e.Stores(), e.Touches(), e.Blocks(), e.Distances()
		return nil
	}
	r.approximate(s.how.approximate, e.Factor)
	r.fillExact(e)
	return nil
}

// stacks is an analysis of the touches of many threads, each by itself, that tells of them sooner or later.
type stacks struct {
	late interface { // on a GPU; nil if it is on this processor
		Add([]model.Access) error
		Finish() error
		Close()
	}
	ready func() *gpu.Ready
	now   exact.Stacks
	each  func(*exact.Touch)
}

// newStacks is an analysis on shared or private stacks that calls each with all touches.
func newStacks(block int, private bool, f *exactFlags, each func(*exact.Touch)) (s stacks, err error) {
	s.each = each
	switch {
	case f.gpu != "" && private:
		p, err := gpu.NewPrivateStacks(block, f.gpuConfig(), each)
		if err != nil {
			return s, err
		}
		s.late, s.ready = p, func() *gpu.Ready { return &p.Ready }
	case f.gpu != "":
		p, err := gpu.NewSharedStack(block, f.gpuConfig(), each)
		if err != nil {
			return s, err
		}
		s.late, s.ready = p, func() *gpu.Ready { return &p.Ready }
	case private:
		s.now, err = exact.NewPrivateStacks(block)
	default:
		s.now, err = exact.NewSharedStack(block)
	}
	return s, err
}

func (s stacks) Add(a []model.Access) error {
	if s.late != nil {
		return s.late.Add(a)
	}
	return s.now.Add(a, s.each)
}

// Finish waits until all touches were told of.
func (s stacks) Finish() error {
	if s.late != nil {
		return s.late.Finish()
	}
	return nil
}

func (s stacks) device() string {
	if s.late == nil {
		return ""
	}
	return s.ready().Device
}

func (s stacks) close() {
	if s.late != nil {
		s.late.Close()
	}
}

// listGPUs prints what devices there are.
func listGPUs(out io.Writer, format string) error {
	all, err := gpu.List()
	if err != nil {
		return err
	}
	shown := report.GPUs{Devices: make([]report.GPU, len(all))}
	for i, x := range all {
		shown.Devices[i] = report.GPU(x)
	}
	return report.Write(out, format, &shown)
}
