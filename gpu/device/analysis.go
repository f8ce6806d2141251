// Package device computes exact reuse times and stack distances on a GPU: see
// docs/explanation/gpu.md for the algorithm and what it costs.
//
// The package is rdx's own and may change.
package device

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"unsafe"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu/opencl"
)

//go:embed kernels.cl
var source string

const (
	group = 256  // work-items of a work-group; kernels.cl has the same
	tile  = 2048 // elements of a work-group, where they are taken by tiles

	// runBytes is the device's memory for each run of a segment, and blockBytes for each distinct block.
	runBytes   = 91
	blockBytes = 2*(8+4+8) + 4

	// MaxSegment is the most runs of a segment: sums of 32 bits have room for them.
	MaxSegment = 1 << 24
	maxBlocks  = 1<<32 - 1 - MaxSegment // what positions on the stack have room for
)

// Open compiles the kernels for a device.
func Open(d *opencl.Device) (*opencl.Context, error) { return d.Open(source, "-cl-std=CL1.2") }

// Config says what an Analysis counts.
type Config struct {
	// Edges are the lower edges of the bins, from 0 on; see Bins of package model.
	Edges []uint64
	// Untimed leaves out reuse times and windows.
	Untimed bool
	// Segment is the number of runs that are analysed at once, up to MaxSegment; 0 is DefaultSegment's.
	// The exact result does not depend on it.
	Segment int
	// Each, if it is set, is called after each segment with the distance and the time of each of its runs,
	// model.Infinite at a first touch, and nothing is counted.
	Each func(dists, times []uint64) error
	// PieceTouches makes the analysis approximate, see approximate.go; 0 is exact.
	PieceTouches int
}

// DefaultSegment is how many runs a segment has on a device: what an eighth of its memory has room for.
func DefaultSegment(d *opencl.Device) int {
	n, most := tile, MaxSegment
	if d.Kind != "gpu" {
		most = 1 << 20 // of which most stays in caches
	}
	for 2*n <= most && uint64(2*n*runBytes) <= d.Memory/8 && uint64(2*n*8) <= d.MaxAlloc {
		n *= 2
	}
	return n
}

// Analysis is an exact analysis of one LRU stack, a segment of the stream at a time. What it
// keeps between segments is of the size of the footprint and on the device. It is for one goroutine.
type Analysis struct {
	*primitives
	config Config
	in     [2]input
	filled int // which of them
	piece  pieces

	key, order  [2]*opencl.Buffer // which of them is sorted: see sortBy
	sorted      int
	offset      *opencl.Buffer
	before      *opencl.Buffer
	isNew       *opencl.Buffer
	again       *opencl.Buffer
	value       *opencl.Buffer
	prior       *opencl.Buffer
	inv         *opencl.Buffer
	out         [2]*opencl.Buffer // distances and times, for Each
	dists       []uint64
	times       []uint64
	histogram   histogram
	now         uint64 // touches before the segment under way
	stack       stack
	under       int    // runs of the segment under way on the device, whose effect on the stack is to come
	underWay    uint64 // touches of it
	counted     uint64 // touches counted since the histograms were read
	tallyGroups uint64
}

// input is a segment on its way to the device.
type input struct {
	blocks  []uint64 // pinned
	runs    []uint8
	n       int
	touches uint64
	or, and uint64 // of all blocks
	sent    int
	events  []opencl.Event

	onDevice, runsOnDevice *opencl.Buffer
}

