package exact

import (
	"math"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Runs and counts are those of the touches one by one, however accesses come and
// wherever there is no more room.
func TestSplitter(t *testing.T) {
	r := seededRand(t)
	for round := range 400 {
		g, err := model.NewGranularity(1 << []uint{0, 3, 6, 12, 62}[r.IntN(5)])
		if err != nil {
			t.Fatal(err)
		}
		near := r.Uint64N(1 << (4 + r.UintN(6)))
		accesses := make([]model.Access, 1+r.IntN(600))
		for i := range accesses {
			a := model.Access{Addr: r.Uint64N(near+1) << r.UintN(uint(g.Shift())+1), Size: r.Uint32N(10), Op: model.Op(r.IntN(4))}
			switch r.IntN(20) {
			case 0:
				a.Addr = -a.Addr // near the end of the address space, or past it
			case 1:
				a.Size = r.Uint32N(40 << min(g.Shift(), 12))
			}
			if g.Shift() == 0 {
				a.Size %= 300
			}
			if i > 0 && r.IntN(3) > 0 {
				a = accesses[i-1]
				a.Op = model.Op(r.IntN(4))
			}
			accesses[i] = a
		}
		var want model.Touches
		var touches []uint64
		var stores []uint8
		for i := range accesses {
			a := &accesses[i]
			want.Ops[min(a.Op, model.Store)]++
			end := a.Addr
			if a.Size > 1 {
				if end += uint64(a.Size) - 1; end < a.Addr {
					end = math.MaxUint64
				}
			}
			for b := a.Addr >> g.Shift(); ; b++ {
				touches = append(touches, b)
				var store uint8
				if a.Op == model.Store {
					store = 1
				}
				stores = append(stores, store)
				if b == end>>g.Shift() {
					break
				}
			}
		}
		blocks, runs := make([]uint64, 1+r.IntN(300)), make([]uint8, 300)
		var s splitter
		at, rest := 0, accesses
		for len(rest) > 0 {
			given := rest[:1+r.IntN(len(rest))]
			rest = rest[len(given):]
			for len(given) > 0 {
				most := 1 << 40
				if r.IntN(2) == 0 {
					most = 1 + r.IntN(100)
				}
				var n, of int
				n, of, given = s.fill(g, given, blocks, runs, most)
				start := at
				var wantBlocks []uint64
				var wantRuns []uint8
				for k := range n {
					wantBlocks, wantRuns = append(wantBlocks, touches[at]), append(wantRuns, stores[at])
					for at++; at < start+most && at < len(touches) && touches[at] == wantBlocks[k] && wantRuns[k]>>1 < maxRun-1 && runs[k]>>1 > wantRuns[k]>>1; at++ {
						wantRuns[k] += 2
						want.Repeats[stores[at]]++
					}
				}
				if !slices.Equal(blocks[:n], wantBlocks) || !slices.Equal(runs[:n], wantRuns) {
					t.Fatalf("round %d, at touch %d: %x, %v; want %x, %v", round, start, blocks[:n], runs[:n], wantBlocks, wantRuns)
				}
				for k := 1; k < n; k++ {
					if blocks[k] == blocks[k-1] && runs[k-1]>>1 < maxRun-1 {
						t.Fatalf("round %d: two runs of %x, the first of %d", round, blocks[k], runs[k-1]>>1)
					}
				}
				if of != at-start {
					t.Fatalf("round %d: %d touches, want %d", round, of, at-start)
				}
				if at-start > most || len(given) > 0 && n < len(blocks) && at-start < most {
					t.Fatalf("round %d: %d touches of at most %d, room for %d, %d runs", round, at-start, most, len(blocks), n)
				}
			}
		}
		if at != len(touches) || s.count.Ops != want.Ops || s.count.Repeats != want.Repeats {
			t.Fatalf("round %d: %d of %d touches, %v; want %v", round, at, len(touches), s.count, want)
		}
	}
}
