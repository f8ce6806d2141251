package model

import (
	"math/rand/v2"
	"testing"
)

func strideOf(addrs []uint64, from Origins) (Stride, float64) {
	var s Strides
	for i := 1; i < len(addrs); i++ {
		s.Add(int64(addrs[i]-addrs[i-1]), 1)
	}
	return s.Class(from)
}

// walk has n addresses from base on, each the sum of what the steps say in turn.
func walk(n int, steps ...int64) []uint64 {
	a := []uint64{1 << 40}
	for i := range n {
		a = append(a, a[i]+uint64(steps[i%len(steps)]))
	}
	return a
}

func TestStrideClasses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var random, loops []uint64
	for range 5000 {
		random = append(random, r.Uint64N(1<<30))
	}
	for range 500 {
		loops = append(loops, walk(9, 8)...) // nine of ten steps, from one base again
	}
	for _, c := range []struct {
		name  string
		addrs []uint64
		from  Origins
		want  Stride
	}{
		{"none", walk(15, 8), Origins{}, StrideUnknown},
		{"same", walk(16, 0), Origins{}, StrideZero},
		{"words", walk(100, 8), Origins{}, StrideWithin},
		{"back", walk(100, -63), Origins{}, StrideWithin},
		{"lines", walk(100, 64), Origins{}, StrideLine},
		{"lines back", walk(100, -64), Origins{}, StrideLine},
		{"page", walk(100, 4096), Origins{}, StrideLarger},
		{"inner loops", loops, Origins{}, StrideWithin},
		{"two", walk(100, 8, 4096), Origins{}, StrideSeveral},
		{"four", walk(100, 8, 16, 24, -48), Origins{}, StrideSeveral},
		{"six", walk(600, 8, 16, 24, -48, 100, 3), Origins{}, StrideIrregular},
		{"random", random, Origins{}, StrideIrregular},
		{"random by values", random, Origins{Known: 5000}, StrideRandom},
		{"gather", random, Origins{Known: 5000, FromValue: 4000, FromChain: 100}, StrideGather},
		{"chase", random, Origins{Known: 5000, FromValue: 5000, FromChain: 4000}, StrideChase},
		{"chase in order", walk(100, 48), Origins{Known: 100, FromValue: 100, FromChain: 100}, StrideWithin},
	} {
		got, share := strideOf(c.addrs, c.from)
		if got != c.want || got.Regular() && share < KeptShare {
			t.Errorf("%s: %q, %.2f kept, want %q", c.name, got, share, c.want)
		}
	}
}

// What came too seldom for a counter takes no more from the others than is promised, and merging keeps to that.
func TestStridesBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var whole Strides
	var parts [5]Strides
	n := 100_000
	for i := range n {
		d := int64(8)
		if r.IntN(100) < 22 {
			d = r.Int64()
		}
		whole.Add(d, 1)
		parts[i%len(parts)].Add(d, 1)
	}
	var merged Strides
	for i := range parts {
		merged.Merge(&parts[i])
	}
	for _, s := range []*Strides{&whole, &merged} {
		f := s.Frequent()
		if s.Steps != uint64(n) || f[0].Bytes != 8 || f[0].N < uint64(n)*76/100 || f[0].N > uint64(n)*79/100 {
			t.Errorf("%d steps, %v", s.Steps, f)
		}
		if c, _ := s.Class(Origins{}); c != StrideWithin || !s.Prefetched() {
			t.Errorf("class %s", c)
		}
	}
}

func TestStrideNames(t *testing.T) {
	for c := range NumStrides {
		if got, ok := ParseStride(c.String()); !ok || got != c {
			t.Errorf("%d: %q read as %d, %v", c, c, got, ok)
		}
	}
	if _, ok := ParseStride("strided"); ok {
		t.Error("any word is a stride")
	}
}

func TestLineMask(t *testing.T) {
	for _, c := range []struct {
		line, addr uint64
		size       uint32
		want       uint64
	}{
		{1, 64, 8, 0xff}, {1, 72, 8, 0xff00}, {1, 127, 1, 1 << 63}, {1, 60, 8, 0xf}, {0, 60, 8, 0xf << 60},
		{1, 0, 4095, ^uint64(0)}, {2, 130, 0, 4}, {1<<58 - 1, ^uint64(0) - 1, 16, 3 << 62},
	} {
		if got := LineMask(c.line, c.addr, c.size); got != c.want {
			t.Errorf("line %d, %d bytes at %#x: %#x, want %#x", c.line, c.size, c.addr, got, c.want)
		}
	}
	var s LineStay
	for i := range uint64(3) {
		s.Touch(1, &Access{Addr: 64 + i*16, Size: 4, Op: Load})
	}
	if s.Bytes() != 12 || s.Stored {
		t.Errorf("%d bytes, stored %v", s.Bytes(), s.Stored)
	}
}
