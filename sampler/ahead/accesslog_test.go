// Needs: nothing.
package ahead

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// Reuses and distances are those that walking from each use finds.
func TestAccessLog(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var g accessLog
	for round := range 200 {
		block := 8 << (round % 4)
		g.reset(block)
		var uses []use
		for len(g.all) < 100 {
			batch := make([]interp.Access, 1+r.IntN(3))
			for i := range batch {
				batch[i] = interp.Access{Addr: 0x1000 + uint64(r.IntN(600)), Size: 1 << r.IntN(6), Inst: int32(i)}
			}
			g.add(batch)
			if len(uses) < 5 && r.IntN(4) == 0 {
				uses = append(uses, g.use(len(uses), r.IntN(len(g.all)), r.IntN))
			}
			if r.IntN(2) == 0 {
				g.match(uses, 60)
			}
			// As uses are drawn before the first match, not later.
			if g.matched > 0 && len(uses) < 5 {
				g.matched = 0
			}
		}
		g.match(uses, 60)
		for i := 1; i < len(g.all); i++ {
			if g.all[i].Inst < g.all[i-1].Inst {
				t.Fatalf("instruction %d comes after %d", g.all[i].Inst, g.all[i-1].Inst)
			}
		}
		for _, u := range uses {
			seen := map[uint64]bool{}
			reuse := -1
			if from, to := g.blocks(g.all[u.at]); u.block < from || u.block > to || u.word/g.block != u.block || !touches(g.all[u.at], u.word, sampler.WordSize) {
				t.Fatalf("word %#x in block %d of an access at %#x", u.word, u.block, g.all[u.at].Addr)
			}
			time := 0 // in touches
			for at := u.at; at < len(g.all) && reuse < 0; at++ {
				from, to := g.blocks(g.all[at])
				if at == u.at {
					from = u.block + 1 // those after the use's own
				}
				if at > u.at && from <= u.block && u.block <= to && at-u.at > 60 && g.all[at].Inst != g.all[u.at].Inst {
					break
				}
				for b := from; b <= to && reuse < 0; b++ {
					time++
					if b == u.block {
						reuse = at
					} else {
						seen[b] = true
					}
				}
			}
			if u.reuse != reuse {
				t.Fatalf("reuse of access %d: %d, want %d", u.at, u.reuse, reuse)
			}
			if reuse >= 0 && u.again-u.touch != time {
				t.Fatalf("reuse time of access %d: %d, want %d", u.at, u.again-u.touch, time)
			}
			if reuse >= 0 && g.distinct(u.touch, u.again) != 1+len(seen) {
				t.Fatalf("distance from %d to %d: %d, want %d", u.at, u.reuse, g.distinct(u.touch, u.again), 1+len(seen))
			}
			// Of a use without a reuse so soon, the blocks touched in what was read ahead.
			end := min(u.at+60, len(g.all)-1)
			clear(seen)
			for at := u.at; at <= end; at++ {
				from, to := g.blocks(g.all[at])
				if at == u.at {
					from = u.block + 1
				}
				for b := from; b <= to; b++ {
					seen[b] = true
				}
			}
			if got := g.distinct(u.touch, g.end(u.at, 60)); reuse < 0 && got != 1+len(seen) {
				t.Fatalf("blocks from %d on: %d, want %d", u.at, got, 1+len(seen))
			}
		}
	}
}

// Touched are all blocks in order, each with whether it was stored to and which of its bytes, and At says which one a use is.
func TestTouched(t *testing.T) {
	var log accessLog
	log.reset(8)
	log.add([]interp.Access{
		{PC: 1, Addr: 0x100, Size: 8},
		{PC: 2, Addr: 0x10c, Size: 8, Store: true}, // two words
		{PC: 3, Addr: 0x110, Size: 4},
	})
	want := []Touch{{Block: 0x20, PC: 1, Before: -1, Inst: 0, Bytes: 0xff}, {Block: 0x21, PC: 2, Before: -1, Inst: 0, Store: true, Bytes: 0xf0},
		{Block: 0x22, PC: 2, Before: -1, Inst: 0, Store: true, Bytes: 0x0f}, {Block: 0x22, PC: 3, Before: 2, Inst: 0, Bytes: 0x0f}}
	if got := log.touched(nil); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for word, at := range map[int]int{0: 1, 1: 2} {
		var f Followed
		log.tell(log.use(0, 1, func(n int) int { return min(word, n-1) }), 100, &f)
		if f.At != at {
			t.Errorf("word %d of the second access: touch %d, want %d", word, f.At, at)
		}
	}
}

// The first hold finds all room that its window takes: it need not wait for memory.
func TestReserve(t *testing.T) {
	const n = 50_000
	accesses := make([]interp.Access, n)
	for i := range accesses {
		accesses[i] = interp.Access{Addr: uint64(i) * 64, Size: 8, Inst: int32(i)}
	}
	once := func(reserve int) uint64 {
		var l Locator
		l.machine = newMachine()
		l.Reserve(Window{First: reserve / 3, Most: reserve})
		l.log.reset(64)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.log.keep(accesses)
		l.opens.begin(&l.log, n/3)
		l.opens.any(&l.log)
		l.log.index()
		l.log.close(n / 3)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	// What is counted is the whole process's: now and then the runtime's own is among it, never less than ours.
	grown := func(reserve int) uint64 {
		least := once(reserve)
		for range 4 {
			least = min(least, once(reserve))
		}
		return least
	}
	if n := grown(n); n > 4096 {
		t.Errorf("%d bytes were taken beyond what was reserved", n)
	}
	if n := grown(0); n < 1<<20 {
		t.Errorf("without room reserved only %d bytes were taken: the test does not see it", n)
	}
}