// NewAnalysis allocates what a segment needs.
func NewAnalysis(ctx *opencl.Context, c Config) (*Analysis, error) {
	if c.Segment == 0 {
		c.Segment = DefaultSegment(ctx.Device)
	}
	if c.Segment < 1 || c.Segment > MaxSegment {
		return nil, fmt.Errorf("segments of %d touches: want 1 to %d", c.Segment, MaxSegment)
	}
	a := &Analysis{primitives: &primitives{Context: ctx}, config: c, tallyGroups: uint64(max(8, 4*ctx.Units))}
	n := uint64(c.Segment)
	if need := n * runBytes; ctx.Memory > 0 && need > ctx.Memory {
		return nil, a.tooLarge(fmt.Sprintf("segments of %d touches", n), need)
	}
	if err := a.prepare(n); err != nil {
		return nil, err
	}
	for i := range a.in {
		if err := a.prepareInput(&a.in[i], n); err != nil {
			return nil, err
		}
	}
	var err error
	if a.out[0], a.out[1] = nil, nil; c.Each != nil {
		a.dists, a.times = make([]uint64, n), make([]uint64, n)
		for i := range a.out {
			if a.out[i], err = ctx.Alloc(8 * n); err != nil {
				return nil, err
			}
		}
	}
	for _, b := range []struct {
		to   **opencl.Buffer
		size uint64
	}{
		{&a.key[0], 8 * n}, {&a.key[1], 8 * n}, {&a.order[0], 4 * n}, {&a.order[1], 4 * n}, {&a.offset, 4 * (n + 1)}, {&a.before, 4 * n},
		{&a.isNew, 4 * (n + 1)}, {&a.again, 4 * (n + 1)}, {&a.value, 4 * n}, {&a.prior, 4 * n}, {&a.inv, 4 * n},
	} {
		if *b.to, err = ctx.Alloc(b.size); err != nil {
			return nil, err
		}
	}
	if err := a.histogram.init(ctx, c.Edges); err != nil {
		return nil, err
	}
	if err := a.stack.init(ctx); err != nil {
		return nil, err
	}
	return a, a.piece.init(a)
}

func (a *Analysis) prepareInput(in *input, n uint64) (err error) {
	pinned, err := a.Pinned(8 * n)
	if err != nil {
		return err
	}
	in.blocks = unsafe.Slice((*uint64)(unsafe.Pointer(&pinned[0])), n)
	if in.runs, err = a.Pinned(n); err != nil {
		return err
	}
	if in.onDevice, err = a.Alloc(8 * n); err != nil {
		return err
	}
	in.runsOnDevice, err = a.Alloc(n)
	in.and = ^uint64(0)
	return err
}

// tooLarge says what does not fit.
func (a *Analysis) tooLarge(what string, need uint64) error {
	return fmt.Errorf("%s: %s need %d MB of memory, and the device has %d (consider: a smaller --gpu-segment, a coarser --block, a device with more memory, or leaving --gpu out)",
		a.Name, what, need>>20, a.Memory>>20)
}

// Add analyses the next runs of touches, as in model.Touches. The error may come late, and is permanent.
func (a *Analysis) Add(blocks []uint64, runs []uint8) error {
	for len(blocks) > 0 {
		in := &a.in[a.filled]
		n := min(len(blocks), a.config.Segment-in.n)
		if a.config.PieceTouches > 0 {
			n = a.piece.cut(runs[:n], in.n, a.config.Segment)
		}
		if n > 0 {
			in.add(blocks[:n], runs[:n])
			if err := a.send(in); err != nil {
				return err
			}
			blocks, runs = blocks[n:], runs[n:]
		}
		if in.n == a.config.Segment || n == 0 {
			if err := a.launch(); err != nil {
				return err
			}
		}
	}
	return nil
}

// add copies what the segment has room for. One processor would take longer than a fast device: several do it.
func (in *input) add(blocks []uint64, runs []uint8) {
	parts := 1
	if len(blocks) >= 1<<14 {
		parts = min(runtime.GOMAXPROCS(0), copiers)
	}
	var all sync.WaitGroup
	var found [copiers]summary
	for k := range parts {
		from, to := k*len(blocks)/parts, (k+1)*len(blocks)/parts
		work := func() {
			found[k] = summarize(in.blocks[in.n+from:in.n+to], blocks[from:to], runs[from:to])
			copy(in.runs[in.n+from:], runs[from:to])
		}
		if k == parts-1 {
			work()
		} else {
			all.Go(work)
		}
	}
	all.Wait()
	for _, f := range found[:parts] {
		in.or |= f.or
		in.and &= f.and
		in.touches += f.touches
	}
	in.n += len(blocks)
}

