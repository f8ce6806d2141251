// Needs: nothing.
package ahead

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// What is classified is what walking on from each touch finds; what is told by octaves of distance adds
// up to it, and one of the open is chosen as often as another.
func TestClassify(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var g accessLog
	for round := range 100 {
		block := 8 << (round % 4)
		g.reset(block)
		first, most := 1+r.IntN(80), 40+r.IntN(400)
		wide := 64 << r.IntN(10)
		for len(g.all) < most {
			batch := make([]interp.Access, 1+r.IntN(3))
			for i := range batch {
				batch[i] = interp.Access{Addr: 0x1000 + uint64(r.IntN(wide)), Size: 1 << r.IntN(6), Inst: int32(i)}
			}
			g.add(batch)
			if r.IntN(3) == 0 {
				g.anyOpen(first)
			}
		}
		g.close(first)
		open, classified := map[int]bool{}, 0
		octaves := map[int]int{}
		for i, u := range g.touches {
			if int(u.at) >= first {
				break
			}
			classified++
			seen := map[uint64]bool{u.block: true}
			j := i + 1
			for j < len(g.touches) && g.touches[j].block != u.block {
				seen[g.touches[j].block] = true
				j++
			}
			if j == len(g.touches) {
				open[i] = true
				continue
			}
			if int(g.next[i]) != j {
				t.Fatalf("reuse of touch %d: %d, want %d", i, g.next[i], j)
			}
			if d := g.distinct(i, j); d != len(seen) {
				t.Fatalf("distance of touch %d: %d, want %d", i, d, len(seen))
			}
			octaves[distanceOf(len(seen))]++
		}
		if g.classified != classified || len(g.open) != len(open) || g.reused != classified-len(open) {
			t.Fatalf("%d classified, %d open, %d reused; want %d and %d", g.classified, len(g.open), g.reused, classified, len(open))
		}
		if len(open) > 0 {
			if u := g.choose(r.IntN); !open[u.touch] || u.reuse >= 0 {
				t.Fatalf("touch %d is chosen, which is not open", u.touch)
			}
		}
		share := float64(len(open)) / float64(classified)
		for _, u := range g.byDistance(nil, r.IntN) {
			share += u.share
			o := distanceOf(u.distinct)
			if want := float64(octaves[o]) / float64(classified); math.Abs(u.share-want) > 1e-12 {
				t.Fatalf("octave %d stands for %v, want %v", o, u.share, want)
			}
			if f := g.followed(&u); f.Distinct != g.distinct(u.touch, u.again) || f.Reuse != u.again-u.touch || f.Reuse <= 0 {
				t.Fatalf("told of touch %d: %+v", u.touch, f)
			}
		}
		if math.Abs(share-1) > 1e-9 {
			t.Fatalf("all stand for %v", share)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	batch := make([]interp.Access, 64)
	var g accessLog
	for b.Loop() {
		g.reset(64)
		for len(g.all) < 3071 {
			for i := range batch {
				batch[i] = interp.Access{Addr: uint64(r.IntN(1 << 20)), Size: 8, Inst: int32(i)}
			}
			g.add(batch)
			g.anyOpen(1024)
		}
		g.close(1024)
		g.choose(r.IntN)
	}
}
