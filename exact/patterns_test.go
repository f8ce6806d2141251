// Needs: nothing.

package exact

import (
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// bruteCache is a fully associative LRU cache, the most recent line first.
type bruteCache struct {
	size  int
	lines []bruteLine
}

type bruteLine struct {
	line uint64
	stay model.LineStay
	by   model.Access
}

type brutePattern struct {
	use     model.LineUse
	traffic model.Traffic
}

func (b *bruteCache) touch(line uint64, a model.Access, at map[model.Access]*brutePattern) {
	of := func(by model.Access) *brutePattern {
		k := model.Access{PC: by.PC, Op: by.Op}
		if at[k] == nil {
			at[k] = &brutePattern{}
		}
		return at[k]
	}
	x := bruteLine{line: line, by: a}
	found := false
	for i, l := range b.lines {
		if l.line == line {
			x, found = l, true
			b.lines = append(b.lines[:i], b.lines[i+1:]...)
			break
		}
	}
	if !found {
		of(a).traffic.Fills++
	}
	x.stay.Touch(line, &a)
	b.lines = append([]bruteLine{x}, b.lines...)
	if len(b.lines) > b.size {
		old := b.lines[b.size]
		b.lines = b.lines[:b.size]
		of(old.by).use.Add(model.LineUse{Stays: 1, Bytes: float64(old.stay.Bytes())})
		if old.stay.Stored {
			of(old.by).traffic.WriteBacks++
		}
	}
}

// Patterns are those of caches that are simulated line by line, and of steps that are listed.
func TestPatternsAgainstBrute(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	sizes := []int64{4 * 64, 33 * 64, 300 * 64}
	var accesses []model.Access
	for i := range 30_000 {
		a := model.Access{Addr: uint64(rng.ExpFloat64()*3000) + 1<<20, Size: uint32(rng.IntN(140)), PC: uint64(rng.IntN(12)), Thread: int32(rng.IntN(2)), Op: model.Op(1 + rng.IntN(2))}
		if a.PC == 3 { // walks
			a.Addr, a.Size = 1<<22+uint64(i)*8, 8
		}
		accesses = append(accesses, a)
	}
	p, err := NewPatterns(sizes)
	if err != nil {
		t.Fatal(err)
	}
	for rest := accesses; len(rest) > 0; {
		n := min(len(rest), 1+rng.IntN(5000))
		if err := p.Add(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	got, dirty := p.Result()
	strides := map[model.Access]*model.Strides{}
	last := map[model.Access]uint64{}
	for _, a := range accesses {
		k := model.Access{PC: a.PC, Op: a.Op}
		by := k
		by.Thread = a.Thread
		if strides[k] == nil {
			strides[k] = &model.Strides{}
		}
		if before, ok := last[by]; ok {
			strides[k].Add(int64(a.Addr-before), 1)
		}
		last[by] = a.Addr
	}
	for c, size := range sizes {
		cache := bruteCache{size: int(size / 64)}
		want := map[model.Access]*brutePattern{}
		g, _ := model.NewGranularity(64)
		for _, a := range accesses {
			for b, end := g.Span(&a); b <= end; b++ {
				cache.touch(b, a, want)
			}
		}
		left := uint64(0)
		for _, l := range cache.lines {
			want[model.Access{PC: l.by.PC, Op: l.by.Op}].use.Add(model.LineUse{Stays: 1, Bytes: float64(l.stay.Bytes())})
			if l.stay.Stored {
				left++
			}
		}
		if dirty[c] != left {
			t.Errorf("%d bytes: %d lines dirty at the end, want %d", size, dirty[c], left)
		}
		for i := range got {
			x := &got[i]
			w := want[model.Access{PC: x.PC, Op: x.Op}]
			if w == nil {
				w = &brutePattern{}
			}
			if x.LineUse[c] != w.use || x.Traffic[c] != w.traffic {
				t.Errorf("%d bytes: instruction %d, %s: %+v, %+v; want %+v", size, x.PC, x.Op, x.LineUse[c], x.Traffic[c], *w)
			}
		}
	}
	for i := range got {
		x := &got[i]
		w := strides[model.Access{PC: x.PC, Op: x.Op}]
		class, _ := x.Strides.Class(model.Origins{})
		want, _ := w.Class(model.Origins{})
		if x.Strides.Steps != w.Steps || class != want || x.PC == 3 && class == model.StrideUnknown {
			t.Errorf("instruction %d, %s: %d steps, %s; want %d, %s", x.PC, x.Op, x.Strides.Steps, class, w.Steps, want)
		}
	}
}

// A loop over an array of 16-byte structures that reads 4 bytes of each uses a quarter of each line, and its traffic is known.
func TestPatternsByConstruction(t *testing.T) {
	const items, laps = 4096, 5
	p, err := NewPatterns([]int64{32 << 10, 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for range laps {
		for i := range uint64(items) {
			load := model.Access{Addr: 1<<30 + i*16, Size: 4, PC: 1, Op: model.Load}
			store := model.Access{Addr: 1<<31 + i*8, Size: 8, PC: 2, Op: model.Store}
			if err := p.Add([]model.Access{load, store}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, dirty := p.Result()
	load, store := &got[0], &got[1]
	if u, _ := load.LineUse[0].Mean(); u != 16 {
		t.Errorf("%v bytes of a line are used, want 16", u)
	}
	if u, _ := store.LineUse[1].Mean(); u != 64 {
		t.Errorf("%v bytes of a line are used, want 64", u)
	}
	lines := float64(items) / 8
	if store.Traffic[0].Fills != laps*lines || store.Traffic[1] != (model.Traffic{Fills: lines}) || float64(dirty[1]) != lines ||
		store.Traffic[0].WriteBacks+float64(dirty[0]) != laps*lines || load.Traffic[0].WriteBacks != 0 {
		t.Errorf("%+v, %+v, %d dirty", load.Traffic, store.Traffic, dirty)
	}
	for _, x := range got {
		if c, share := x.Strides.Class(model.Origins{}); c != model.StrideWithin || share < 0.99 || !x.Strides.Prefetched() {
			t.Errorf("%d: %s, %v", x.PC, c, share)
		}
	}
}
