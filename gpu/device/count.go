package device

import (
	"fmt"

	"github.com/rdx-profiler/rdx/gpu/opencl"
)

// counter counts, for each element, those before it that are greater than what it asks for. What is counted and what is
// asked for are each different from element to element, and may be none.
type counter struct {
	*primitives
	most                             int
	counted, asked, greater          *opencl.Buffer
	keys, none, askedKeys, askedNone *opencl.Buffer
	value, askedValue, inv, askedInv *opencl.Buffer
}

func newCounter(ctx *opencl.Context, most int) (*counter, error) {
	if most < 1 || most > MaxSegment {
		return nil, fmt.Errorf("segments of %d touches: want 1 to %d", most, MaxSegment)
	}
	c := &counter{primitives: &primitives{Context: ctx}, most: most}
	n := uint64(most)
	if err := c.prepare(2 * n); err != nil {
		return nil, err
	}
	for _, b := range []struct {
		to *(*opencl.Buffer)
		n  uint64
	}{{&c.counted, n}, {&c.asked, n}, {&c.greater, n}, {&c.none, 2*n + 1}, {&c.askedNone, n + 1}, {&c.value, 2 * n}, {&c.askedValue, n}, {&c.inv, 2 * n}, {&c.askedInv, n}} {
		var err error
		if *b.to, err = ctx.Alloc(4 * b.n); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// count sets greater[i] to how many of counted[:i] are above asked[i]. Numbers have one added, 0 is none; all are
// below values.
func (c *counter) count(counted, asked []uint32, values uint32, greater []uint32) error {
	if len(counted) > c.most {
		return fmt.Errorf("%d elements to count, and room for %d", len(counted), c.most)
	}
	n := uint32(len(counted))
	for _, x := range []struct {
		to   *opencl.Buffer
		from []uint32
	}{{c.counted, counted}, {c.asked, asked}} {
		e, err := c.Write(opencl.Compute, x.to, 0, words(x.from))
		if err != nil {
			return err
		}
		if err := c.Wait(e); err != nil {
			return err
		}
	}
	keys, elements := 2*uint64(values)+1, 2*uint64(n)+1
	for _, x := range []struct {
		b **opencl.Buffer
		n uint64
	}{{&c.keys, keys}, {&c.askedKeys, uint64(values) + 1}, {&c.none, elements}, {&c.askedNone, uint64(n) + 1}} {
		if *x.b == nil || (*x.b).Size < 4*x.n {
			c.Free(*x.b)
			fresh, err := c.Alloc(4 * (x.n + x.n/2))
			if err != nil {
				return err
			}
			*x.b = fresh
		}
		if err := c.fill(*x.b, x.n, 0); err != nil {
			return err
		}
	}
	if err := c.each("count_keys", uint64(n), c.counted, c.asked, n, c.keys, c.none, c.askedKeys, c.askedNone); err != nil {
		return err
	}
	for _, x := range []struct {
		b *opencl.Buffer
		n uint64
	}{{c.keys, keys}, {c.askedKeys, uint64(values) + 1}, {c.none, elements}, {c.askedNone, uint64(n) + 1}} {
		if err := c.scan(x.b, x.n); err != nil {
			return err
		}
	}
	if err := c.each("count_values", uint64(n), c.counted, c.asked, n, c.keys, c.none, c.askedKeys, c.askedNone, c.value, c.askedValue); err != nil {
		return err
	}
	if err := c.inversions(c.value, 2*n, c.inv); err != nil {
		return err
	}
	if err := c.inversions(c.askedValue, n, c.askedInv); err != nil {
		return err
	}
	if err := c.each("count_answer", uint64(n), n, c.value, c.inv, c.askedValue, c.askedInv, c.greater); err != nil {
		return err
	}
	return c.Read(words(greater), c.greater, 0)
}
