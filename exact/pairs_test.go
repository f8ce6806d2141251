// Needs: nothing.

package exact

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// pairsStreams are streams that compact positions, pause the top, grow tables and run on.
func pairsStreams(rng *rand.Rand) map[string][]model.Access {
	of := func(n int, block func(i int) uint64) (a []model.Access) {
		for i := range n {
			a = append(a, model.Access{Addr: block(i)*64 + uint64(rng.IntN(64)), Size: uint32(rng.IntN(16)), PC: 0x1000 + uint64(rng.IntN(90)),
				Thread: int32(rng.IntN(3)), Op: model.Op(rng.IntN(3))})
		}
		return a
	}
	return map[string][]model.Access{
		"none":    nil,
		"one":     of(1, func(int) uint64 { return 7 }),
		"same":    of(10_000, func(int) uint64 { return 7 }),
		"few":     of(60_000, func(int) uint64 { return uint64(rng.IntN(40)) }),
		"cyclic":  of(100_000, func(i int) uint64 { return uint64(i % 5000) }),
		"uniform": of(120_000, func(int) uint64 { return uint64(rng.IntN(30_000)) }),
		"mixed": of(120_000, func(i int) uint64 {
			if i/10_000%2 == 0 {
				return uint64(rng.IntN(12_000))
			}
			return uint64(rng.ExpFloat64() * 40)
		}),
	}
}

// Pairs counts what a PairTally of a SharedStack does, with any number of jobs. Where pairs are too many, which of them lose their places
// depends on the order in which touches are counted, which is another one: all else is the same.
func TestPairsAgainstStack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rng := newRand(t, 73)
	caches := []model.Cache{{Level: "L1d", Size: 3000}, {Level: "L2", Size: 1 << 20}}
	for name, accesses := range pairsStreams(rng) {
		for _, block := range []int{8, 64} {
			for _, limit := range []int{maxCells, 3000} {
				want, _ := NewPairTally(block, 10, false, caches)
				want.limit = limit
				s, err := NewSharedStack(block)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Add(accesses, want.Add); err != nil {
					t.Fatal(err)
				}
				for _, jobs := range []int{1, 2} {
					got, _ := NewPairTally(block, 10, false, caches)
					got.limit = limit
					p, err := NewPairs(got, jobs)
					if err != nil {
						t.Fatal(err)
					}
					for rest := accesses; len(rest) > 0; {
						n := min(len(rest), 1+rng.IntN(9000))
						if err := p.Add(rest[:n]); err != nil {
							t.Fatal(err)
						}
						rest = rest[n:]
					}
					p.Finish()
					if p.Blocks() != s.olken.Blocks() || p.Touches() != s.olken.Accesses() || p.Accesses() != uint64(len(accesses)) || limit == maxCells && got.Rare() != want.Rare() || (got.Rare() > 0) != (want.Rare() > 0) {
						t.Errorf("%s, %d bytes, %d jobs: %d blocks, %d touches, %d rare; want %d, %d, %d", name, block, jobs,
							p.Blocks(), p.Touches(), got.Rare(), s.olken.Blocks(), s.olken.Accesses(), want.Rare())
					}
					if limit == maxCells && !reflect.DeepEqual(sortedRecords(got), sortedRecords(want)) {
						t.Errorf("%s, %d bytes, limit %d, %d jobs: records differ", name, block, limit, jobs)
					}
					if !reflect.DeepEqual(withoutPlaces(got), withoutPlaces(want)) {
						t.Errorf("%s, %d bytes, limit %d, %d jobs: histograms differ", name, block, limit, jobs)
					}
				}
			}
		}
	}
}

// flatRecord is what a record of a PairTally says.
type flatRecord struct {
	use, reuse     uint64
	kind           model.Kind
	op             model.Op
	tid            int
	time           uint64
	distance, n    float64
	misses1, miss2 float64
}

// withoutPlaces adds up the records that differ by their places only.
func withoutPlaces(t *PairTally) map[flatRecord]flatRecord {
	sums := map[flatRecord]flatRecord{}
	for _, r := range sortedRecords(t) {
		k := flatRecord{kind: r.kind, time: r.time}
		if r.n > 0 { // misses in a cache are none or all
			k.misses1, k.miss2 = r.misses1/r.n, r.miss2/r.n
		}
		s := sums[k]
		s.n, s.distance = s.n+r.n, s.distance+r.distance
		sums[k] = s
	}
	return sums
}

func sortedRecords(t *PairTally) (all []flatRecord) {
	for _, r := range t.Profile(func(pc uint64) *model.Location { return &model.Location{Address: pc} }).Records {
		f := flatRecord{use: r.Use[0].Address, kind: r.Kind, op: r.Op, tid: r.TID, time: r.Time, distance: r.Distance, n: r.Accesses, misses1: r.Misses[0], miss2: r.Misses[1]}
		if r.Reuse != nil {
			f.reuse = r.Reuse[0].Address
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b flatRecord) int {
		for _, d := range []float64{float64(a.use) - float64(b.use), float64(a.reuse) - float64(b.reuse), float64(a.kind) - float64(b.kind), float64(a.op) - float64(b.op),
			float64(a.tid - b.tid), float64(a.time) - float64(b.time), a.distance - b.distance, a.n - b.n, a.misses1 - b.misses1, a.miss2 - b.miss2} {
			if d != 0 {
				return int(max(-1, min(1, d*1e9)))
			}
		}
		return 0
	})
	return all
}
