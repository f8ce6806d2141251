package device

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu"
	"github.com/rdx-profiler/rdx/gpu/opencl"
)

// List is the devices that there are.
func List(api *opencl.API) ([]gpu.Info, error) {
	all, err := api.Devices()
	if err != nil {
		return nil, err
	}
	var list []gpu.Info
	for i, d := range all {
		segment := DefaultSegment(d)
		most := (d.Memory - min(d.Memory, uint64(segment)*runBytes)) / blockBytes
		if d.MaxAlloc > 0 {
			most = min(most, d.MaxAlloc/8)
		}
		list = append(list, gpu.Info{Number: i, Name: d.Name, Platform: d.Platform, Vendor: d.Vendor, Driver: d.Driver, Version: d.Version,
			Kind: d.Kind, Units: d.Units, Memory: d.Memory, MaxAlloc: d.MaxAlloc, Local: d.Local, Group: d.Group,
			Segment: segment, Blocks: min(most, maxBlocks), Unfit: d.Unfit()})
	}
	return list, nil
}

// OpenNamed compiles the kernels for the device of a number or a part of a name, or for the first GPU that can be used.
func OpenNamed(api *opencl.API, which string) (*opencl.Context, error) {
	d, err := choose(api, which)
	if err != nil {
		return nil, err
	}
	return Open(d)
}

// choose is the device of a number or a part of a name; the first GPU that can be used if neither is given.
func choose(api *opencl.API, which string) (*opencl.Device, error) {
	all, err := api.Devices()
	if err != nil {
		return nil, err
	}
	if which == "" {
		for _, d := range all {
			if d.Unfit() == "" && d.Kind != "cpu" {
				return d, nil
			}
		}
		if why := all[0].Unfit(); why != "" {
			return nil, fmt.Errorf("no device can be used, the first one, %s, as: %s (consider: rdx exact --gpu=list)", all[0], why)
		}
		return nil, fmt.Errorf("there is no GPU, only %s, which is a processor (consider: leaving --gpu out, which is faster there, or --gpu=0 to use it all the same)", all[0])
	}
	if n, err := strconv.Atoi(which); err == nil {
		if n < 0 || n >= len(all) {
			return nil, fmt.Errorf("device %d: there are %d, from 0 on (consider: rdx exact --gpu=list)", n, len(all))
		}
		return all[n], nil
	}
	for _, d := range all {
		if strings.Contains(strings.ToLower(d.String()), strings.ToLower(which)) {
			return d, nil
		}
	}
	return nil, fmt.Errorf("device %q: none has that in its name (consider: rdx exact --gpu=list)", which)
}

// server is one session with rdx.
type server struct {
	shared *gpu.Shared
	to     *gob.Encoder
	work   chan gpu.Request
	taken  chan struct{}
	gone   chan struct{} // closed when nothing more is asked
}

// Serve does what is asked on in, and answers on out, until it is done. An error has been answered, but for one of out.
func Serve(load func() (*opencl.API, error), shared *gpu.Shared, in io.Reader, out io.Writer) error {
	s := &server{shared: shared, to: gob.NewEncoder(out), work: make(chan gpu.Request, gpu.Slots+2), taken: make(chan struct{}, 1), gone: make(chan struct{})}
	go s.read(gob.NewDecoder(in))
	err := s.run(load)
	if err != nil && !errors.Is(err, errGone) {
		if e := s.to.Encode(gpu.Reply{Error: err.Error()}); e != nil {
			return e
		}
	}
	return err
}

var errGone = errors.New("rdx is gone")

// read sorts requests: those that are awaited while another is at work go ahead.
func (s *server) read(from *gob.Decoder) {
	defer close(s.gone)
	for {
		var r gpu.Request
		if from.Decode(&r) != nil {
			return
		}
		if r.Taken {
			s.taken <- struct{}{}
		} else {
			s.work <- r
		}
	}
}

