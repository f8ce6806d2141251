package main

import (
	"fmt"
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
	return report.Write(out, format, gpuDevices{all})
}

type gpuDevices struct {
	Devices []gpu.Info `json:"devices"`
}

func (d gpuDevices) Table() [][]string {
	rows := [][]string{{"number", "name", "platform", "driver", "opencl", "kind", "compute_units", "memory_bytes", "largest_buffer_bytes", "segment_touches", "most_blocks", "unfit"}}
	for _, x := range d.Devices {
		rows = append(rows, []string{fmt.Sprint(x.Number), x.Name, x.Platform, x.Driver, x.Version, x.Kind, fmt.Sprint(x.Units), fmt.Sprint(x.Memory),
			fmt.Sprint(x.MaxAlloc), fmt.Sprint(x.Segment), fmt.Sprint(x.Blocks), x.Unfit})
	}
	return rows
}

func (d gpuDevices) Text() string {
	s := ""
	for _, x := range d.Devices {
		s += fmt.Sprintf("%d  %s (%s)\n   %s, driver %s; %s, %d compute units\n   %s of memory: room for %s distinct blocks beside segments of %s touches\n",
			x.Number, x.Name, x.Kind, x.Platform, x.Driver, x.Version, x.Units, report.Bytes(float64(x.Memory)), report.Amount(float64(x.Blocks)), report.Amount(float64(x.Segment)))
		if x.Unfit != "" {
			s += "   cannot be used: " + x.Unfit + "\n"
		}
	}
	return s
}
