package ahead

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// plainMemory is a process's memory by page.
type plainMemory map[uint64]*[4096]byte

func (m plainMemory) ReadPage(addr uint64, buf *[4096]byte) error {
	if p := m[addr]; p != nil {
		*buf = *p
	}
	return nil
}

func (m plainMemory) store(addr, v uint64) {
	page := addr &^ 4095
	if m[page] == nil {
		m[page] = new([4096]byte)
	}
	binary.LittleEndian.PutUint64(m[page][addr&4095:], v)
}

// window is a Locator that has read ahead the accesses of a loop over iterations.
func window(mem plainMemory, iterations int, body func(i int, at func(pc, addr uint64, store bool))) *Locator {
	l := NewLocator()
	var regs registers
	l.machine.Start(&regs, testMemory{mem})
	l.log.reset(64)
	inst := int32(0)
	var all []interp.Access
	for i := range iterations {
		body(i, func(pc, addr uint64, store bool) {
			all = append(all, interp.Access{PC: pc, Addr: addr, Size: 8, Inst: inst, Store: store})
			inst += 2
		})
	}
	for i := range all {
		var b [8]byte
		l.machine.Load(all[i].Addr, b[:]) // as the machine has what it has accessed
	}
	l.log.add(all)
	l.sights.instructions = int(inst)
	return l
}

type testMemory struct{ plainMemory }

// patternOf is that of most accesses of an instruction, and its site.
func patternOf(t *testing.T, seen Seen, pc uint64) Site {
	t.Helper()
	var best Site
	for _, s := range seen.Sites {
		if s.PC == pc && s.N > best.N {
			best = s
		}
	}
	if best.N == 0 {
		t.Fatalf("no site at %#x in %+v", pc, seen.Sites)
	}
	return best
}

func TestPatterns(t *testing.T) {
	const n = 900
	const table, pointers, nodes, list, big = 0x100000, 0x400000, 0x10000000, 0x20000000, 0x40000000
	rng := rand.New(rand.NewPCG(1, 2))
	mem := plainMemory{}
	order, links := rng.Perm(n), rng.Perm(n)
	for i := range n {
		mem.store(table+8*uint64(i), uint64(order[i]))                        // indices, read in order
		mem.store(pointers+8*uint64(i), nodes+192*uint64(order[i]))           // pointers, likewise
		mem.store(list+192*uint64(links[i]), list+192*uint64(links[(i+1)%n])) // a list out of order
		mem.store(nodes+192*uint64(i)+8, big+4096*uint64(rng.IntN(1<<18)))    // each node points elsewhere
	}
	node := uint64(list + 192*uint64(links[0]))
	l := window(mem, n, func(i int, at func(pc, addr uint64, store bool)) {
		at(1, 0x7000, false)                                                                                                         // the same place
		at(2, table+8*uint64(i), false)                                                                                              // in order
		at(3, big+24*uint64(order[i]), true)                                                                                         // a[b[i]].x = ...
		at(4, pointers+8*uint64(i), false)                                                                                           // in order
		at(5, nodes+192*uint64(order[i])+8, false)                                                                                   // p[i]->other
		at(6, binary.LittleEndian.Uint64(mem[(nodes+192*uint64(order[i])+8)&^4095][(nodes+192*uint64(order[i])+8)&4095:])+16, false) // p[i]->other->x
		at(7, node, false)                                                                                                           // p = p->next
		node = binary.LittleEndian.Uint64(mem[node&^4095][node&4095:])
		at(8, 0x90000000+8*uint64(rng.IntN(1<<27)), false) // anywhere
		at(9, 0xf0000000+8192*uint64(i), false)            // down a column
	})
	seen := l.Seen(rng.IntN)
	for _, c := range []struct {
		pc      uint64
		pattern Pattern
		stride  int64
		fetches bool
		used    int // bytes a line
	}{
		{1, Strided, 0, false, 0}, {2, Strided, 8, true, 64}, {3, Gathered, 0, true, 0}, {4, Strided, 8, true, 64}, {5, Gathered, 0, true, 0},
		{6, Chased, 0, true, 8}, {7, Chased, 0, true, 0}, {8, Random, 0, true, 8}, {9, Strided, 8192, true, 8},
	} {
		s := patternOf(t, seen, c.pc)
		if s.Pattern != c.pattern || s.Stride != c.stride {
			t.Errorf("instruction %d: pattern %d, stride %d, want %d and %d", c.pc, s.Pattern, s.Stride, c.pattern, c.stride)
		}
		if c.fetches != (s.Fetches > 0) {
			t.Errorf("instruction %d: %d fetches", c.pc, s.Fetches)
		}
		if c.used > 0 && (s.Used < c.used*s.Fetches*9/10 || s.Used > c.used*s.Fetches) {
			t.Errorf("instruction %d: %d bytes of %d lines, want %d each", c.pc, s.Used, s.Fetches, c.used)
		}
		if c.pc == 3 && s.Written != s.Fetches {
			t.Errorf("%d of %d lines written", s.Written, s.Fetches)
		}
	}
}