func (s *server) next() (gpu.Request, error) {
	select {
	case r := <-s.work:
		return r, nil
	case <-s.gone:
	}
	select { // what was asked last
	case r := <-s.work:
		return r, nil
	default:
		return gpu.Request{}, errGone
	}
}

func (s *server) run(load func() (*opencl.API, error)) error {
	r, err := s.next()
	if err != nil {
		return err
	}
	if r.Start == nil || r.Start.Protocol != gpu.Protocol {
		return errors.New("rdx and rdx-gpu are not of one build (consider: building both)")
	}
	api, err := load()
	if err != nil {
		return err
	}
	ctx, err := OpenNamed(api, r.Start.Device)
	if err != nil {
		return err
	}
	defer ctx.Close()
	if r.Start.Private {
		return s.count(ctx, r.Start)
	}
	return s.touches(ctx, r.Start)
}

func (s *server) ready(ctx *opencl.Context, segment int) error {
	return s.to.Encode(gpu.Reply{Ready: &gpu.Ready{Device: ctx.Device.String(), Memory: ctx.Memory, Segment: segment}})
}

// touches analyses what is touched.
func (s *server) touches(ctx *opencl.Context, start *gpu.Start) error {
	c := Config{Edges: start.Edges, Untimed: start.Untimed, Segment: start.Segment, PieceTouches: start.Piece}
	if start.Each {
		c.Each = s.found
	}
	a, err := NewAnalysis(ctx, c)
	if err != nil {
		return err
	}
	if err := s.ready(ctx, a.config.Segment); err != nil {
		return err
	}
	for {
		r, err := s.next()
		if err != nil {
			return err
		}
		if r.Finish {
			counted, err := a.Finish()
			if err != nil {
				return err
			}
			return s.to.Encode(gpu.Reply{Done: counted})
		}
		if r.Touch == nil || r.Touch.Slot < 0 || r.Touch.Slot >= gpu.Slots || r.Touch.Runs < 0 || r.Touch.Runs > gpu.SlotRuns {
			return errors.New("rdx-gpu was asked what it does not know (consider: rdx and rdx-gpu of one build)")
		}
		blocks, runs := s.shared.Slot(r.Touch.Slot)
		if err := a.Add(blocks[:r.Touch.Runs], runs[:r.Touch.Runs]); err != nil {
			return err
		}
		if err := s.to.Encode(gpu.Reply{Free: r.Touch.Slot + 1}); err != nil {
			return err
		}
	}
}

// found hands over what was found of each touch.
func (s *server) found(dists, times []uint64) error {
	toDists, toTimes, err := s.shared.Found(len(dists))
	if err != nil {
		return err
	}
	copy(toDists, dists)
	copy(toTimes, times)
	if err := s.to.Encode(gpu.Reply{Found: len(dists)}); err != nil {
		return err
	}
	select {
	case <-s.taken:
		return nil
	case <-s.gone:
	}
	select {
	case <-s.taken:
		return nil
	default:
		return errGone
	}
}

// count answers requests of Count.
func (s *server) count(ctx *opencl.Context, start *gpu.Start) error {
	c, err := newCounter(ctx, start.Segment)
	if err != nil {
		return err
	}
	if err := s.ready(ctx, start.Segment); err != nil {
		return err
	}
	for {
		r, err := s.next()
		if err != nil {
			return err
		}
		if r.Finish {
			return s.to.Encode(gpu.Reply{Done: &exact.Counted{Blocks: 1}})
		}
		if r.Count == nil {
			return errors.New("rdx-gpu was asked what it does not know (consider: rdx and rdx-gpu of one build)")
		}
		counted, asked, greater, err := s.shared.Count(r.Count.N)
		if err != nil {
			return err
		}
		if err := c.count(counted, asked, r.Count.Values, greater); err != nil {
			return err
		}
		if err := s.to.Encode(gpu.Reply{Counted: true}); err != nil {
			return err
		}
	}
}
