package estimate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// What was read ahead of each hold was passed through a model of the processor, which tells how long it takes for each level
// that the lines come from which it had not touched before. How many come from where follows from the miss ratios, and these
// from the rate: they are found in turn.

const (
	// modelError is the standard error of the model's rates, as a logarithm: docs/explanation/clock.md.
	modelError = 0.35
	// missesWithin is the factor within which the miss ratios are taken to be known in 95 of 100 sessions.
	missesWithin = 2
	// waitWithin is that within which the waits of open accesses are.
	waitWithin = 3
	// turns are made until rate and misses agree.
	turns = 3
)

// levels is what part of the accesses finds its line in the second cache, the third and memory.
type levels [pipeline.Levels - 1]float64

// origins are these by the degree to which lines compete for few sets.
type origins [pipeline.Degrees]levels

// foretold is what the model says.
type foretold struct {
	windows map[int]foretoldWindow // by hold
	heads   map[int]*heads         // likewise, where it is known what comes when
	classes []class
	// within is the factor within which waits are known, 0 if not at all, and unsure the logarithm of that within which the rate is, for what is
	// not known of where lines come from.
	within, unsure float64
	// misplaced is the factor within which what is open is known, for how long each hold tells of is not.
	misplaced float64
	cold      *coldCaches
}

// foretoldWindow is one hold's.
type foretoldWindow struct {
	times *pipeline.Times
	open  float64 // share of its accesses without a reuse in what was read ahead
	class int
	probed
}

// probed is how long an access takes in a hold's code, in ns, by probes that came by it; off is the standard error of that, as a logarithm.
type probed struct{ ns, off float64 }

// part is how much of what a window takes goes by its probes, 0 without, as a weight of logarithms: each counts by its error.
func (p probed) part() float64 {
	if p.ns == 0 {
		return 0
	}
	return modelError * modelError / (modelError*modelError + p.off*p.off)
}

// error is the standard error of what a window takes, as a logarithm.
func (p probed) error() float64 { return math.Sqrt(1-p.part()) * modelError }

// toward is what a window takes where the model says that it takes ns.
func (p probed) toward(ns float64) float64 {
	if part := p.part(); part > 0 {
		return ns * math.Pow(p.ns/ns, part)
	}
	return ns
}

// perAccess is how long an access takes, in ns, where misses are so many times what they are taken to be.
func (f *foretold) perAccess(w foretoldWindow, times float64) float64 {
	var from levels
	c := &f.classes[w.class]
	if cold := float64(w.times.Cold); c.open > 0 && cold > 0 {
		// What is not reused soon was mostly not used a short while ago: a hold's part in the misses is that in what is open.
		open := times * w.open / c.open * float64(w.times.Accesses) / cold
		rest := w.times.Cold
		for degree, n := range w.times.Crowded {
			if degree > 0 && n > 0 {
				from.add(float64(n)/cold, c.origins[degree].ofCold(open))
				rest -= n
			}
		}
		from.add(float64(rest)/cold, c.origins[0].ofCold(open))
	}
	return w.toward(w.times.Elapsed(from) / float64(w.times.Accesses))
}

// ofCold is what part of the cold lines comes from each level, of which there are so many times fewer than accesses.
func (l levels) ofCold(times float64) levels {
	beyond := 0.0 // of what comes from this level or a further one
	for i := len(l) - 1; i >= 0; i-- {
		farther := beyond
		beyond = min(beyond+times*l[i], 1)
		l[i] = beyond - farther
	}
	return l
}

func (l *levels) add(part float64, others levels) {
	for i := range l {
		l[i] += part * others[i]
	}
}

// split is how long an access takes, in ns, and how much of that it takes if nothing is waited for.
func (f *foretold) split(w foretoldWindow) (all, plain float64) {
	all = f.perAccess(w, 1)
	return all, min(w.times.Near/float64(w.times.Accesses), all)
}

