// Needs: nothing.
package ahead

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// There is a witness exactly where a table of all touches finds an open one, and each open one is it as often as another,
// however the window is cut into runs.
func TestWitness(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for round := range 60 {
		block := 8 << (round % 4)
		first, most := 1+r.IntN(40), 60+r.IntN(200)
		wide := 64 << r.IntN(8)
		var all []interp.Access
		for len(all) < most {
			all = append(all, interp.Access{Addr: 0x1000 + uint64(r.IntN(wide)), Size: 1 << r.IntN(6), Inst: int32(len(all))})
		}
		var table accessLog
		table.reset(block)
		table.add(all)
		table.close(first)
		seen := map[firstTouch]int{}
		const times = 400
		for range times {
			var g accessLog
			var w witness
			g.reset(block)
			w.reset()
			open := true
			for rest := all; len(rest) > 0 && open; {
				n := min(max(first-len(g.all), 1+r.IntN(80)), len(rest))
				g.all, rest = append(g.all, rest[:n]...), rest[n:]
				if !w.begun {
					w.begin(&g, first)
				}
				open = w.stands(&g, r.IntN)
			}
			if open != (len(table.open) > 0) {
				t.Fatalf("a witness: %v, of %d that are open", open, len(table.open))
			}
			if !open {
				continue
			}
			seen[w.now]++
			u := w.use(&g, r.IntN)
			if a := g.all[u.at]; u.block != w.now.block || !touches(a, u.word, 8) || u.word/uint64(block) != u.block {
				t.Fatalf("%+v is used by %+v", a, u)
			}
		}
		want := float64(times) / float64(max(len(table.open), 1))
		for _, i := range table.open {
			u := table.touches[i]
			n := seen[firstTouch{u.block, u.at}]
			delete(seen, firstTouch{u.block, u.at})
			if math.Abs(float64(n)-want) > 6*math.Sqrt(want)+1 {
				t.Errorf("touch %d of %d that are open is the witness %d times, want %.0f", i, len(table.open), n, want)
			}
		}
		if len(seen) > 0 {
			t.Errorf("%d are witnesses and not open", len(seen))
		}
	}
}

// Where nearly all are reused late all that are open are looked for, and where that does not suffice it gives up.
func TestWitnessTires(t *testing.T) {
	const first, every, all = 1024, 900, 3 * 1024
	r := rand.New(rand.NewPCG(1, 1))
	for _, step := range []int{all - first, 100, 1} {
		var g accessLog
		var w witness
		g.reset(64)
		w.reset()
		open := true
		for open && len(g.all) < all {
			for range max(step, first-len(g.all)) {
				g.all = append(g.all, interp.Access{Addr: uint64(len(g.all)%every) * 64, Size: 8, Inst: int32(len(g.all))})
			}
			if !w.begun {
				w.begin(&g, first)
			}
			open = w.stands(&g, r.IntN)
			if want := len(g.all) < first+every; open != want && !w.tired {
				t.Fatalf("in steps of %d: open: %v after %d, want %v", step, open, len(g.all), want)
			}
		}
		if open || w.searched == 0 || w.spent > manyLooks*len(g.all)+every {
			t.Errorf("in steps of %d: %+v", step, w)
		}
		w.spent, w.upTo = math.MaxInt, 0
		if w.stands(&g, r.IntN) || !w.tired {
			t.Errorf("in steps of %d: it does not tire", step)
		}
	}
}

func BenchmarkWitness(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	batch := make([]interp.Access, 64)
	var g accessLog
	var w witness
	for b.Loop() {
		g.reset(64)
		w.reset()
		for len(g.all) < 3071 {
			for i := range batch {
				batch[i] = interp.Access{Addr: uint64(r.IntN(1 << 20)), Size: 8, Inst: int32(i)}
			}
			g.keep(batch)
			if len(g.all) >= 1024 {
				if !w.begun {
					w.begin(&g, 1024)
				}
				w.stands(&g, r.IntN)
			}
		}
		w.use(&g, r.IntN)
	}
}
