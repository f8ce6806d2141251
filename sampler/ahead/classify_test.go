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
		reused := 0
		for _, next := range g.next {
			if next > 0 {
				reused++
			}
		}
		if g.classified != classified || len(g.open) != len(open) || reused != classified-len(open) {
			t.Fatalf("%d classified, %d open, %d reused; want %d and %d", g.classified, len(g.open), reused, classified, len(open))
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
		}
		g.close(1024)
		g.choose(r.IntN)
	}
}

// Of open uses one stands for those whose blocks are known, and one for the others, each of them as likely.
func TestOpenUses(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	var g accessLog
	g.reset(64)
	var accesses []interp.Access
	for i := range 20 {
		accesses = append(accesses, interp.Access{Addr: uint64(i) * 64, Size: 8, Inst: int32(i)})
	}
	g.add(accesses)
	g.close(10)
	known := func(block uint64) bool { return block < 3 }
	seen := map[uint64]int{}
	for range 3000 {
		chosen := g.choose(r.IntN)
		if all := g.openUses([]use{chosen}, nil, r.IntN); len(all) != 1 || all[0].share != 1 || all[0].distinct != 20-int(chosen.block) {
			t.Fatalf("%+v", all)
		}
		uses := g.openUses([]use{chosen}, known, r.IntN)
		if len(uses) != 2 || known(uses[0].block) == known(uses[1].block) || uses[0].block != chosen.block {
			t.Fatalf("%+v", uses)
		}
		for _, u := range uses {
			seen[u.block]++
			want := 0.7
			if known(u.block) {
				want = 0.3
			}
			if math.Abs(u.share-want) > 1e-12 || u.distinct != 20-int(u.block) || u.reuse != -1 {
				t.Fatalf("%+v, want a share of %v", u, want)
			}
		}
	}
	for b := range uint64(10) {
		want := 3000. / 7
		if known(b) {
			want = 1000
		}
		if n := float64(seen[b]); math.Abs(n-want) > 5*math.Sqrt(want) {
			t.Errorf("block %d is told of %v times, want %v", b, n, want)
		}
	}
	if uses := g.openUses([]use{g.choose(r.IntN)}, func(uint64) bool { return true }, r.IntN); len(uses) != 1 || uses[0].share != 1 {
		t.Errorf("%+v", uses)
	}
}

// A hold of nearly 50,000 accesses, most of them to what was touched shortly before.
func BenchmarkByDistance(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	accesses := make([]interp.Access, 3<<14)
	var recent [64]uint64
	for i := range accesses {
		block := recent[r.IntN(len(recent))]
		if r.IntN(10) == 0 {
			block = r.Uint64N(1 << 14)
		}
		recent[i%len(recent)] = block
		accesses[i] = interp.Access{Addr: block * 64, Size: 8, Inst: int32(i)}
	}
	var g accessLog
	g.reset(64)
	g.add(accesses)
	g.close(len(accesses) / 2)
	for b.Loop() {
		g.byDistance(nil, r.IntN)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(accesses)), "ns/touch")
}

// Marks behind a place, set in order and cleared in none, over several stretches.
func TestMarks(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	const size = 3*64*markStretch + 100
	var m marks
	for range 3 {
		m.reset(size)
		var set []bool
		for place := range size {
			if place > 0 && r.IntN(2) == 0 {
				if p := place - 1 - r.IntN(min(place, 1+r.IntN(size))); set[p] {
					m.clear(p)
					set[p] = false
				}
			}
			m.set(place)
			set = append(set, true)
			if place%97 > 0 {
				continue
			}
			from, want := r.IntN(place+1), 0
			for _, is := range set[from+1:] {
				if is {
					want++
				}
			}
			if got := m.after(from); got != want {
				t.Fatalf("%d marks behind %d of %d, want %d", got, from, place, want)
			}
		}
	}
}

// Each of those that come is chosen as likely as any other, however many come.
func TestDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	const n, runs = 10, 20_000
	var chosen [n]int
	for range runs {
		var o octave
		last := -1
		for i := range n {
			if o.draw(r.IntN) {
				last = i
			}
		}
		chosen[last]++
	}
	for i, k := range chosen {
		if want := float64(runs) / n; math.Abs(float64(k)-want) > 5*math.Sqrt(want) {
			t.Errorf("number %d was chosen %d times, want %v", i, k, want)
		}
	}
}