// newForetold is of the holds for which the model told, nil if there are none.
func (s *stage) newForetold() *foretold {
	f := foretoldOf(make(map[int]foretoldWindow))
	f.heads = s.newHeads()
	probed := s.probedHolds()
	for hold, w := range s.windowTimes() {
		if t := s.Holds[hold-1].Times; t != nil && t.Accesses > 0 && t.Near > 0 {
			f.windows[hold] = foretoldWindow{times: t, open: w.open, probed: probed[hold]}
			if x := f.heads[hold]; x != nil {
				x.probed = probed[hold]
			}
		}
	}
	if len(f.windows) < leastForetold {
		return nil
	}
	return f
}

// foretoldOf is of windows by hold.
func foretoldOf(windows map[int]foretoldWindow) *foretold {
	return &foretold{windows: windows, classes: make([]class, 1), within: waitWithin}
}

// leastForetold holds there must be for their spread to tell anything.
const leastForetold = 2

// settle takes the miss ratios found so far, and says what follows for the mean over time.
func (f *foretold) settle(b []origins) {
	f.meet(b)
	f.takeHeads()
	f.meet(b)
}

// meet does that for as much of each hold as counts.
func (f *foretold) meet(b []origins) {
	for k := range f.classes {
		f.classes[k].origins = b[k]
	}
	for range turns { // the mean of what is open goes by accesses, which go by it
		open, accesses := f.byClass()
		for k := range f.classes {
			f.classes[k].open = open[k] / max(accesses[k], math.SmallestNonzeroFloat64)
		}
	}
}

// settleBetween takes the least and the most misses that there may be: the rate is the middle of what follows from them.
func (f *foretold) settleBetween(least, most []origins) {
	f.settle(most)
	slow, mostOpen := f.mean(), f.openShare()
	_, longest := f.plain()
	f.settle(least)
	fast, leastOpen := f.mean(), f.openShare()
	_, shortest := f.plain()
	f.unsure = math.Log(max(fast/slow, 1)) / 2
	low, high := 0.0, 1.0
	for range 20 {
		part := (low + high) / 2
		f.meet(towards(least, most, part))
		if f.mean() > math.Sqrt(slow*fast) {
			low = part
		} else {
			high = part
		}
	}
	f.takeHeads()
	f.misplaced = 1
	if open := f.openShare(); open > 0 && mostOpen > 0 && leastOpen > 0 {
		f.misplaced = max(mostOpen/open, open/mostOpen, leastOpen/open, open/leastOpen)
	}
	f.within = f.waitsWithin()
	switch _, wait := f.plain(); {
	case wait > 0 && shortest > 0:
		f.within = math.Exp(math.Hypot(math.Log(f.within), math.Log(max(longest/wait, wait/shortest))))
	case wait > 0:
		f.within = 0
	}
}

// waitsWithin is the factor within which waits are known, where lines come from aside: what is waited for in code that probes came by is
// known by these.
func (f *foretold) waitsWithin() float64 {
	var off, all float64
	for _, w := range f.windows {
		perAccess, plain := f.split(w)
		waits := (perAccess - plain) / perAccess
		off, all = off+waits*w.error()/modelError, all+waits
	}
	if all == 0 {
		return waitWithin
	}
	return math.Pow(waitWithin, off/all)
}

// towards is such a part of the way from some to others.
func towards(from, others []origins, part float64) []origins {
	out := slices.Clone(from)
	for k := range out {
		out[k].towards(&others[k], part)
	}
	return out
}

// towards goes such a part of the way to others.
func (b *origins) towards(others *origins, part float64) {
	for degree := range b {
		for i := range b[degree] {
			b[degree][i] += part * (others[degree][i] - b[degree][i])
		}
	}
}

// scale is for so many times as many misses.
func (b *origins) scale(times float64) {
	for degree := range b {
		for i := range b[degree] {
			b[degree][i] *= times
		}
	}
}

// mean is the rate over time, in accesses per ns.
func (f *foretold) mean() (mean float64) {
	for _, w := range f.windows {
		mean += 1 / f.perAccess(w, 1) / float64(len(f.windows))
	}
	return mean
}

// byModel is what the model says by itself.
func (f *foretold) byModel() *foretold {
	g := *f
	g.windows = maps.Clone(f.windows)
	for hold, w := range g.windows {
		w.probed = probed{}
		g.windows[hold] = w
	}
	return &g
}

