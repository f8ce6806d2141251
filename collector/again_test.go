package collector

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// againAt is a reuse's trap so long after the first reuse's.
func againAt(clock uint64, traps uint32, slot uint32, again uint64) *sampler.Trap {
	trap := trapAt(reuse, clock, traps, 0x3004)
	trap.Slot, trap.Again, trap.AgainTraps = slot, again, 1
	return trap
}

// lookAt is one of a word's, with so many intervals that count, its own included.
func lookAt(clock uint64, traps uint32, ip, again uint64, looks uint32) *sampler.Trap {
	trap := againAt(clock, traps, 0, again)
	trap.Ip, trap.Looks = ip, looks
	return trap
}

// What later looks changed is told by quantiles: one reuse in which the thread waited says nothing.
func TestLaterLooksComment(t *testing.T) {
	s, _ := newPairing()
	var p model.Profile
	if s.secondLookComments(&p); len(p.Comments) > 0 {
		t.Errorf("of none: %q", p.Comments)
	}
	for _, longer := range []float64{1, 1.5, 2, 3, 100_000} {
		o := &observation{kind: model.Reuse, native: longer * 10_000, wall: 1, end: 1, after: 2047}
		o.again = &secondLook{native: 10_000, wall: 1, end: 1}
		s.settle(o)
	}
	s.secondLookComments(&p)
	const want = "5 of 5; at first half of them took 2.00 times as long or more, a quarter less than 1.50 and a quarter more than 3.00"
	if len(p.Comments) != 1 || !strings.HasSuffix(p.Comments[0], want) {
		t.Errorf("%q, want %q", p.Comments, want)
	}
}

// The interval that is taken is the fourth of those that are long, from the access it begins
// with: here a short one lies before it.
func TestLaterLookTaken(t *testing.T) {
	for name, stack := range map[string]model.StackKind{"own": model.StackOwn, "private": model.StackPrivate, "shared": model.StackShared} {
		t.Run(name, func(t *testing.T) {
			s, o := newPairing()
			o.addr, o.after, o.distinct, o.stack = 0x7008, 2047, 90, stack
			o.line = []lineWord{{addr: 0x7010}}
			s.pair(trapAt(use, 1000, 10, 0x1004))
			s.pair(trapAt(reuse, 54_000, 11, 0x2004))
			if r := s.stacks.waiting[o.reuse]; r.addr != o.addr {
				t.Errorf("the reuse's stack is not searched for the datum, but for %#x", r.addr)
			}
			firstUse, firstReuse, firstWall := o.useStack, o.reuse, o.wall
			s.pair(lookAt(90_000, 12, 0x3004, 33_000, 1))
			s.pair(lookAt(120_000, 13, 0x4004, 28_000, 2))
			s.pair(lookAt(150_000, 14, 0x5004, 27_000, 3))
			s.pair(lookAt(154_000, 15, 0x6004, 3_400, 3)) // short
			last := lookAt(180_000, 16, 0x7004, 23_000, 4)
			last.Wall, last.Time = 24_000, 90_000
			s.pair(last)
			if o.native != 50_000 || s.pairs != 1 {
				t.Fatalf("before it is settled: %v ns, %d pairs", o.native, s.pairs)
			}
			s.settle(o)
			if o.native != 20_000 || o.wall != 24_000-s.calibration.Cost || o.end != 90_000 || o.pc != 0x6004 || o.useStack == firstReuse || o.useStack == firstUse {
				t.Errorf("%v ns, by the wall %v to %v, from %#x, stack %d", o.native, o.wall, o.end, o.pc, o.useStack)
			}
			if o.distinct != 0 {
				t.Errorf("%d different data are said to lie behind a use that was not read ahead of", o.distinct)
			}
			if s.second.taken != 1 || s.second.outside != 0 {
				t.Errorf("%+v", s.second)
			}
			// Its line was watched from the first use on.
			if look := o.watchedLook(); look.pc != 0x1000 || look.use != firstUse || look.wall != firstWall {
				t.Errorf("line watched in %+v", look)
			}
		})
	}
}

// Where the record of the access is missing that the last interval begins with, it is not
// known which that was.
func TestLaterLookDropped(t *testing.T) {
	s, o := newPairing()
	o.after = 2047
	s.pair(trapAt(use, 1000, 10, 0x1004))
	s.pair(trapAt(reuse, 54_000, 11, 0x2004))
	s.pair(lookAt(150_000, 14, 0x5004, 27_000, 3))
	s.pair(lookAt(180_000, 16, 0x7004, 23_000, 4))
	s.settle(o)
	if o.native != 50_000 || o.pc != 0x1000 || s.second.taken != 0 {
		t.Errorf("%v ns from %#x, %+v", o.native, o.pc, s.second)
	}
}