// TestHeld: the thread was held behind the chase of a list, or where nothing is waited for.
func TestHeld(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	mem := plainMemory{}
	loop := func(first int) Seen {
		steps := 0
		l := window(mem, 400, func(i int, at func(pc, addr uint64, store bool)) {
			for k := range 8 {
				if steps++; steps <= first {
					continue
				}
				if k == 3 {
					at(3, 0x40000000+64*uint64(rng.IntN(1<<24)), false)
				} else {
					at(uint64(100+k), 0x7000+8*uint64(k), false)
				}
			}
		})
		return l.Seen(rng.IntN)
	}
	const often = 16.0 / heldBehind // of 16 instructions so many have the fetch right behind them
	if h := loop(4).Held; !h.Known || !h.Waits || h.PC != 3 || h.Pattern != Random || h.Near < 0.95*often || h.Near > 1.05*often {
		t.Errorf("behind the access that waits: %+v", h)
	}
	h := loop(7).Held
	if !h.Known || h.Waits || h.Near != 0 {
		t.Errorf("three accesses later: %+v", h)
	}
	if h.Apart < 0.95/16 || h.Apart > 1.05/16 || h.Chases != 0 || h.Streams != 0 {
		t.Errorf("fetches: %+v, want one in 16 instructions", h)
	}
}

// TestFetchKinds: a list, look-ups through a table of pointers, and an array.
func TestFetchKinds(t *testing.T) {
	const n, nodes, table = 900, 0x10000000, 0x40000000
	rng := rand.New(rand.NewPCG(5, 6))
	mem := plainMemory{}
	order := rng.Perm(n)
	for i := range n {
		mem.store(nodes+192*uint64(order[i]), nodes+192*uint64(order[(i+1)%n]))
		mem.store(table+4096*uint64(i), nodes+192*uint64(order[i])+64)
	}
	read := func(addr uint64) uint64 { return binary.LittleEndian.Uint64(mem[addr&^4095][addr&4095:]) }
	node := uint64(nodes)
	list := window(mem, n, func(i int, at func(pc, addr uint64, store bool)) {
		at(1, node+8, false) // n->value
		at(2, node, false)   // n = n->next
		node = read(node)
	}).Seen(rng.IntN).Held
	if list.Chases < 0.2 || list.Apart > 0.02 || list.Streams > 0 {
		t.Errorf("a list: %+v, want a fetch in sequence every four instructions", list)
	}
	lookups := window(mem, n, func(i int, at func(pc, addr uint64, store bool)) {
		slot := table + 4096*uint64(rng.IntN(n))
		at(1, slot, false)       // p = table[random]
		at(2, read(slot), false) // p->value
	}).Seen(rng.IntN).Held
	if lookups.Chases > 0 || lookups.Apart < 0.1 {
		t.Errorf("look-ups: %+v, want fetches that do not wait for each other", lookups)
	}
	array := window(mem, n, func(i int, at func(pc, addr uint64, store bool)) { at(1, table+64*uint64(i), false) }).Seen(rng.IntN).Held
	if array.Chases > 0 || array.Apart > 0 || array.Streams < 0.4 {
		t.Errorf("an array: %+v", array)
	}
}

