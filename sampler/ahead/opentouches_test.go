// Needs: nothing.
package ahead

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// What is open is what a table of all touches finds, and each open one is chosen as often as another, however the window is cut
// into runs.
func TestOpenTouches(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var o openTouches
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
		seen := map[openTouch]int{}
		const times = 400
		for range times {
			var g accessLog
			g.reset(block)
			o.reset()
			open := true
			for rest := all; len(rest) > 0 && open; {
				n := min(max(first-len(g.all), 1+r.IntN(80)), len(rest))
				g.all, rest = append(g.all, rest[:n]...), rest[n:]
				if !o.begun {
					o.begin(&g, first)
				}
				open = o.any(&g)
			}
			if open != (len(table.open) > 0) || o.n != len(table.open) {
				t.Fatalf("%d are open, want %d", o.n, len(table.open))
			}
			if !open {
				continue
			}
			chosen := o.choose(r.IntN)
			seen[chosen]++
			u := chosen.use(&g, r.IntN)
			if a := g.all[u.at]; u.block != chosen.block || !touches(a, u.word, 8) || u.word/uint64(block) != u.block {
				t.Fatalf("%+v is used by %+v", a, u)
			}
		}
		want := float64(times) / float64(max(len(table.open), 1))
		for _, i := range table.open {
			u := table.touches[i]
			n := seen[openTouch{u.block, u.at}]
			delete(seen, openTouch{u.block, u.at})
			if math.Abs(float64(n)-want) > 6*math.Sqrt(want)+1 {
				t.Errorf("touch %d of %d that are open is chosen %d times, want %.0f", i, len(table.open), n, want)
			}
		}
		if len(seen) > 0 {
			t.Errorf("%d are chosen and not open", len(seen))
		}
	}
}

// More blocks of one hash than are counted: all are found all the same.
func TestOpenTouchesOfOneHash(t *testing.T) {
	var o openTouches
	var alike []uint64
	for b := uint64(1); len(alike) < 600; b++ {
		if o.count(b) == o.count(1) {
			alike = append(alike, b)
		}
	}
	var g accessLog
	g.reset(64)
	for _, b := range alike {
		g.all = append(g.all, interp.Access{Addr: b * 64, Size: 8, Inst: int32(len(g.all))})
	}
	o.begin(&g, len(alike))
	for i, b := range alike {
		if !o.any(&g) || o.n != len(alike)-i {
			t.Fatalf("after %d reuses %d are open", i, o.n)
		}
		g.all = append(g.all, interp.Access{Addr: b * 64, Size: 8, Inst: int32(len(g.all))})
	}
	if o.any(&g) {
		t.Errorf("%d are open at the end", o.n)
	}
}

func BenchmarkOpenTouches(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	var g accessLog
	var o openTouches
	batch := make([]interp.Access, 256)
	for b.Loop() {
		g.reset(64)
		o.reset()
		for len(g.all) < 24574 {
			for i := range batch {
				a := uint64(r.IntN(1 << 12)) // mostly of few lines
				if i%16 == 0 {
					a = uint64(r.IntN(1 << 20))
				}
				batch[i] = interp.Access{Addr: a, Size: 8, Inst: int32(i)}
			}
			g.keep(batch)
			if len(g.all) >= 8192 {
				if !o.begun {
					o.begin(&g, 8192)
				}
				o.any(&g)
			}
		}
		o.choose(r.IntN)
	}
}
