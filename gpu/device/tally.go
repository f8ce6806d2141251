package device

import (
	"encoding/binary"
	"slices"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/gpu/opencl"
)

// histogram is what the kernel tally counts: words of 32 bits on the device, of which sums take two or three, and
// what was taken from there.
type histogram struct {
	edges, octaves *opencl.Buffer
	bins           uint32 // from that of exact.SmallValues on
	words          *opencl.Buffer
	size           uint64 // words

	times, loads, stores, first exact.CountedValues
	windows                     []uint64
	cold                        [2]uint64
}

func (h *histogram) init(ctx *opencl.Context, edges []uint64) error {
	// Where values begin that are above SmallValues but below the next edge, they are in the bin of that.
	index := func(v uint64) uint32 {
		i, found := slices.BinarySearch(edges, v)
		if !found {
			i--
		}
		return uint32(i)
	}
	octaves := make([]uint32, 65)
	for k := range 64 {
		octaves[k] = index(1 << k)
	}
	octaves[64] = uint32(len(edges) - 1)
	h.bins = uint32(len(edges)) - index(exact.SmallValues)
	if octaves[12] != index(exact.SmallValues) {
		panic("device: the kernels have another number of small values")
	}
	var err error
	if h.edges, err = upload(ctx, edges); err != nil {
		return err
	}
	if h.octaves, err = upload(ctx, octaves); err != nil {
		return err
	}
	const small = exact.SmallValues
	b := uint64(h.bins)
	h.size = (small + b) + 3*b + 2*small + 2*b + 2*(small+b) + (small + b) + 3*b + 2
	if h.words, err = ctx.Alloc(4 * h.size); err != nil {
		return err
	}
	h.empty()
	return h.clear(ctx)
}

// upload puts numbers into memory of the device of their own.
func upload[T uint32 | uint64](ctx *opencl.Context, numbers []T) (*opencl.Buffer, error) {
	bytes, err := binary.Append(nil, binary.NativeEndian, numbers)
	if err != nil {
		return nil, err
	}
	b, err := ctx.Alloc(uint64(len(bytes)))
	if err != nil {
		return nil, err
	}
	e, err := ctx.Write(opencl.Compute, b, 0, bytes)
	if err != nil {
		return nil, err
	}
	return b, ctx.Wait(e)
}

// empty forgets what was taken.
func (h *histogram) empty() {
	for _, v := range []*exact.CountedValues{&h.times, &h.loads, &h.stores, &h.first} {
		*v = exact.NewCountedValues(int(h.bins))
	}
	h.windows = make([]uint64, exact.SmallValues+int(h.bins))
	h.cold = [2]uint64{}
}

func (h *histogram) clear(ctx *opencl.Context) error {
	return ctx.Run("fill", (h.size+group-1)/group, group, h.words, h.size, uint32(0))
}

// take adds what the device has counted, and lets it begin anew.
func (h *histogram) take(ctx *opencl.Context) error {
	w := make([]uint32, h.size)
	if err := ctx.Read(words(w), h.words, 0); err != nil {
		return err
	}
	const small = exact.SmallValues
	bins := int(h.bins)
	next := func(n int) []uint32 {
		part := w[:n]
		w = w[n:]
		return part
	}
	long := func(w []uint32) (hi, lo uint64) { // of two words, or of three
		lo = uint64(w[0]) | uint64(w[1])<<32
		if len(w) > 2 {
			hi = uint64(w[2])
		}
		return hi, lo
	}
	values := func(to *exact.CountedValues, n, sums []uint32) {
		for i, x := range n {
			var hi, lo uint64
			if i >= small && sums != nil {
				k := 3 * (i - small)
				hi, lo = long(sums[k : k+3])
			}
			to.Add(i, uint64(x), hi, lo)
		}
	}
	n := next(small + bins)
	values(&h.times, n, next(3*bins))
	for i := range h.windows {
		_, sum := long(next(2))
		h.windows[i] += sum
	}
	values(&h.loads, next(small+bins), nil)
	values(&h.stores, next(small+bins), nil)
	n = next(small + bins)
	values(&h.first, n, next(3*bins))
	for store, n := range next(2) {
		h.cold[store] += uint64(n)
	}
	return h.clear(ctx)
}

// counted is what was taken, but for what is not in histograms.
func (h *histogram) counted() *exact.Counted {
	c := &exact.Counted{Times: h.times, Windows: h.windows, Loads: h.loads, Stores: h.stores, First: h.first, Cold: h.cold}
	h.empty()
	return c
}
