// Needs: nothing.
package estimate

import (
	"math"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// headed is a stage with one hold for each number of touches told of, each of which takes so many ns; every tenth touch has no reuse, and
// these come first.
func headed(told []int, each []float64) *stage {
	s := &stage{}
	for i, n := range told {
		sizes := ahead.HeadSizes(n)
		h := &ahead.Heads{Touches: n, Accesses: n, Met: []ahead.Met{{Uses: 7, N: 1}}}
		h.Begun[7] = 1
		open, near := make([]uint16, len(sizes)), make([]uint16, len(sizes))
		for k, size := range sizes {
			h.Instructions = append(h.Instructions, int32(3*size))
			before := 0
			if k > 0 {
				before = sizes[k-1]
			}
			first := min(size, n/10) - min(before, n/10)
			open[k], near[k] = uint16(first), uint16(size-before-first)
		}
		s.Holds = append(s.Holds, record.Hold{Accesses: n, Touches: n, Instructions: 3 * n, Heads: h,
			Times: &pipeline.Times{Instructions: 3072, Accesses: 1024, Near: 1024 * each[i]}})
		for k, heads := range [][]uint16{open, near} {
			o := &record.Observation{Hold: i + 1, State: record.Done, OfHold: record.OfHold{Heads: heads}}
			if k == 1 {
				o.Soon = 1
			}
			s.Seen = append(s.Seen, o)
		}
	}
	return s
}

// Slow holds tell of fewer touches, so that all tell of as long a time; what comes first in them counts for more then, and what comes
// last for less. Holds that were cut short don't tell how long that is.
func TestTakeHeads(t *testing.T) {
	told, each := []int{5, 7, 9}, []float64{1, 1, 1}
	for i := range 10 {
		told = append(told, 8192)
		each = append(each, []float64{1, 4}[i%2])
	}
	s := headed(told, each)
	f := foretoldOf(make(map[int]foretoldWindow))
	f.heads = s.newHeads()
	f.takeHeads()
	for i, n := range told {
		x := f.heads[i+1]
		want := min(float64(n), 8192/each[i])
		if got := x.taken().touches; math.Abs(got-want) > 0.02*want {
			t.Errorf("hold %d: %v touches of %v ns are taken, want %v", i+1, got, each[i], want)
		}
		if got := f.windows[i+1].times.Near; math.Abs(got-want*each[i]) > 0.02*want*each[i] {
			t.Errorf("hold %d: %v ns, want %v", i+1, got, want*each[i])
		}
		for k, share := range []float64{0.1, 0.9} {
			o := s.Seen[2*i+k]
			early := min(float64(n/10), want) // without a reuse
			if k == 1 {
				early = want - early
			}
			if n < 10 {
				continue // a tenth is nothing
			}
			if got, want := share*(1-f.late(o)), early/want; math.Abs(got-want) > 0.01 {
				t.Errorf("hold %d: an observation stands for %.3f of what counts, want %.3f", i+1, got, want)
			}
		}
	}
}