// A reuse that was read ahead, and is watched for another thread's sake, is known exactly, however
// long it took.
func TestLaterLookOfCounted(t *testing.T) {
	s, o := newPairing()
	s.burst = 2047
	o.stack, o.soon, o.counted, o.distinct, o.checked = model.StackShared, 40, 40, 21, true
	s.pair(trapAt(use, 1000, 10, 0x1004))
	s.pair(trapAt(reuse, 54_000, 11, 0x2004))
	s.pair(lookAt(150_000, 14, 0x5004, 27_000, 3))
	s.pair(lookAt(180_000, 16, 0x7004, 23_000, 4))
	s.settle(o)
	if o.distinct != 21 || o.pc != 0x1000 || s.second.taken != 0 {
		t.Errorf("%d different data, from %#x, %+v", o.distinct, o.pc, s.second)
	}
}

// An interval outside of the bounds is not swapped for one inside, whichever of
// the two it is.
func TestSecondLookOutside(t *testing.T) {
	for name, c := range map[string]struct{ first, again uint64 }{
		"first below the resolution":  {3050, 30_000},
		"second below the resolution": {30_000, 3050},
		"second too late":             {30_000, uint64(againWithin) + 3000},
	} {
		s, o := newPairing()
		o.half = true
		s.pair(trapAt(use, 1000, 10, 0x1004))
		s.pair(trapAt(reuse, 1000+c.first, 11, 0x2004))
		was := o.native
		s.pair(againAt(1<<40, 12, 0, c.again))
		s.settle(o)
		if o.native != was || o.pc != 0x1000 || s.second.outside != 1 {
			t.Errorf("%s: %v ns, was %v, from %#x", name, o.native, was, o.pc)
		}
	}
}

func TestLaterLookOutside(t *testing.T) {
	for name, c := range map[string]struct {
		after int
		first uint64
		last  uint64 // when it was, ns
		taken int
	}{
		"all within":                       {2047, 23_000, 1e6, 1},
		"short, but it was read ahead of":  {2047, 4000, 1e6, 1},
		"short, and was not read ahead of": {12, 4000, 1e6, 0},
		"all together too long":            {2047, 23_000, uint64(againWithin) + 1e6, 0},
	} {
		s, o := newPairing()
		s.burst = 2047
		o.after = c.after
		s.pair(trapAt(use, 1000, 10, 0x1004))
		r := trapAt(reuse, 1000+c.first, 11, 0x2004)
		r.Time, r.Wall = 5e5, c.first
		s.pair(r)
		s.pair(lookAt(50_000, 12, 0x5004, 27_000, 3))
		last := lookAt(80_000, 13, 0x7004, 23_000, 4)
		last.Time = c.last
		s.pair(last)
		s.settle(o)
		if s.second.taken != c.taken || s.second.outside != 1-c.taken {
			t.Errorf("%s: %+v", name, s.second)
		}
	}
}

// What the programs of traps in between took is no part of the time.
func TestTrapsBetweenSpend(t *testing.T) {
	s, o := newPairing()
	first := trapAt(use, 1000, 10, 0x1004)
	first.Spent = 700
	s.pair(first)
	last := trapAt(reuse, 101_000, 12, 0x1004)
	last.Spent = 30_700
	s.pair(last)
	if o.native != 100_000-2*3000-30_000 {
		t.Errorf("reuse after %v ns", o.native)
	}
}

// A half line's second look begins with the word of its reuse, whose pair it
// waits for.
func TestSecondLookHalfLine(t *testing.T) {
	start := func() (*Session, *observation) {
		s, o := newPairing()
		o.half, o.pair = true, model.Censored
		for i := 1; i < sampler.NumSlots; i++ {
			s.byIndex[3].slots[i] = watch{seq: 1, obs: o, helper: true}
		}
		s.pair(trapAt(use, 1000, 10, 0x1004))
		r := trapAt(reuse, 54_000, 11, 0x2004)
		r.Slot = 2
		s.pair(r)
		return s, o
	}
	s, o := start()
	s.pair(againAt(90_000, 12, 0, 23_000)) // of the first pair
	s.pair(againAt(120_000, 13, 3, 53_000))
	if o.pair != model.Reuse || o.pairNative != 89_000-2*3000 {
		t.Errorf("first pair %v after %v ns", o.pair, o.pairNative)
	}
	s.settle(o)
	if o.native != 20_000 || o.pair != model.Reuse || o.pairNative != 50_000 {
		t.Errorf("%v ns, pair %v after %v ns", o.native, o.pair, o.pairNative)
	}
	s, o = start()
	s.pair(againAt(90_000, 12, 1, 23_000))
	s.endAgain(o, 803_000)
	s.settle(o)
	if o.native != 20_000 || o.pair != model.Censored || o.pairNative != 800_000 {
		t.Errorf("%v ns, pair %v after %v ns", o.native, o.pair, o.pairNative)
	}
}

