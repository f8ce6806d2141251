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
			cost, ok := coldByLaps(laps, f, c, 4)
			each, within := cost.each, cost.within
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

// The more laps the narrower; few tell nothing, nor do holds of which the model knows nothing.
func TestColdByFewLaps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	laps, f, c := lapsAt(leastLaps-1, 40, r)
	if _, ok := coldByLaps(laps, f, c, 4); ok {
		t.Errorf("%d laps tell", len(laps))
	}
	laps, f, c = lapsAt(20, 40, r)
	few, _ := coldByLaps(laps[:5], f, c, 4)
	many, _ := coldByLaps(laps, f, c, 4)
	if many.within >= few.within {
		t.Errorf("5 laps: within %v, 20: within %v", few.within, many.within)
	}
	if _, ok := coldByLaps(laps, foretoldOf(map[int]foretoldWindow{99: f.windows[1]}), c, 4); ok {
		t.Error("laps of holds without a model tell")
	}
}

// Taken at another rate, the same laps have lines cost as much more or less as the cost at one rate says of others.
func TestColdByRate(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	laps, f, c := lapsAt(200, 30, r)
	at := func(rate float64) lineCost {
		c.Rate = rate
		cost, ok := coldByLaps(laps, f, c, 4)
		if !ok {
			t.Fatal("nothing told")
		}
		return cost
	}
	one := at(2)
	for _, factor := range []float64{0.7, 1.5, 3} {
		told := one.each * (1 + one.byRate*(1-1/factor))
		if got := at(2 * factor).each; math.Abs(got/told-1) > 0.07 {
			t.Errorf("at %v times the rate a line costs %.3g ns, told %.3g by one rate", factor, got, told)
		}
	}
}

// Laps that take no longer than without a hold say that lines cost little, not nothing.
func TestColdByWarmLaps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	laps, f, c := lapsAt(20, -5, r)
	cost, ok := coldByLaps(laps, f, c, 4)
	each, within := cost.each, cost.within
	if !ok || !(each > 0) || each*within > 40 || within > coldWithin {
		t.Errorf("%v ns within %v", each, within)
	}
}
