package collector

import (
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler"
)

// cycleStream is a thread that touches so many words of its own and then the common ones, which
// it writes or not, again and again.
func cycleStream(tid, own, common int, store bool) *stream {
	b := &stream{tid: tid}
	for range 20 {
		for i := range own {
			b.add(placeTouch{place{1, uint64(1000*tid + i)}, true})
		}
		for i := range common {
			b.add(placeTouch{place{2, uint64(i)}, store})
		}
	}
	return b
}

// Two threads in cycles of as many words, half of them the same for both: in between they bring
// these once, and what both touch comes again at the other's next visit. Where one writes them it
// is taken to be as with words of their own.
func TestMerge(t *testing.T) {
	const own, common, draws = 60, 60, 2000
	const cycle = own + common
	for name, c := range map[string]struct {
		use    int // in its cycle
		store  bool
		sooner [2]float64 // share
		time   [2]float64 // mean
		blocks [2]int
	}{
		"a word of its own":          {use: 10, sooner: [2]float64{0, 0}, time: [2]float64{238, 242}, blocks: [2]int{cycle + 10, cycle + own}},
		"a common word":              {use: own + 10, sooner: [2]float64{.95, .98}, time: [2]float64{112, 128}, blocks: [2]int{1, cycle + own}},
		"a common word, written":     {use: own + 10, store: true, sooner: [2]float64{0, 0}, time: [2]float64{238, 242}, blocks: [2]int{cycle + 70, 2 * cycle}},
		"of its own, common written": {use: 10, store: true, sooner: [2]float64{0, 0}, time: [2]float64{238, 242}, blocks: [2]int{cycle + 70, 2 * cycle}},
	} {
		s := &Session{rand: rand.New(rand.NewPCG(1, 2))}
		s.beside.seen = make(map[place]uint8)
		a, b := cycleStream(1, own, common, c.store), cycleStream(2, own, common, c.store)
		var sooner, time float64
		for range draws {
			m := s.merge(a, 5*cycle+c.use, cycle, []*stream{b})
			if m.foreign {
				sooner += 1. / draws
			}
			time += float64(m.time) / draws
			if m.common != (name == "a common word") {
				t.Fatalf("%s: common: %v", name, m.common)
			}
			if m.distinct < c.blocks[0] || m.distinct > min(c.blocks[1], m.time+1) {
				t.Fatalf("%s: %+v, want %d to %d blocks", name, m, c.blocks[0], c.blocks[1])
			}
		}
		if sooner < c.sooner[0] || sooner > c.sooner[1] || time < c.time[0] || time > c.time[1] {
			t.Errorf("%s: the other comes first in %.3f, want %v; %.1f touches, want %v", name, sooner, c.sooner, time, c.time)
		}
	}
}

// With two others of the same kind there are twice as many touches in between.
func TestMergeOfThree(t *testing.T) {
	s := &Session{rand: rand.New(rand.NewPCG(1, 2))}
	s.beside.seen = make(map[place]uint8)
	a, b, c := cycleStream(1, 7, 0, false), cycleStream(2, 7, 0, false), cycleStream(3, 7, 0, false)
	const draws = 4000
	var time, blocks float64
	for range draws {
		m := s.merge(a, 70, 7, []*stream{b, c})
		time += float64(m.time) / draws
		blocks += float64(m.distinct) / draws
	}
	// Of each other 7 touches on average, of up to 7 words: E min(Poisson(7), 7) = 5.96.
	if time < 20.8 || time > 21.2 || blocks < 18.6 || blocks > 19.2 {
		t.Errorf("%.2f touches, want 21, of %.2f blocks, want 7 + 2 x 5.96", time, blocks)
	}
}

// What lies in a program's files and heap is the same in all its processes, wherever they are; its anonymous memory is
// each one's own, but for the rest of a file's data, which follows that.
func TestPlaces(t *testing.T) {
	at := func(base uint64) (*process, []sampler.Touch) {
		p := &process{regions: []region{
			{start: base, limit: base + 0x1000, file: "/bin/x"},
			{start: base + 0x1000, limit: base + 0x3000, file: "/bin/x", writable: true},
			{start: base + 0x3000, limit: base + 0x4000, writable: true}, // the rest of its data
			{start: base + 0x8000, limit: base + 0x9000, file: "[heap]", writable: true},
			{start: base + 0x20000, limit: base + 0x21000, writable: true},
			{start: base + 0x30000, limit: base + 0x31000, file: "[stack]", writable: true},
		}}
		var touches []sampler.Touch
		for _, offset := range []uint64{0x2008, 0x3010, 0x8020, 0x20030, 0x30040, 0x50050} {
			touches = append(touches, sampler.Touch{Block: (base + offset) / 8, Store: offset == 0x3010})
		}
		return p, touches
	}
	var n spaceNumbers
	set := func(p *process, touches []sampler.Touch, tid, nth int) *stream {
		b := &stream{}
		b.set(&thread{process: p, tid: tid, nth: nth}, touches, 8, &n)
		return b
	}
	p, touches := at(0x55550000)
	q, others := at(0x66660000)
	a, b, c := set(p, touches, 1, 0), set(q, others, 2, 1), set(p, touches, 3, 1)
	for i, same := range []bool{true, true, true, false, false, false} {
		if got := a.touches[i].place == b.touches[i].place; got != same {
			t.Errorf("%#x: the same in another process: %v, want %v", touches[i].Block*8, got, same)
		}
		if a.touches[i] != c.touches[i] {
			t.Errorf("%#x: not the same in another thread", touches[i].Block*8)
		}
		if a.touches[i].store != (i == 1) {
			t.Errorf("%#x: a store: %v", touches[i].Block*8, a.touches[i].store)
		}
	}
	// A mapping that is read again, cut in two, is where it was.
	p.regions = append([]region{{start: 0x55550000, limit: 0x55550800, file: "/bin/x"}, {start: 0x55550800, limit: 0x55551000, file: "/bin/x"}}, p.regions[1:]...)
	for i, x := range set(p, touches, 1, 0).touches {
		if x != a.touches[i] {
			t.Errorf("%#x: %v after its mappings were read again, %v before", touches[i].Block*8, x, a.touches[i])
		}
	}
}

// Beside a thread are the others of its process; if none of them was held with company, those of
// another process of its program that are not the same one there.
func TestCompany(t *testing.T) {
	p, q, r := &process{}, &process{}, &process{}
	of := func(p *process, program string, tid, nth int) *stream {
		return &stream{process: p, program: program, tid: tid, nth: nth}
	}
	own, other := of(p, "/x", 1, 0), of(p, "/x", 2, 1)
	elsewhere, same, stranger := of(q, "/x", 4, 1), of(q, "/x", 3, 0), of(r, "/y", 6, 1)
	b := &besides{kept: []*stream{own, elsewhere, same, stranger}}
	if got := b.company(own); len(got) != 1 || got[0] != elsewhere {
		t.Errorf("%v, want the other thread of another process", got)
	}
	b.kept = append(b.kept, other)
	if got := b.company(own); len(got) != 1 || got[0] != other {
		t.Errorf("%v, want the other thread of its process", got)
	}
	if got := b.company(stranger); len(got) != 0 {
		t.Errorf("%v beside the only thread of a program", got)
	}
}
