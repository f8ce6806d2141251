// Needs: nothing.
package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// lapsAt are of holds that make 2 accesses a ns, in which each line costs so many ns more, and what traps take varies by 4 µs.
func lapsAt(n int, each float64, r *rand.Rand) (laps []record.Lap, f *foretold, c *model.Clock) {
	f = foretoldOf(make(map[int]foretoldWindow))
	for i := range n {
		f.windows[i+1] = foretoldWindow{times: &pipeline.Times{Accesses: 1000, Near: 500}}
		l := record.Lap{Hold: i + 1, Accesses: 10000 + r.IntN(40000), Data: 200 + r.IntN(600), Code: r.IntN(20), Timed: true}
		l.NS = float64(l.Accesses)/2 + each*float64(l.Data+l.Code) + 4000*r.NormFloat64()
		laps = append(laps, l)
	}
	return laps, f, &model.Clock{Rate: 2, RateLow: 1.4, RateHigh: 2.8}
}

// What a line costs is told by the laps, whatever the model of the processor says, and the interval holds it.
func TestColdByLaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, want := range []float64{3, 10, 30, 80} {
		held, n := 0, 0
		for range 200 {
			laps, f, c := lapsAt(16, want, r)
			laps[3].NS += 5e6 // the host had the processor
			each, within, ok := coldByLaps(laps, f, c, 4)
			if !ok {
				t.Fatal("nothing told")
			}
			if n++; each/within <= want && want <= each*within {
				held++
			}
			if want >= 30 && (within > 3 || math.Abs(math.Log(each/want)) > 0.5) {
				t.Fatalf("%v ns within %v, want %v", each, within, want)
			}
		}
		if held < n*93/100 {
			t.Errorf("%v ns: in %d of %d intervals", want, held, n)
		}
	}
}

// The more laps, and the better the rate is known, the narrower; few tell nothing, nor do holds of which the model knows nothing.
func TestColdByFewLaps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	laps, f, c := lapsAt(leastLaps-1, 40, r)
	if _, _, ok := coldByLaps(laps, f, c, 4); ok {
		t.Errorf("%d laps tell", len(laps))
	}
	laps, f, c = lapsAt(20, 40, r)
	_, few, _ := coldByLaps(laps[:5], f, c, 4)
	_, many, _ := coldByLaps(laps, f, c, 4)
	if many >= few {
		t.Errorf("5 laps: within %v, 20: within %v", few, many)
	}
	c.RateLow, c.RateHigh = 0.4, 10
	if _, rough, _ := coldByLaps(laps, f, c, 4); rough <= many {
		t.Errorf("by a rate that is hardly known: within %v, %v by one that is", rough, many)
	}
	if _, _, ok := coldByLaps(laps, foretoldOf(map[int]foretoldWindow{99: f.windows[1]}), c, 4); ok {
		t.Error("laps of holds without a model tell")
	}
}

// Laps that take no longer than without a hold say that lines cost little, not nothing.
func TestColdByWarmLaps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	laps, f, c := lapsAt(20, -5, r)
	each, within, ok := coldByLaps(laps, f, c, 4)
	if !ok || !(each > 0) || each*within > 40 || within > coldWithin {
		t.Errorf("%v ns within %v", each, within)
	}
}
