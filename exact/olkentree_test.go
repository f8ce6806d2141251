package exact

import (
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// plainRuns is a runTree as it is defined: live positions by run.
type plainRuns []uint32

func (p plainRuns) after(run uint32) (n uint32) {
	for _, live := range p[run+1:] {
		n += live
	}
	return n
}

// find is the run of the live position that has k live ones above it, and how many of them are in the run.
func (p plainRuns) find(k uint32) (run, left uint32) {
	for i, live := range slices.Backward(p) {
		if k < live {
			return uint32(i), k
		}
		k -= live
	}
	return 0, k
}

func TestRunTree(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testRunTree(t, (*runTree).plainRemove) })
	t.Run("AVX2", func(t *testing.T) {
		needAVX2(t)
		testRunTree(t, removeRun)
	})
}

func testRunTree(t *testing.T, remove func(*runTree, uint32) uint32) {
	r := seededRand(t)
	var tree runTree // which is used again, larger and smaller
	deepest := 0
	for _, runs := range []int{1, 2, 15, 16, 17, 255, 256, 257, 4097, 70_000, 300} {
		tree.reset(uint64(runs))
		deepest = max(deepest, tree.levels)
		want := make(plainRuns, runs)
		for range 300 {
			run := uint32(r.IntN(runs))
			if r.IntN(3) == 0 { // the ends of nodes
				run = min(run&^(treeFan-1)+uint32(r.IntN(2))*(treeFan-1), uint32(runs-1))
			}
			if want[run] == 0 || r.IntN(3) == 0 {
				n := uint32(r.IntN(runBits + 1))
				tree.add(run, n)
				want[run] += n
			}
			after := want.after(run)
			if got := tree.after(run); got != after {
				t.Fatalf("%d runs: %d after run %d, want %d", runs, got, run, after)
			}
			if all := want.after(0) + want[0]; all > 0 {
				k := r.Uint32N(all)
				gotRun, got := tree.find(k)
				if wantRun, left := want.find(k); gotRun != wantRun || got != left {
					t.Fatalf("%d runs: the one %d from the end is in run %d, %d there; want %d, %d", runs, k, gotRun, got, wantRun, left)
				}
			}
			if want[run] > 0 {
				want[run]--
				if got := remove(&tree, run); got != after {
					t.Fatalf("%d runs: removed with %d after run %d, want %d", runs, got, run, after)
				}
			}
		}
		for range 50 { // nothing else was changed
			run := uint32(r.IntN(runs))
			if got := tree.after(run); got != want.after(run) {
				t.Fatalf("%d runs: in the end %d after run %d, want %d", runs, got, run, want.after(run))
			}
		}
	}
	if deepest < 5 {
		t.Errorf("%d levels: the test does not test them", deepest)
	}
}

// Needs AVX2.
func TestTakeSlots(t *testing.T) {
	needAVX2(t)
	r := seededRand(t)
	near, far, cold := 0, 0, 0
	for range 100 {
		live := 1 + r.Uint32N(300_000)
		var a, b timedOrder
		a.begin(live)
		b.begin(live)
		held := make([]uint32, live)
		for i := range held {
			held[i] = uint32(i) + 1
		}
		for range r.IntN(2 * runBits) {
			held = append(held, a.now)
			a.push()
			b.push()
		}
		for len(held) > 0 && near+far < 1e6 {
			n := r.IntN(batch + 1)
			positions := make([]uint32, n)
			slots, above := make([]*uint32, n), make([]uint8, n)
			dist, want := make([]uint64, n), make([]uint64, n)
			wantCold := 0
			for i := range slots {
				above[i], slots[i] = uint8(r.IntN(vectorBlocks)), &positions[i]
				if len(held) == 0 || r.IntN(8) == 0 {
					positions[i], want[i] = coldPos, model.Infinite
					wantCold++
					continue
				}
				k := r.IntN(len(held))
				if r.IntN(3) == 0 { // one of the last
					k = max(len(held)-1-r.IntN(300), 0)
				}
				p := held[k]
				held[k] = held[len(held)-1]
				held = held[:len(held)-1]
				if p>>runShift == b.now>>runShift {
					near++
				} else {
					far++
				}
				positions[i], want[i] = p, uint64(b.take(p))+uint64(above[i])
			}
			if got := takeSlots(&a, slots, above, dist); got != wantCold || !slices.Equal(dist, want) {
				t.Fatalf("%d cold, distances %v; want %d, %v", got, dist, wantCold, want)
			}
			if a.openLive != b.openLive || !slices.Equal(a.bitmap, b.bitmap) || !slices.Equal(a.later, b.later) || !slices.Equal(a.closed.nodes, b.closed.nodes) {
				t.Fatal("the orders differ")
			}
			cold += wantCold
			if r.IntN(300) == 0 {
				break
			}
		}
	}
	if near < 1000 || far < 10_000 || cold < 1000 {
		t.Errorf("%d near, %d far, %d cold: the test does not test them", near, far, cold)
	}
}
