package coverage

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Where nothing is watched bands hold the exact ratio of caches that are larger than what holds read, as hot sets bound it: also of a
// loop that is a little larger than the cache, of which LRU misses as often as such bounds allow.
func TestCoverageUnwatched(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const lines, n = 17_000, 1_500_000
	rng := rand.New(rand.NewPCG(4, 4))
	streams := map[string]func(i int) (addr, pc uint64){
		"a hot set and others": func(i int) (addr, pc uint64) {
			if i%16 > 0 {
				return rng.Uint64N(3000) * lineBytes, 1
			}
			return 1<<30 + rng.Uint64N(60_000)*lineBytes, 2
		},
		"a loop beside a hot set": func(i int) (addr, pc uint64) {
			if i%32 > 0 {
				return 1<<30 + rng.Uint64N(500)*lineBytes, 1
			}
			return uint64(i/32%lines) * lineBytes, 2
		},
		"lines that are seldom": func(i int) (addr, pc uint64) {
			x := rng.Float64()
			return uint64(x*x*x*x*120_000) * lineBytes, 1
		},
	}
	for name, f := range streams {
		t.Run(name, func(t *testing.T) {
			s := made(t, n, f)
			for _, clock := range []Clocking{ByAccesses, ByTime} {
				unwatchedHolds(t, s, Setting{Clock: clock, Holds: 60, Unwatched: true})
			}
		})
	}
}

// Fast and slow stretches that are about as long as what a hold tells of: a hold's beginning says in which it lies, and each tells of as
// long a time. In the slow one a column's lines are fetched that the next seven find, or a list is walked.
func TestHeadsOfPhases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const n = 1_500_000
	// Whether the list comes from the second cache or from a farther one is not known, nor how long it waits, therefore.
	most := map[string]float64{"a small array and a list": 0.4, "columns": 0.15}
	for name, f := range map[string]func(i int) (addr, pc uint64){
		"a small array and a list": func(i int) (addr, pc uint64) {
			if k := i % 12_500; k >= 12_300 {
				return 1<<30 + uint64(i/12_500*200+k-12_300)%100_000*lineBytes, 2
			}
			return uint64(i%256) * lineBytes, 1
		},
		"columns": func(i int) (addr, pc uint64) {
			if i%2 == 0 {
				return uint64(i/2%384) * 8, 1
			}
			column, row := i/768%384, i/2%384
			return 1<<30 + uint64(row*384+column)*8, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(t, n, f)
			for _, c := range []Setting{{Clock: ByTime, Holds: 100, Unwatched: true}, {Clock: ByTime, Holds: 200}} {
				of := bandsHold(t, s, c, 12, 6, 0.75)
				if bias := of[0].Bias(); math.Abs(bias) > most[name] {
					t.Errorf("%s: %v: 32 KiB: off by %+.0f %% on average", name, c, 100*bias)
				}
			}
		})
	}
}

// unwatchedHolds wants bands to hold in most sessions, at each size.
func unwatchedHolds(t *testing.T, s *Stream, c Setting) {
	const sessions, leastHeld = 20, 0.75 // of 20 that hold in 95 of 100, 15 or more do but in three cases of 10,000
	var sizes []uint64
	for size := uint64(512); size <= 1<<19; size *= 2 {
		sizes = append(sizes, size)
	}
	held, high := make([]int, len(sizes)), make([]float64, len(sizes))
	var mutex sync.Mutex
	var group sync.WaitGroup
	jobs := runtime.GOMAXPROCS(0)
	for job := range jobs {
		group.Go(func() {
			for i := job; i < sessions; i += jobs {
				curve, err := s.Draw(c, rand.New(rand.NewPCG(9, uint64(i)))).MissRatios(sizes, model.CurveOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				mutex.Lock()
				for k, q := range curve.Points {
					high[k] += q.High / sessions
					if exact := s.distances.MissRatio(sizes[k]); q.Low <= exact && exact <= q.High {
						held[k]++
					}
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	for k, n := range held {
		t.Logf("%v, %d lines: exact %.3g %%, bands hold in %d of %d, and end at %.3g %% on average", c, sizes[k], 100*s.distances.MissRatio(sizes[k]), n, sessions, 100*high[k])
		if float64(n) < leastHeld*sessions {
			t.Errorf("%v, %d lines: bands hold %.3g %% in %d of %d sessions, and end at %.3g %% on average", c, sizes[k], 100*s.distances.MissRatio(sizes[k]), n, sessions, 100*high[k])
		}
	}
}
