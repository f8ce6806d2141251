// Needs: nothing.
package ahead

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

func TestHeadSizes(t *testing.T) {
	for _, all := range []int{1, 2, 17, 1000, 8192, 131072} {
		sizes := HeadSizes(all)
		if sizes[0] != 1 || sizes[len(sizes)-1] != all || len(sizes) > 255 {
			t.Fatalf("%d: %v", all, sizes)
		}
		for k := 1; k < len(sizes); k++ {
			if d := sizes[k] - sizes[k-1]; d < 1 || d > max(1, sizes[k-1]/8) {
				t.Errorf("%d follows %d", sizes[k], sizes[k-1])
			}
			if HeadOf(sizes, sizes[k-1]) != k || HeadOf(sizes, sizes[k]-1) != k {
				t.Errorf("touches %d to %d are in heads %d to %d, want %d", sizes[k-1], sizes[k]-1, HeadOf(sizes, sizes[k-1]), HeadOf(sizes, sizes[k]-1), k)
			}
		}
	}
	last := 0
	for n := 1; n < 1<<20; n++ {
		if k := UsesOf(n); k != last && k != last+1 || n <= 16 && k != n-1 {
			t.Fatalf("%d uses have place %d after %d", n, k, last)
		} else {
			last = k
		}
	}
}

// What heads have is what walking through the touches finds.
func TestHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var g accessLog
	for range 100 {
		g.reset(8)
		first, most := 1+r.IntN(200), 100+r.IntN(900)
		for len(g.all) < most {
			a := interp.Access{Addr: uint64(r.IntN(64 << r.IntN(6))), Size: 8, Inst: int32(2 * len(g.all))}
			if r.IntN(3) == 0 {
				a.Addr = 1<<20 + uint64(len(g.all)/20)*8 // used for a while
			}
			g.add([]interp.Access{a})
		}
		g.close(first)
		h := g.tellHeads()
		sizes := HeadSizes(g.classified)
		if h.Touches != g.classified || h.Accesses != int(g.touches[g.classified-1].at)+1 || len(h.Instructions) != len(sizes) {
			t.Fatalf("%+v", h)
		}
		for k, n := range sizes {
			if want := g.all[g.touches[n-1].at].Inst + 1; h.Instructions[k] != want {
				t.Fatalf("head of %d touches: %d instructions, want %d", n, h.Instructions[k], want)
			}
		}
		upTo := min(len(g.touches), HeadsReach*g.classified)
		half := upTo / 2
		met, begun := map[Met]int32{}, Uses{}
		for i, u := range g.touches[:upTo] {
			if slices.ContainsFunc(g.touches[:i], func(v blockTouch) bool { return v.block == u.block }) {
				continue
			}
			n := 0
			for _, v := range g.touches[i:min(i+half, upTo)] {
				if v.block == u.block {
					n++
				}
			}
			if i < g.classified {
				met[Met{Head: uint8(HeadOf(sizes, i)), Uses: uint8(UsesOf(n))}]++
			}
			if i >= upTo/3 && i < half {
				begun[UsesOf(n)]++
			}
		}
		if h.Begun != begun || len(h.Met) != len(met) {
			t.Fatalf("begun %v, want %v; %d met, want %d", h.Begun, begun, len(h.Met), len(met))
		}
		for _, m := range h.Met {
			if want := met[Met{Head: m.Head, Uses: m.Uses}]; m.N != want {
				t.Fatalf("%+v, want %d", m, want)
			}
		}
		behind := map[uint64]bool{}
		for _, u := range g.touches[g.classified:upTo] {
			behind[u.block] = true
		}
		if n, ok := g.behind(); ok != (10*upTo >= 27*g.classified) || ok && n != len(behind) {
			t.Fatalf("%d blocks behind, %v, of %d touches in %d; want %d", n, ok, g.classified, upTo, len(behind))
		}
		// Each touch that is told of is in one head of one use.
		told := make([]int, len(sizes))
		uses := g.byDistance(nil, r.IntN)
		if len(g.open) > 0 {
			uses = append(uses, g.openUses([]use{g.choose(r.IntN)}, func(b uint64) bool { return b%3 == 0 }, r.IntN)...)
		}
		for _, u := range uses {
			if len(u.heads) != len(sizes) || u.heads[HeadOf(sizes, u.touch)] == 0 {
				t.Fatalf("touch %d stands for %v", u.touch, u.heads)
			}
			for k, n := range u.heads {
				told[k] += int(n)
			}
		}
		before := 0
		for k, n := range sizes {
			if told[k] != n-before {
				t.Fatalf("%d touches are told of in head %d, want %d", told[k], k, n-before)
			}
			before = n
		}
	}
}
