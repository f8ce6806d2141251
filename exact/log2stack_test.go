package exact

import (
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func log2Of(t testing.TB, blocks []uint64, step int, newOlken func() *Olken) *Log2Stack {
	t.Helper()
	s := NewLog2Stack()
	s.olken = newOlken()
	s.olken.order.untimed = true
	for part := range slices.Chunk(blocks, step) {
		if err := s.Touch(part); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// sameLog2 compares with the distances of the definition, or if there are too
// many blocks for that with Olken's, on the same bins.
func sameLog2(t *testing.T, name string, blocks []uint64, s *Log2Stack) {
	t.Helper()
	dist := make([]uint64, len(blocks))
	if len(blocks) <= 5000 {
		var brute bruteStack
		for i, b := range blocks {
			dist[i], _ = brute.touch(b)
		}
	} else if err := NewOlken().Touch(blocks, dist, nil); err != nil {
		t.Fatal(err)
	}
	want := model.NewHist(model.LogBins(1))
	distinct := map[uint64]bool{}
	for i, d := range dist {
		distinct[blocks[i]] = true
		if d == model.Infinite {
			want.AddKind(model.Cold, 0, 1)
		} else {
			want.Add(d, 1)
		}
	}
	got := s.Distances()
	if !slices.Equal(got.W, want.W) || got.Cold != want.Cold || got.N != want.N || s.Blocks() != uint64(len(distinct)) {
		t.Errorf("%s: %v, cold %v; want %v, %v", name, got.W[:20], got.Cold, want.W[:20], want.Cold)
	}
}

func TestLog2Stack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	eachOlken(t, testLog2Stack)
}

func testLog2Stack(t *testing.T, newOlken func() *Olken) {
	r := seededRand(t)
	for name, blocks := range testStreams(r, 200_000, 9000) {
		sameLog2(t, name, blocks, log2Of(t, blocks, 1+r.IntN(3000), newOlken))
		sameLog2(t, name+", its beginning", blocks[:5000], log2Of(t, blocks[:5000], 77, newOlken))
	}
	for name, blocks := range testStreams(r, 5000, 200) {
		sameLog2(t, name+", of 200", blocks, log2Of(t, blocks, 1+r.IntN(100), newOlken))
	}
}

func FuzzLog2Stack(f *testing.F) {
	f.Add([]byte("abbcaabbca"), uint8(3))
	f.Fuzz(func(t *testing.T, trace []byte, step uint8) {
		blocks := make([]uint64, len(trace))
		for i, b := range trace {
			blocks[i] = uint64(int8(b))
		}
		newOlken := NewOlken
		if step >= 100 {
			newOlken = plainOlken
		}
		sameLog2(t, "fuzz", blocks, log2Of(t, blocks, int(step)%100+1, newOlken))
	})
}
