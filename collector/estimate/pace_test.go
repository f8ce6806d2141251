package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// pacedSession is one of so many holds whose observations have the rates, 10 ms apart.
func pacedSession(rates []float64) *stage {
	s := &stage{Rates: steadyRates(2), Input: Input{Clock: sampler.CPUTime()}}
	p := new(target.Process)
	e := &record.Epoch{Number: 1, Holds: len(rates), CPU: uint64(len(rates)) * 10e6, Accepted: float64(len(rates))}
	for i, r := range rates {
		s.Seen = append(s.Seen, &record.Observation{Process: p, TID: 1, Epoch: e, Hold: i + 1, Rate: r, State: record.Done, Kind: model.Reuse, Native: 1e6})
	}
	mixLegs(s, 1e6) // what a moment's code is tells nothing of the next milliseconds
	return s
}

// mixLegs is the code of legs in which half the time goes into code so many times as fast as the rest.
func mixLegs(s *stage, times float64) {
	a, b := record.CodeBlock{Number: 1}, record.CodeBlock{Number: 2}
	s.Rates.local = &localRates{index: map[record.CodeBlock]int{a: 0, b: 1}, ns: []float64{1, 1 / times}, off: []float64{0, 0}, mean: 1, firm: 1}
	s.Rates.Legs = []Leg{{Accesses: 1 + times, Code: map[record.CodeBlock]float64{a: 1, b: times}}}
}

func steadyRates(perNS float64) Rates { return Rates{Fixed: perNS} }

// A program that makes 3.8 accesses a nanosecond for a second, and 0.2 for the next: what is timed is
// turned into accesses by the rate of its own phase, and not by the mean of 2, which is wrong by ten times.
func TestPaceOfPhases(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	slow := func(i int) bool { return i/100%2 == 1 }
	var by []float64
	for i := range 600 {
		x := 1.9
		if slow(i) {
			x = 0.1
		}
		by = append(by, x*math.Exp(.3*r.NormFloat64()))
	}
	s := pacedSession(by)
	p := new(model.Profile)
	s.setPaces(p)
	t.Log(p.Comments)
	var wrong, wrongByMean int
	for i, o := range s.Seen {
		var rec model.Record
		s.SetTime(&rec, o, PerWall{})
		want := 3.8e6
		if slow(i) {
			want = .2e6
		}
		if math.Abs(math.Log2(float64(rec.Time)/want)) > .5 {
			wrong++
		}
		if math.Abs(math.Log2(s.touchesIn(o.Native)/want)) > .5 {
			wrongByMean++
		}
	}
	t.Logf("%d of 600 times off by half an octave, %d by the mean", wrong, wrongByMean)
	if wrong > 30 || wrongByMean < 570 {
		t.Errorf("%d of 600 times are off by half an octave, by the mean %d; want at most 30 and all", wrong, wrongByMean)
	}
	// What takes two phases, or more, has the mean of these.
	long := s.Seen[100]
	long.Native = 200 * 10e6
	s.setPaces(new(model.Profile))
	if long.Pace < .8 || long.Pace > 1.2 {
		t.Errorf("the pace of two phases is %.2f, want 1", long.Pace)
	}
}

// The shorter phases are, the less the holds around tell, but never less than the mean does; where a moment's
// code is that of the next milliseconds its own hold tells of them.
func TestPaceOfShortPhases(t *testing.T) {
	const perHold = 10e6 // ns
	for _, c := range []struct {
		phase, native float64 // in holds
		// mean errors in octaves: at most, at most with such code, at least by the mean
		octaves, ofCode, byMean float64
	}{
		{100, .1, .25, .3, 2.5}, {100, 2, .25, .5, 2.5}, {20, .1, .5, .35, 2.5}, {20, 2, .6, .7, 2.5},
		{5, .1, 1.5, .5, 2.5}, {5, 2, 1.6, 1.5, 2}, {1, .1, 3.1, .6, 2.5}, {1, 2, .1, .1, 0},
	} {
		r := rand.New(rand.NewPCG(uint64(c.phase), 2))
		accesses := func(from, to float64) (n float64) { // in units of the mean's in a hold's time
			const steps = 100
			for i := range steps {
				if at := from + (to-from)*(float64(i)+.5)/steps; int(at/c.phase)%2 == 0 {
					n += 1.98 * (to - from) / steps
				} else {
					n += .02 * (to - from) / steps
				}
			}
			return n
		}
		var rates, truth []float64
		for at := 0.0; len(rates) < 400; at += r.ExpFloat64() {
			rates = append(rates, accesses(at, at+1e-6)/1e-6*math.Exp(.2*r.NormFloat64()))
			truth = append(truth, accesses(at, at+c.native)/c.native)
		}
		s := pacedSession(rates)
		for _, o := range s.Seen {
			o.Native = c.native * perHold
		}
		off := func() (octaves float64) {
			s.setPaces(new(model.Profile))
			for i, o := range s.Seen {
				octaves += math.Abs(math.Log2(s.touchesOf(o, 1)/s.touchesIn(1)/truth[i])) / float64(len(truth))
			}
			return octaves
		}
		byMean := 0.0
		for _, x := range truth {
			byMean += math.Abs(math.Log2(x)) / float64(len(truth))
		}
		around := off()
		mixLegs(s, 1.5)
		ofCode := off()
		t.Logf("phases of %v holds, reuses after %v: off by %.2f octaves by holds around, %.2f by their own, %.2f by the mean", c.phase, c.native, around, ofCode, byMean)
		if around > c.octaves || ofCode > c.ofCode || byMean < c.byMean || around > byMean+.05 {
			t.Errorf("want at most %.2f and %.2f, and %.2f or more", c.octaves, c.ofCode, c.byMean)
		}
	}
}

// Where holds differ, but those around tell nothing of it, the mean is taken, or next to it.
func TestPaceWithoutPhases(t *testing.T) {
	taken := 0
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		var by []float64
		for range 80 {
			x := math.Exp(r.NormFloat64())
			by = append(by, x/math.Exp(.5))
		}
		s := pacedSession(by)
		s.setPaces(new(model.Profile))
		for _, o := range s.Seen {
			if o.Pace != 0 {
				taken++
				break
			}
		}
	}
	t.Logf("%d of 50 programs without phases were taken to have some", taken)
	if taken > 3 {
		t.Errorf("%d of 50 programs without phases were taken to have some", taken)
	}
}

// Of a single hold nothing is known but the mean.
func TestPaceOfOne(t *testing.T) {
	s := pacedSession([]float64{1})
	s.setPaces(new(model.Profile))
	if s.Seen[0].Pace != 0 {
		t.Errorf("%+v", s.Seen[0])
	}
	(&stage{}).setPaces(new(model.Profile))
}

// An epoch may have had holds and no tick, as one of a thread that is held by interrupts: no time divided by none.
func TestThrough(t *testing.T) {
	for _, c := range []struct {
		native float64
		cpu    uint64
		want   int
	}{{0, 1000, 0}, {140, 1000, 1}, {160, 1000, 2}, {1e30, 1000, 7}, {0, 0, 7}, {5, 0, 7}, {math.Inf(1), 0, 7}} {
		if got := through(c.native, &record.Epoch{CPU: c.cpu, Holds: 10}, 7); got != c.want {
			t.Errorf("%v ns where 10 holds come in %d: %d, want %d", c.native, c.cpu, got, c.want)
		}
	}
}
