package model

import (
	"slices"
	"testing"
)

func log2Of(t testing.TB, blocks []uint64, positions uint64, step int) *Log2Stack {
	t.Helper()
	s := NewLog2Stack()
	s.positions = positions
	s.resize()
	for part := range slices.Chunk(blocks, step) {
		if err := s.Touch(part); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// sameLog2 compares with Olken's distances on the same bins.
func sameLog2(t *testing.T, name string, blocks []uint64, s *Log2Stack) {
	t.Helper()
	dist := make([]uint64, len(blocks))
	o := NewOlken()
	if err := o.Touch(blocks, dist, nil); err != nil {
		t.Fatal(err)
	}
	want := NewHist(LogBins(1))
	for _, d := range dist {
		if d == Infinite {
			want.AddKind(Cold, 0, 1)
		} else {
			want.Add(d, 1)
		}
	}
	got := s.Distances()
	if !slices.Equal(got.W, want.W) || got.Cold != want.Cold || got.N != want.N || s.Blocks() != o.Blocks() {
		t.Errorf("%s: %v, cold %v; want %v, %v", name, got.W[:20], got.Cold, want.W[:20], want.Cold)
	}
}

func TestLog2Stack(t *testing.T) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 200_000, 9000) {
		sameLog2(t, name, blocks, log2Of(t, blocks, minPositions, 1+r.IntN(300)))
		sameLog2(t, name+", many compactions", blocks[:20_000], log2Of(t, blocks[:20_000], 128, 77))
	}
}

func FuzzLog2Stack(f *testing.F) {
	f.Add([]byte("abbcaabbca"), uint8(3))
	f.Fuzz(func(t *testing.T, trace []byte, step uint8) {
		blocks := make([]uint64, len(trace))
		for i, b := range trace {
			blocks[i] = uint64(int8(b))
		}
		sameLog2(t, "fuzz", blocks, log2Of(t, blocks, 64, int(step)+1))
	})
}