const copiers = 4

// summary is what is known of runs when they are copied.
type summary struct{ or, and, touches uint64 }

func summarize(to, blocks []uint64, runs []uint8) summary {
	s := summary{0, ^uint64(0), uint64(len(runs))}
	to = to[:len(blocks)]
	for i, b := range blocks {
		s.or |= b
		s.and &= b
		to[i] = b
	}
	for ; len(runs) >= 8; runs = runs[8:] {
		// Touches after the first ones, up to 63 each: the sum of all bytes is below 1 << 16.
		more := binary.LittleEndian.Uint64(runs) >> 1 & 0x7f7f7f7f7f7f7f7f
		s.touches += (more&0x00ff00ff00ff00ff + more>>8&0x00ff00ff00ff00ff) * 0x0001000100010001 >> 48
	}
	for _, r := range runs {
		s.touches += uint64(r >> 1)
	}
	return s
}

// send starts to copy what is new.
func (a *Analysis) send(in *input) error {
	at, n := in.sent, in.n-in.sent
	blocks := unsafe.Slice((*byte)(unsafe.Pointer(&in.blocks[at])), 8*n)
	e, err := a.Write(opencl.Copy, in.onDevice, uint64(8*at), blocks)
	if err != nil {
		return err
	}
	f, err := a.Write(opencl.Copy, in.runsOnDevice, uint64(at), in.runs[at:in.n])
	in.events, in.sent = append(in.events, e, f), in.n
	return err
}

// launch starts the analysis of the segment that was filled, when the one before is done.
func (a *Analysis) launch() error {
	in := &a.in[a.filled]
	if in.n == 0 {
		return nil
	}
	if err := a.settle(); err != nil {
		return err
	}
	err := a.Wait(in.events...)
	in.events = in.events[:0]
	if err != nil {
		return err
	}
	if err := a.compute(in); err != nil {
		return err
	}
	a.under, a.underWay = in.n, in.touches
	a.filled ^= 1
	next := &a.in[a.filled]
	next.n, next.sent, next.touches, next.or, next.and = 0, 0, 0, 0, ^uint64(0)
	return nil
}

// compute starts all of a segment but for its effect on the stack.
func (a *Analysis) compute(in *input) error {
	n, s := uint32(in.n), &a.stack
	if s.blocks > maxBlocks {
		return exact.ErrTooManyBlocks
	}
	if err := a.each("lengths", uint64(n)+1, in.runsOnDevice, n, a.offset); err != nil {
		return err
	}
	if err := a.scan(a.offset, uint64(n)+1); err != nil {
		return err
	}
	if err := a.sortBy(in, n); err != nil {
		return err
	}
	key, order := a.key[a.sorted], a.order[a.sorted]
	if err := s.clearTouched(a); err != nil {
		return err
	}
	m, ranked := uint32(s.blocks), uint32(1)
	if a.config.PieceTouches > 0 {
		ranked = 0
	}
	if err := a.each("match", uint64(n)+1, key, order, n, s.known, m, s.rank, ranked, a.before, a.isNew, a.again, s.touched); err != nil {
		return err
	}
	if a.config.PieceTouches > 0 {
		return a.piece.compute(a, in)
	}
	for _, x := range []struct {
		of *opencl.Buffer
		n  uint64
	}{{a.isNew, uint64(n) + 1}, {a.again, uint64(n) + 1}, {s.touched, uint64(m) + 1}} {
		if err := a.scan(x.of, x.n); err != nil {
			return err
		}
	}
	if err := a.each("number", uint64(n), key, order, n, m, s.rank, a.before, a.isNew, a.again, s.touched, a.value, a.prior); err != nil {
		return err
	}
	if err := a.inversions(a.value, n, a.inv); err != nil {
		return err
	}
	found := []any{n, m, a.now, a.value, a.prior, a.inv, a.isNew, s.touched, a.offset, s.rank, s.last}
	if a.config.Each != nil {
		return a.each("each", uint64(n), append(found, a.out[0], a.out[1])...)
	}
	timed := uint32(1)
	if a.config.Untimed {
		timed = 0
	}
	h := &a.histogram
	return a.Run("tally", min(a.tallyGroups, (uint64(n)+group-1)/group), group, append(found, in.runsOnDevice, timed, h.edges, h.octaves, h.bins, h.words)...)
}