// rate is the mean over time, in accesses per ns, with its standard error as a logarithm, by the model alone: probes tell their own.
func (f *foretold) rate() (mean, off float64) {
	f = f.byModel()
	var squares, more, less float64
	n := float64(len(f.windows))
	for _, w := range f.windows {
		r := 1 / f.perAccess(w, 1)
		squares += r * r
		more, less = more+1/f.perAccess(w, missesWithin), less+1/f.perAccess(w, 1.0/missesWithin)
	}
	mean = f.mean()
	chance := math.Sqrt(max(squares/n-mean*mean, 0)/(n-1)) / mean
	chance *= student(len(f.windows)) / 1.96
	chance = math.Hypot(chance, alone/n) // what no hold has met may be slower and faster
	misses := math.Log(less/more) / (2 * 1.96)
	return mean, math.Hypot(math.Hypot(chance, f.unsure/1.96), math.Hypot(misses, modelError))
}

// reach is the rate's 95 % interval.
func (f *foretold) reach() rateRange {
	mean, off := f.rate()
	by := math.Exp(1.96 * off)
	return rateRange{mean / by, mean * by}
}

// alike says whether all windows are as fast, within alikeWithin as a standard deviation of the logarithm; there must be some.
func (f *foretold) alike() bool {
	const fewest, alikeWithin = 20, 0.15
	if len(f.windows) < fewest {
		return false
	}
	var logs []float64
	for _, w := range f.windows {
		logs = append(logs, math.Log(f.perAccess(w, 1)))
	}
	return stat.StdDev(logs, nil) <= alikeWithin
}

// plain and wait are the mean time of an access that does not wait, and how much longer one that is open takes.
func (f *foretold) plain() (plain, wait float64) {
	var near, waits, open, n float64
	for _, w := range f.windows {
		perAccess, plain := f.split(w)
		near, n = near+plain/perAccess, n+1/perAccess
		waits, open = waits+(perAccess-plain)/perAccess, open+w.open/perAccess
	}
	if open > 0 {
		wait = waits / open
	}
	return near / n, wait
}

// waiting is what share of the time is waited for data if so many accesses are made in a ns of user mode, and the model is right in what
// they take else: how long it says that they wait is wrong by one factor.
func (f *foretold) waiting(rate float64) float64 {
	type times struct{ near, wait float64 }
	windows := make([]times, 0, len(f.windows))
	for _, w := range f.windows {
		perAccess, plain := f.split(w)
		windows = append(windows, times{plain, perAccess - plain})
	}
	at := func(factor float64) (mean, share float64) {
		n := float64(len(windows))
		for _, w := range windows {
			took := w.near + factor*w.wait
			mean, share = mean+1/took/n, share+factor*w.wait/took/n
		}
		return mean, share
	}
	low, high := 1e-3, 1e3
	for range 40 {
		factor := math.Sqrt(low * high)
		if mean, _ := at(factor); mean > rate {
			low = factor
		} else {
			high = factor
		}
	}
	_, share := at(low)
	return share
}

// coldLine is how much longer it takes if each line that was not touched before comes from the last cache, by line.
func (f *foretold) coldLine() float64 {
	var more, lines float64
	for _, w := range f.windows {
		rate := 1 / f.perAccess(w, 1) / float64(w.times.Accesses)
		more, lines = more+rate*w.times.Far[pipeline.Levels-3][1], lines+rate*float64(w.times.Apart())
	}
	if lines == 0 {
		return 0
	}
	return more / lines
}