// TestWalkerHeld: a loop through words in order, held behind the first word of a line and behind another.
func TestWalkerHeld(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		first int
		near  float64
	}{{1, 16. / heldBehind}, {3, 0}} {
		skipped := false
		h := window(plainMemory{}, 900, func(i int, at func(pc, addr uint64, store bool)) {
			if i < c.first-1 {
				return
			}
			if !skipped { // it was just made
				skipped = true
			} else {
				at(1, 0x40000000+8*uint64(i), false)
			}
			at(2, 0x7000, true)
		}).Seen(rng.IntN).Held
		if c.near == 0 && h.Near != 0 || c.near > 0 && h.Near < c.near {
			t.Errorf("behind word %d: %+v, want near %.1f", c.first-1, h, c.near)
		}
	}
}

// TestCountBeforeWide: a use of 16 bytes traps in both of its words, and only what comes later is a reuse of the other one.
func TestCountBeforeWide(t *testing.T) {
	l := NewLocator()
	const line = 0x10000
	l.log.reset(64)
	l.log.add([]interp.Access{{PC: 1, Addr: line + 16, Size: 16, Inst: 0}, {PC: 2, Addr: line + 32, Size: 16, Inst: 1}, {PC: 3, Addr: line + 32, Size: 16, Inst: 2, Store: true},
		{PC: 4, Addr: line + 40, Size: 8, Inst: 5}})
	var a Ahead
	a.Word = line + 32
	l.countBefore(&a, use{at: 2})
	if a.Before != 1 || a.Half[0].Before != 1 || a.Half[1].Word != line+40 || a.Half[1].Before != 2 || a.Half[2].Before != 0 {
		t.Errorf("%d traps before the use, of the half line's words %+v; want 1, and 2 of the word beside it", a.Before, a.Half)
	}
}

// BenchmarkSeen looks at a window of many instructions, a third of which keep no stride.
func BenchmarkSeen(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	mem := plainMemory{}
	for i := range uint64(1 << 12) {
		mem.store(0x100000+8*i, rng.Uint64N(1<<20))
	}
	l := window(mem, 16, func(i int, at func(pc, addr uint64, store bool)) {
		for k := range uint64(192) {
			addr := 0x100000 + k*128 + 8*uint64(i)
			if k%3 == 0 {
				addr = 0x100000 + 8*rng.Uint64N(1<<12)
			}
			at(0x1000+4*k, addr, k%5 == 0)
		}
	})
	for b.Loop() {
		l.Seen(rng.IntN)
	}
}

// TestHeldPushedOut: a column of 600 lines, again and again. In a cache of 512 each of them is fetched whenever it is touched, in one of
// 1,024 none is.
func TestHeldPushedOut(t *testing.T) {
	const lines, accesses = 600, 6000
	for cache, want := range map[int64]float64{512 << 6: 0.5, 1024 << 6: 0, 0: 0} {
		l := window(plainMemory{}, accesses, func(i int, at func(pc, addr uint64, store bool)) {
			at(1, 0x100000+8192*uint64(i%lines), false)
		})
		l.FirstCache(cache)
		h := l.Seen(rand.New(rand.NewPCG(1, 2)).IntN).Held
		if fetched := h.Apart + h.Chases + h.Streams; math.Abs(fetched-want) > .005 {
			t.Errorf("cache of %d bytes: %v lines fetched an instruction, want %v: %+v", cache, fetched, want, h)
		}
	}
}

// TestLone: of the lines of a loop the one that it needs all the time comes again and again; those that it goes by do not, though each
// is touched twice.
func TestLone(t *testing.T) {
	l := window(plainMemory{}, 1000, func(i int, at func(pc, addr uint64, store bool)) {
		at(1, 0x7000, false)
		at(2, 0x100000+4096*uint64(i), false)
		at(3, 0x100008+4096*uint64(i), true)
	})
	l.findLast()
	for i, want := range map[int]bool{0: false, 1: true, 4: true, 1000: true} {
		if l.lone(i) != want {
			t.Errorf("access %d: lone %v, want %v", i, !want, want)
		}
	}
}
