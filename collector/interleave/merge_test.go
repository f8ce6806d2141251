package interleave

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// cycleStream is a thread that touches so many words of its own and then the common ones, which
// it writes or not, again and again.
func cycleStream(m *Merger, tid, private, common int, store bool) *stream {
	p := &target.Process{}
	m.spaces[p] = &spaces{private: 1} // the same for all
	h := &Hold{process: p, tid: tid}
	for range 20 {
		for i := range private {
			h.touches = append(h.touches, ahead.Touch{Block: uint64(1000*tid + i), Store: true})
		}
		for i := range common {
			h.touches = append(h.touches, ahead.Touch{Block: uint64(i), Store: store})
		}
	}
	linkTouches(h.touches)
	b := &stream{}
	m.set(b, h, 8)
	return b
}

// linkTouches says of each touch which one of the block came before.
func linkTouches(touches []ahead.Touch) {
	last := make(map[uint64]int)
	for i := range touches {
		touches[i].Before = -1
		if at, ok := last[touches[i].Block]; ok {
			touches[i].Before = int32(at)
		}
		last[touches[i].Block] = i
	}
}

// Two threads in cycles of as many words, half of them the same for both: in between they bring
// these once, and what both touch comes again at the other's next visit. Where one writes them it
// is taken to be as with words of their own.
func TestMerge(t *testing.T) {
	const private, common, draws = 60, 60, 2000
	const cycle = private + common
	for name, c := range map[string]struct {
		use    int // in its cycle
		store  bool
		sooner [2]float64 // share
		time   [2]float64 // mean
		blocks [2]int
	}{
		"a word of its own":          {use: 10, sooner: [2]float64{0, 0}, time: [2]float64{238, 242}, blocks: [2]int{cycle + 10, cycle + private}},
		"a common word":              {use: private + 10, sooner: [2]float64{.95, .98}, time: [2]float64{112, 128}, blocks: [2]int{1, cycle + private}},
		"a common word, written":     {use: private + 10, store: true, sooner: [2]float64{0, 0}, time: [2]float64{238, 242}, blocks: [2]int{cycle + 70, 2 * cycle}},
		"of its own, common written": {use: 10, store: true, sooner: [2]float64{0, 0}, time: [2]float64{238, 242}, blocks: [2]int{cycle + 70, 2 * cycle}},
	} {
		with := NewMerger(1)
		a, b := cycleStream(with, 1, private, common, c.store), cycleStream(with, 2, private, common, c.store)
		var sooner, time float64
		for range draws {
			m := with.merge(a, 5*cycle+c.use, cycle, []*stream{b})
			if m.Foreign {
				sooner += 1. / draws
			}
			time += float64(m.Time) / draws
			if m.Common != (name == "a common word") {
				t.Fatalf("%s: common: %v", name, m.Common)
			}
			if m.Distinct < c.blocks[0] || m.Distinct > min(c.blocks[1], m.Time+1) {
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
	with := NewMerger(1)
	a, b, c := cycleStream(with, 1, 7, 0, false), cycleStream(with, 2, 7, 0, false), cycleStream(with, 3, 7, 0, false)
	const draws = 4000
	var time, blocks float64
	for range draws {
		m := with.merge(a, 70, 7, []*stream{b, c})
		time += float64(m.Time) / draws
		blocks += float64(m.Distinct) / draws
	}
	// Of each other 7 touches on average, of up to 7 words: E min(Poisson(7), 7) = 5.96.
	if time < 20.8 || time > 21.2 || blocks < 18.6 || blocks > 19.2 {
		t.Errorf("%.2f touches, want 21, of %.2f blocks, want 7 + 2 x 5.96", time, blocks)
	}
}

// What lies in a program's files and heap is the same in all its processes, wherever they are; its anonymous memory is
// each one's own, but for the rest of a file's data, which follows that.
func TestLocations(t *testing.T) {
	at := func(base uint64) (*target.Process, []ahead.Touch) {
		p := &target.Process{Regions: []target.Region{
			{Start: base, Limit: base + 0x1000, File: "/bin/x"},
			{Start: base + 0x1000, Limit: base + 0x3000, File: "/bin/x", Writable: true},
			{Start: base + 0x3000, Limit: base + 0x4000, Writable: true}, // the rest of its data
			{Start: base + 0x8000, Limit: base + 0x9000, File: "[heap]", Writable: true},
			{Start: base + 0x20000, Limit: base + 0x21000, Writable: true},
			{Start: base + 0x30000, Limit: base + 0x31000, File: "[stack]", Writable: true},
		}}
		var touches []ahead.Touch
		for _, offset := range []uint64{0x2008, 0x3010, 0x8020, 0x20030, 0x30040, 0x50050} {
			touches = append(touches, ahead.Touch{Block: (base + offset) / 8, Before: -1, Store: offset == 0x3010})
		}
		return p, touches
	}
	m := NewMerger(1)
	set := func(p *target.Process, touches []ahead.Touch, tid, nth int) *stream {
		b := &stream{}
		m.set(b, &Hold{process: p, regions: p.Regions, tid: tid, nth: nth, touches: touches}, 8)
		return b
	}
	p, touches := at(0x55550000)
	q, others := at(0x66660000)
	a, b, c := set(p, touches, 1, 0), set(q, others, 2, 1), set(p, touches, 3, 1)
	for i, same := range []bool{true, true, true, false, false, false} {
		if got := a.touches[i] == b.touches[i]; got != same {
			t.Errorf("%#x: the same in another process: %v, want %v", touches[i].Block*8, got, same)
		}
		if a.touches[i] != c.touches[i] {
			t.Errorf("%#x: not the same in another thread", touches[i].Block*8)
		}
		if stored := slices.Contains(a.stored, a.touches[i]); stored != (i == 1) {
			t.Errorf("%#x: a store: %v", touches[i].Block*8, stored)
		}
	}
	// A mapping that is read again, cut in two, is where it was.
	p.Regions = append([]target.Region{{Start: 0x55550000, Limit: 0x55550800, File: "/bin/x"}, {Start: 0x55550800, Limit: 0x55551000, File: "/bin/x"}}, p.Regions[1:]...)
	for i, x := range set(p, touches, 1, 0).touches {
		if x != a.touches[i] {
			t.Errorf("%#x: %v after its mappings were read again, %v before", touches[i].Block*8, x, a.touches[i])
		}
	}
}

// Beside a thread are the others of its process; if none of them was held with company, those of
// another process of its program that are not the same one there.
func TestCompany(t *testing.T) {
	p, q, r := &target.Process{}, &target.Process{}, &target.Process{}
	of := func(p *target.Process, program string, tid, nth int) *stream {
		return &stream{process: p, program: program, tid: tid, nth: nth}
	}
	private, other := of(p, "/x", 1, 0), of(p, "/x", 2, 1)
	elsewhere, same, stranger := of(q, "/x", 4, 1), of(q, "/x", 3, 0), of(r, "/y", 6, 1)
	b := &Merger{kept: []*stream{private, elsewhere, same, stranger}}
	if got := b.company(private); len(got) != 1 || got[0] != elsewhere {
		t.Errorf("%v, want the other thread of another process", got)
	}
	b.kept = append(b.kept, other)
	if got := b.company(private); len(got) != 1 || got[0] != other {
		t.Errorf("%v, want the other thread of its process", got)
	}
	if got := b.company(stranger); len(got) != 0 {
		t.Errorf("%v beside the only thread of a program", got)
	}
}

// plainMerge is merge by sets of addresses, which in one process are its places.
func plainMerge(r *rand.Rand, private []ahead.Touch, at, reuse int, others [][]ahead.Touch) record.Interleaving {
	any := func(of [][]ahead.Touch, is func(t ahead.Touch) bool) bool {
		return slices.ContainsFunc(of, func(b []ahead.Touch) bool { return slices.ContainsFunc(b, is) })
	}
	stored := func(block uint64) bool {
		return any(append([][]ahead.Touch{private}, others...), func(t ahead.Touch) bool { return t.Block == block && t.Store })
	}
	next := make([]int, len(others))
	for i := range next {
		next[i] = r.IntN(len(others[i]))
	}
	datum := private[at].Block
	m := record.Interleaving{Common: !stored(datum) && any(others, func(t ahead.Touch) bool { return t.Block == datum })}
	byOwn, byOther := map[uint64]bool{datum: true}, map[uint64]bool{}
	theirs := int(estimate.TouchesOfOthers(r, float64(reuse*len(others))))
	for mine := reuse - 1; mine >= 0; m.Time++ {
		if theirs == 0 || r.IntN(mine+theirs) < mine {
			if mine--; mine >= 0 {
				byOwn[private[at+reuse-1-mine].Block] = true
			}
			continue
		}
		theirs--
		i := r.IntN(len(others))
		block := others[i][next[i]].Block
		if next[i] = (next[i] + 1) % len(others[i]); m.Common && block == datum {
			m.Foreign = true
			m.Time++
			break
		}
		byOther[block] = true
	}
	m.Distinct = len(byOwn)
	for block := range byOther {
		if !byOwn[block] || stored(block) {
			m.Distinct++
		}
	}
	return m
}

// What comes of merging is what sets of addresses say, however the holds are handed over, and as streams give way
// their places' numbers are free again.
func TestMergeAsPlain(t *testing.T) {
	const holds = 5 * keptStreams
	for _, atOnce := range []int{1, 7, holds} {
		r := rand.New(rand.NewPCG(5, 6))
		p := &target.Process{Regions: []target.Region{{Start: 0x1000, Limit: 0x9000, File: "/bin/x"}}}
		var all []Hold
		for i := range holds {
			h := Hold{process: p, regions: p.Regions, tid: r.IntN(4)}
			for range 1 + r.IntN(400) {
				// Where it is at work, and what all touch.
				block := uint64(0x200 + 5*i + r.IntN(40))
				if r.IntN(3) == 0 {
					block = uint64(0x800 + r.IntN(200))
				}
				h.touches = append(h.touches, ahead.Touch{Block: block, Store: r.IntN(20) == 0})
			}
			linkTouches(h.touches)
			for range 4 {
				if at := r.IntN(len(h.touches)); at+1 < len(h.touches) {
					h.uses = append(h.uses, Use{o: &record.Observation{}, at: at, reuse: 1 + r.IntN(len(h.touches)-at-1), others: 1 + r.IntN(3)})
				}
			}
			all = append(all, h)
		}
		b := NewMerger(9)
		for from := 0; from < holds; from += atOnce {
			b.MergeAll(all[from:min(from+atOnce, holds)], 8)
		}
		plain := NewMerger(9).rand
		kinds := map[record.Interleaving]bool{} // but for numbers
		var latest []int                        // of all, in the merger's order
		next := 0
		for i, h := range all {
			var company [][]ahead.Touch
			for _, k := range latest {
				if all[k].tid != h.tid {
					company = append(company, all[k].touches)
				}
			}
			for _, u := range h.uses {
				if len(company) == 0 {
					if u.merged != nil {
						t.Fatalf("hold %d: merged with nobody", i)
					}
					continue
				}
				var others [][]ahead.Touch
				for range u.others {
					others = append(others, company[plain.IntN(len(company))])
				}
				want := plainMerge(plain, h.touches, u.at, u.reuse, others)
				if u.merged == nil || *u.merged != want {
					t.Fatalf("hold %d, %+v: %+v, want %+v", i, u, u.merged, want)
				}
				kinds[record.Interleaving{Common: want.Common, Foreign: want.Foreign}] = true
			}
			if len(latest) < keptStreams {
				latest = append(latest, i)
			} else {
				latest[next] = i
				next = (next + 1) % keptStreams
			}
		}
		if len(kinds) != 3 {
			t.Errorf("%v, want private data and common ones, whoever comes first", kinds)
		}
		live := make(map[uint32]bool)
		for _, k := range append(b.kept, b.spare) {
			for _, n := range k.distinct {
				live[n] = true
			}
		}
		numbered := 0
		for _, in := range b.numbering.stretches {
			if in.used == 0 {
				t.Errorf("%v: nothing of it has a number", in.at)
			}
			for _, n := range in.numbers {
				if n > 0 {
					numbered++
				}
			}
		}
		if numbered != len(live) || len(b.numbering.of) != numbered+len(b.numbering.free) {
			t.Errorf("%d places have numbers, %d of %d are free, want %d", numbered, len(b.numbering.free), len(b.numbering.of), len(live))
		}
		var q Queue
		q.Done(all)
		if want := 4 * holds * 9 / 10; q.merged < want || q.sooner == 0 || q.without == 0 {
			t.Errorf("%d merged, %d sooner, %d without company", q.merged, q.sooner, q.without)
		}
	}
}

// Of holds that come faster than they are merged so many wait; the others are counted.
func TestMergeWaits(t *testing.T) {
	var q Queue
	const more = 3
	none := func(touches []ahead.Touch) []ahead.Touch { return touches }
	hold := func() {
		q.Begin()
		for range 2 {
			q.Add(&record.Observation{}, 0, 1)
		}
		q.Keep(&target.Process{}, 1, 0, none)
	}
	for range mostWaiting + more {
		hold()
	}
	if len(q.waiting) != mostWaiting || q.late != 2*more {
		t.Errorf("%d wait, %d are late, want %d and %d", len(q.waiting), q.late, mostWaiting, 2*more)
	}
	q.Done(q.Take())
	hold()
	if len(q.waiting) != 1 || q.late != 2*more || len(q.spare) != mostWaiting-1 {
		t.Errorf("%d wait, %d are late, %d spare", len(q.waiting), q.late, len(q.spare))
	}
}