// findOrigins says from where a profile's lines come, by class: at the nearest that is possible, and at the farthest.
func (f *foretold) findOrigins(p *model.Profile, s *stage) (near, far []origins, ok bool) {
	if len(p.Caches) == 0 {
		return near, far, false
	}
	var sizes []uint64
	asked := map[uint64]int{}
	blocks := func(degree, i int) uint64 {
		bytes := p.FoundWithin(min(i, len(p.Caches)-1)) // where there are fewer caches, what would come from the missing ones comes from memory
		if degree > 0 && i < len(s.Conflicts.Rooms) {
			bytes = min(bytes, int64(s.Conflicts.Holds(i, degree))*sampler.LineSize)
		}
		return uint64(bytes) / uint64(s.Block)
	}
	degrees := f.degrees()
	for _, degree := range degrees {
		for i := range len(levels{}) {
			sizes = append(sizes, blocks(degree, i))
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	for i, size := range sizes {
		asked[size] = i
	}
	f.classify()
	ratios, err := p.PlainMissRanges(sizes, f.parts())
	if err != nil {
		return near, far, false
	}
	ratios = f.pool(ratios, s.Seen)
	last := min(len(p.Caches), len(levels{})) - 1
	for k := range f.classes {
		var n, m origins
		for _, degree := range degrees {
			var least, most levels
			for i := range least {
				at := asked[blocks(degree, i)]
				least[i], most[i] = ratios[k].Low[at], ratios[k].High[at]
			}
			// All that misses the first cache comes from the second at least: a line that is not reused soon is not near.
			least[0] = most[0]
			n[degree], m[degree] = levelsOf(least, last), levelsOf(most, last)
		}
		near, far = append(near, n), append(far, m)
	}
	return near, far, true
}

// degrees are those that windows have, the first 0.
func (f *foretold) degrees() []int {
	out := []int{0}
	for degree := 1; degree < pipeline.Degrees; degree++ {
		for _, w := range f.windows {
			if w.times.Crowded[degree] > 0 {
				out = append(out, degree)
				break
			}
		}
	}
	return out
}

// levelsOf is where lines come from by the miss ratios of the caches up to the last.
func levelsOf(ratios levels, last int) (l levels) {
	for i := range l {
		switch {
		case i < last:
			l[i] = max(ratios[i]-ratios[i+1], 0)
		case i == len(l)-1:
			l[i] = ratios[last]
		}
	}
	return l
}

// findForetold finds rate and misses in turn, nil where there is no model or the rate is known.
func (s *stage) findForetold(p *model.Profile) *foretold {
	if !s.timed() || s.AccessRate > 0 {
		return nil
	}
	s.fitLocal()
	f := s.newForetold()
	if f == nil {
		return nil
	}
	usual := levels{0.02, 0.005, 0.002} // of many programs
	f.settle([]origins{{usual, usual, usual, usual, usual}})
	for range turns {
		q := s.draft(p, f)
		near, far, ok := f.findOrigins(q, s)
		if !ok {
			break
		}
		f.settleBetween(near, far)
		f.cold = s.newColdCaches(q, f)
	}
	return f
}

// draft is the profile as it would be by what is foretold.
func (s *stage) draft(p *model.Profile, f *foretold) *model.Profile {
	d := newStage(s.Input.Apart(), s.join)
	d.foretold, d.bare, d.Rates.codeRates = f, true, s.Rates.codeRates
	q := &model.Profile{Caches: p.Caches, Costs: p.Costs, BinsPerOctave: p.BinsPerOctave, Resident: s.Resident, Touched: s.Touched}
	d.fillRecords(q)
	return q
}

// from is what part of the accesses finds its line in which level.
func (f *foretold) from() (all levels) {
	_, accesses := f.byClass()
	total := 0.0
	for _, n := range accesses {
		total += n
	}
	for k, n := range accesses {
		all.add(n/total, f.classes[k].origins[0])
	}
	return all
}

// comment says what the model told.
func (f *foretold) comment() string {
	var cold, crowded, accesses, instructions, missed float64
	for _, w := range f.windows {
		for _, n := range w.times.Crowded {
			crowded += float64(n)
		}
		cold, accesses = cold+float64(w.times.Cold), accesses+float64(w.times.Accesses)
		instructions, missed = instructions+float64(w.times.Instructions), missed+float64(w.times.Missed)
	}
	mean, off := f.rate()
	from := f.from()
	return fmt.Sprintf("access rate: a model of the processor foretells %.3g per ns, standard error %.0f%%, from %d windows of %.0f instructions and %.0f accesses, %.1f%% of them to further lines, of which %.1f%% compete for few sets, with %.0f branches foretold wrongly; of the accesses %.2f%% find their line in the second cache, %.2f%% in the third, %.2f%% in memory",
		mean, 100*off, len(f.windows), instructions/float64(len(f.windows)), accesses/float64(len(f.windows)), 100*cold/accesses, 100*crowded/max(cold, 1), missed/float64(len(f.windows)),
		100*from[0], 100*from[1], 100*from[2]) + f.cold.comment()
}