// sortBy sorts a segment by block. Digits in which all blocks agree are left out.
func (a *Analysis) sortBy(in *input, n uint32) error {
	differ := in.or ^ in.and
	from, first := in.onDevice, uint32(1)
	to := 0
	for first == 1 || differ != 0 {
		shift := uint32(min(bits.TrailingZeros64(differ), 56))
		differ &^= 255 << shift
		if err := a.sortDigit(from, a.order[to^1], first, n, shift, a.key[to], a.order[to]); err != nil {
			return err
		}
		from, first, a.sorted, to = a.key[to], 0, to, to^1
	}
	return nil
}

// settle waits for the segment under way, and makes its touches part of the stack.
func (a *Analysis) settle() error {
	if a.under == 0 {
		return nil
	}
	n := uint32(a.under)
	a.under = 0
	var fresh, touched [1]uint32
	if err := a.Read(words(fresh[:]), a.isNew, 4*uint64(n)); err != nil {
		return err
	}
	if err := a.Read(words(touched[:]), a.stack.touched, 4*a.stack.blocks); err != nil {
		return err
	}
	if a.config.Each != nil {
		for i, to := range [][]uint64{a.dists[:n], a.times[:n]} {
			if err := a.Read(unsafe.Slice((*byte)(unsafe.Pointer(&to[0])), 8*n), a.out[i], 0); err != nil {
				return err
			}
		}
		if err := a.config.Each(a.dists[:n], a.times[:n]); err != nil {
			return err
		}
	}
	if a.config.PieceTouches > 0 {
		if err := a.piece.settle(a, n); err != nil {
			return err
		}
	}
	if err := a.stack.update(a, n, fresh[0], touched[0]); err != nil {
		return err
	}
	a.piece.before = uint32(a.piece.total)
	a.now += a.underWay
	if a.counted += a.underWay; a.counted >= 1<<31 {
		a.counted = 0
		return a.histogram.take(a.Context)
	}
	return nil
}

// Finish ends the analysis. What it found does not have the touches after the first of each run.
func (a *Analysis) Finish() (*exact.Counted, error) {
	if err := a.launch(); err != nil {
		return nil, err
	}
	if err := a.settle(); err != nil {
		return nil, err
	}
	if a.config.PieceTouches > 0 {
		return a.piece.finish(a)
	}
	h := &a.histogram
	if err := h.take(a.Context); err != nil {
		return nil, err
	}
	c := h.counted()
	c.Blocks = a.stack.blocks
	m := uint32(a.stack.blocks)
	if m > 0 && !a.config.Untimed && a.config.Each == nil {
		if err := a.Run("tally_last", min(a.tallyGroups, (uint64(m)+group-1)/group), group, m, a.now, a.stack.last, h.edges, h.octaves, h.bins, h.words); err != nil {
			return nil, err
		}
		if err := h.take(a.Context); err != nil {
			return nil, err
		}
		c.Last = h.counted().First
	}
	return c, a.Context.Finish()
}

func words(w []uint32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 4*len(w)) }

// Close gives the memory back that analyses have on the device.
func (a *Analysis) Close() { a.FreeAll() }
