package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// population is a program of two phases in turn, each with a law of reuse
// times of its own. 0: never reused.
type population struct {
	name   string
	length float64 // of a phase, accesses
	law    [2]func(r *rand.Rand) float64
}

func exponential(mean float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return 1 + math.Floor(mean*r.ExpFloat64()) }
}

// mixed is short with probability p.
func mixed(p float64, short, long func(r *rand.Rand) float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if r.Float64() < p {
			return short(r)
		}
		return long(r)
	}
}

func unburst(*rand.Rand) float64 { return 0 }

// simulate samples the population as on_sample and sample do: a slot is drawn,
// given to its n-th candidate with probability 1/n, and needed only if
// reading ahead finds no reuse.
func simulate(p population, rng *rand.Rand, slots int, period, end float64, burst float64, weigh bool) *model.Profile {
	type slot struct {
		n     float64
		since float64
		until float64 // of the reuse
		obs   *record.Observation
	}
	var seen []*record.Observation
	epoch := new(record.Epoch).Next(record.Marks{})
	table := make([]slot, slots)
	finish := func(s *slot, now float64) {
		if o := s.obs; o != nil {
			o.State, o.Kind, o.Native = record.Done, model.Reuse, s.until-s.since
			if s.until > now {
				o.Kind, o.Native = model.Censored, now-s.since
			}
			s.obs = nil
		}
	}
	for now := 0.0; now < end; now += period {
		epoch.CPU += uint64(period)
		if rng.IntN(4) != 0 { // thinned, as ticks are
			continue
		}
		for i := range table {
			if s := &table[i]; s.obs != nil && s.until <= now {
				finish(s, now)
				s.n = 0
			}
		}
		s := &table[rng.IntN(slots)]
		s.n++
		won := rng.Float64()*s.n < 1
		after := p.law[int(now/p.length)%2](rng)
		if after == 0 {
			after = math.Inf(1)
		}
		o := &record.Observation{After: int(burst)}
		if epoch.Full(0) {
			epoch = epoch.Next(record.Marks{})
		}
		epoch.Holds++
		epoch.Enter(o)
		seen = append(seen, o)
		if after <= burst {
			o.State, o.Kind, o.Counted, o.Native = record.Done, model.Reuse, int(after), after
			if won && s.obs == nil {
				s.n = 0
			}
			continue
		}
		if !won {
			o.State, o.Kind, o.NoSlot, o.Counted, o.Native = record.Done, model.Censored, true, int(burst)+1, burst+1
			continue
		}
		finish(s, now)
		s.obs, s.since, s.until = o, now, now+after
	}
	for i := range table {
		finish(&table[i], end)
	}
	prof := &model.Profile{Block: 8, BinsPerOctave: 16}
	watched := (&stage{Input: Input{Seen: seen}}).watched()
	for _, o := range seen {
		w := watched[shareKey{o.Epoch, o.Stack}]
		if weigh && o.NoSlot && w.seen > 0 {
			continue
		}
		r := model.Record{Kind: o.Kind, Timing: model.Timing{Time: uint64(o.Native), Exact: o.Counted > 0}, Weight: model.Weight{Observations: 1, Accesses: 1}}
		if weigh {
			r.Accesses = o.Epoch.PerObservation()
			if o.Counted == 0 {
				r.Accesses *= w.each()
			}
		}
		prof.Records = append(prof.Records, r)
	}
	return prof
}

// The slots' policy, the weights of epochs and Kaplan-Meier together: whatever
// the law and however it goes with phases, the histogram comes out. Without the
// weights it does not where the slots are busy in one phase and free in the
// other.
func TestPolicyOnPopulations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const seed, burst, period, end = 11, 255, 20_000, 4e9
	short := exponential(100)
	for _, c := range []struct {
		population
		slots   int
		least   float64 // accuracy
		weights bool    // matter
	}{
		{population{"steady", 1e9, [2]func(*rand.Rand) float64{mixed(.8, short, exponential(1e6)), mixed(.8, short, exponential(1e6))}}, sampler.NumSlots, .96, false},
		{population{"steady, lines", 1e9, [2]func(*rand.Rand) float64{mixed(.9, short, exponential(1e5)), mixed(.9, short, exponential(1e5))}}, 1, .95, false},
		{population{"a third never", 1e9, [2]func(*rand.Rand) float64{mixed(.67, short, unburst), mixed(.67, short, unburst)}}, sampler.NumSlots, .94, false},
		{population{"phases", 4e8, [2]func(*rand.Rand) float64{short, mixed(.5, short, exponential(1e7))}}, sampler.NumSlots, .94, true},
		{population{"phases, lines", 4e8, [2]func(*rand.Rand) float64{short, mixed(.5, short, exponential(1e6))}}, 1, .94, true},
	} {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := model.LogBins(1)
		truth := model.NewHist(b)
		for i := range 200_000 {
			if at := c.law[i%2](rng); at > 0 {
				truth.Add(uint64(at), 1)
			} else {
				truth.Cold++
			}
		}
		accuracy := func(weigh bool) (float64, int) {
			p := simulate(c.population, rng, c.slots, period, end, burst, weigh)
			// Where nothing is reused slots are never free, and a run has few
			// observations: of several runs, so that chance does not show.
			for len(p.Records) < 5000 {
				more := simulate(c.population, rng, c.slots, period, end, burst, weigh)
				p.Records = append(p.Records, more.Records...)
			}
			h, err := p.Times()
			if err != nil {
				t.Fatal(err)
			}
			a, err := model.Accuracy(truth, h.Rebin(b))
			if err != nil {
				t.Fatal(err)
			}
			return a, len(p.Records)
		}
		with, n := accuracy(true)
		without, _ := accuracy(false)
		t.Logf("%s: accuracy %.3f of %d observations, without weights %.3f", c.name, with, n, without)
		if with < c.least || c.weights && without > with-0.03 {
			t.Errorf("seed %d, %s: accuracy %.3f of %d observations, without weights %.3f", seed, c.name, with, n, without)
		}
	}
}