// Intervals of a datum that depend on each other (a reversible chain) have the
// same law after settling, though the first of each pair is measured in cold
// caches. To take the second wherever the first is short would not do.
func TestSecondLookKeepsLaw(t *testing.T) {
	const n = 200_000
	s, _ := newPairing()
	r := rand.New(rand.NewPCG(1, 2))
	// As of four kinds of data that change places now and then: their times are
	// spread evenly over an octave each, 512 ns to 1 µs and so on.
	kinds := [...]float64{9, 13, 16.6, 25}
	next := func(x float64) float64 {
		k := r.IntN(len(kinds))
		if r.Float64() < 0.6 {
			k = int(x)
		}
		return float64(k) + r.Float64()
	}
	time := func(x float64) float64 {
		k, octave := math.Modf(x)
		return math.Exp2(kinds[int(k)] + octave)
	}
	cold := func(ns float64) float64 {
		if ns < float64(againWithin)/2 {
			return min(2.5*ns, ns+1e6)
		}
		return ns
	}
	bins := model.LogBins(1)
	truth, first, naive, settled := model.NewHist(bins), model.NewHist(bins), model.NewHist(bins), model.NewHist(bins)
	x := 0.0
	for range n {
		x = next(x)
		t1, t2 := time(x), time(next(x))
		measure := func(ns float64) (float64, bool) { return s.elapsed(uint64(ns)+3000, 1) }
		o := &observation{kind: model.Reuse, half: true}
		o.native, o.below = measure(cold(t1))
		truth.Add(uint64(max(t1, 200)), 1)
		first.Add(uint64(o.native), 1)
		if o.native < float64(againWithin) {
			o.again = new(secondLook)
			o.again.native, o.again.below = measure(t2)
			naive.Add(uint64(o.again.native), 1)
		} else {
			naive.Add(uint64(o.native), 1)
		}
		s.settle(o)
		settled.Add(uint64(o.native), 1)
	}
	accuracy := func(h *model.Hist) float64 {
		a, err := model.Accuracy(truth, h)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a, b, c := accuracy(first), accuracy(naive), accuracy(settled)
	t.Logf("first looks %.3f, second ones wherever the first is short %.3f, settled %.3f", a, b, c)
	if c < 0.9 || 1-c > 0.5*(1-a) || c < b {
		t.Errorf("settled %.3f, want 0.9, half the error of %.3f and more than %.3f", c, a, b)
	}
}

// Of words, too, though each third interval is short: nothing is changed where caches are warm, and where
// they are warm again by the fourth long one, only what was not followed so far is still wrong.
func TestLaterLooksKeepLaw(t *testing.T) {
	const n = 200_000
	s, _ := newPairing()
	s.burst, s.cfg.AccessRate = 2047, 1
	r := rand.New(rand.NewPCG(3, 4))
	kinds := [...]float64{9, 11.5, 14, 16.6, 25} // octaves of ns: the first is short
	kind, times := 0, make([]float64, n)
	for i := range times {
		if r.Float64() > 0.6 {
			if kind = r.IntN(len(kinds) - 1); r.Float64() < 0.02 {
				kind = len(kinds) - 1 // ends the looking at all before it
			}
		}
		if times[i] = math.Exp2(kinds[kind] + r.Float64()); r.Float64() < 0.3 {
			times[i] = 500
		}
	}
	bins := model.LogBins(1)
	law := func(coldness float64) (atFirst, settled float64) {
		cold := func(ns float64, look int) float64 {
			return ns + coldness*min(1.5*ns, 6e4)*max(0, 1-float64(look)/furtherLooks)
		}
		truth, first, later := model.NewHist(bins), model.NewHist(bins), model.NewHist(bins)
		for i, x := range times[:n-furtherTraps-1] {
			if x < s.shortest() {
				continue // read ahead
			}
			o := &observation{kind: model.Reuse, after: 2047, native: cold(x, 0)}
			o.wall, o.end = o.native, o.native
			total, looks := o.native, 0
			for _, x := range times[i+1:][:furtherTraps] {
				if total >= float64(againWithin) {
					break
				}
				if x >= s.shortest() {
					looks++
				}
				x = cold(x, looks)
				if total += x; looks == furtherLooks {
					o.again = &secondLook{native: x, wall: x, end: total}
					break
				}
			}
			truth.Add(uint64(x), 1)
			first.Add(uint64(o.native), 1)
			s.settle(o)
			later.Add(uint64(o.native), 1)
		}
		a, err := model.Accuracy(truth, first)
		b, err2 := model.Accuracy(truth, later)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		t.Logf("coldness %v: first looks %.3f, settled %.3f", coldness, a, b)
		return a, b
	}
	if _, settled := law(0); settled < 0.99 {
		t.Errorf("warm: settled %.3f, want 0.99", settled)
	}
	if first, settled := law(1); 1-settled > 0.2*(1-first) {
		t.Errorf("cold: settled %.3f, want a fifth of the error of %.3f", settled, first)
	}
}
