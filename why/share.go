package why

import (
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdx-profiler/rdx/model"
)

// How much of its time a function waits is estimated from two things. Each window that was read ahead tells how many
// lines are fetched for how many instructions, and this machine's costs what both take: within a factor, as it is not
// known how many instructions it makes in a cycle and how many fetches go on at a time. And a sample of CPU time falls right behind
// fetches the more often, the more of the time they are waited for. The first is the prior of the second, and the estimate
// the mean of the posterior, with the band that leaves out a fortieth on each side.

// group is moments whose share of waiting is estimated together.
type group struct {
	n         int64
	ns        float64
	moments   []*model.Moment
	functions map[string]bool
}

func (g *group) add(m *model.Moment) {
	g.n += m.Samples
	g.ns += m.Nanoseconds
	g.moments = append(g.moments, m)
}

// evidence is where a profile's data are found, and what that costs, in steps as fine as they were measured. Where the access
// rate is known roughly, so are distances: it has that for several rates.
type evidence struct {
	costs
	steps  []model.Cache
	last   int                            // the number of the first step of the last cache
	sets   map[string]map[float64]float64 // by function, fetches by what part of the sets they go to
	wide   map[string]wideSteps           // by function
	middle *model.Profile                 // with the misses of each step
	rates  []rated
}

// rated is what one rate makes of the profile, and how likely it is.
type rated struct {
	levels *levelSums
	weight float64
}

// rateFactors are how far from the middle of its interval the rate is, as a share of the half of it, by factors: 1 is its 95 % end.
var rateFactors = [][2]float64{{0, 0.5}, {-1.2 / 1.96, 0.25}, {1.2 / 1.96, 0.25}}

func evidenceOf(p *model.Profile) *evidence {
	steps, _ := p.CostSteps()
	e := &evidence{costs: costsOf(p), steps: steps, sets: setsOf(p), wide: wideOf(p), middle: p}
	for e.last = 0; e.last+1 < len(steps) && levelName(steps[e.last]) != levelName(steps[len(steps)-1]); {
		e.last++
	}
	clock := &p.Clock
	spread := clock.RateLow > 0 && clock.RateHigh > 1.1*clock.RateLow && !math.IsInf(clock.RateHigh, 1)
	if p.ExactDistances || len(p.CostsOn) == 0 && !spread {
		e.rates = []rated{{sumLevels(p), 1}}
		return e
	}
	for _, f := range rateFactors {
		rate := clock.Rate
		switch {
		case f[0] < 0:
			rate *= math.Pow(min(clock.RateLow/rate, 1), -f[0])
		case f[0] > 0:
			rate *= math.Pow(max(clock.RateHigh/rate, 1), f[0])
		}
		if f[0] != 0 && !spread {
			continue
		}
		q := p.AtRate(rate)
		if q.Caches = steps; q.Derive() != nil { // what a profile that was derived before can't fail at
			continue
		}
		if f[0] == 0 {
			e.middle = q
		}
		e.rates = append(e.rates, rated{sumLevels(q), f[1]})
	}
	if len(e.rates) == 0 { // nothing is known of where data are
		q := *p
		q.Caches, q.Records = steps, nil
		e.rates = []rated{{sumLevels(&q), 1}}
	}
	total := 0.0
	for _, r := range e.rates {
		total += r.weight
	}
	for i := range e.rates {
		e.rates[i].weight /= total
	}
	return e
}

// levelName is the cache that a step is one of.
func levelName(step model.Cache) string {
	name, _, _ := strings.Cut(step.Level, "/")
	return name
}

// setsOf tells to what part of a cache's sets each function's fetches go: those in steps that are a multiple of a large power
// of two have few places in a page, by which the sets are chosen.
func setsOf(p *model.Profile) map[string]map[float64]float64 {
	const page, line = 4096, 64
	out := map[string]map[float64]float64{}
	for i := range p.Touches {
		t := &p.Touches[i]
		part := 1.0
		if s := t.Stride; t.Manner == model.MannerStride && s != 0 {
			part = line / min(max(float64(s&-s), line), page) // its largest power of two
		}
		f := functionOf(t.Use)
		if out[f] == nil {
			out[f] = map[float64]float64{}
		}
		out[f][part] += t.Fetches
	}
	return out
}

// wideSteps are fetches in order, and how many lines there are from one to the next, added up.
type wideSteps struct{ fetches, lines float64 }

// wideOf tells that of each function. What comes in order was measured line by line: where some are left out it is the pages' time that
// goes by, as prefetchers begin anew in each, and bring some of what is left out, too.
func wideOf(p *model.Profile) map[string]wideSteps {
	const line = 64
	out := map[string]wideSteps{}
	for i := range p.Touches {
		t := &p.Touches[i]
		if t.Manner != model.MannerStride || t.Waits() {
			continue
		}
		f := functionOf(t.Use)
		x := out[f]
		x.fetches += t.Fetches
		x.lines += t.Fetches * max(math.Abs(float64(t.Stride))/line, 1)
		out[f] = x
	}
	return out
}

// lines are from one of a group's fetches in order to the next, on average.
func (e *evidence) lines(g *group) float64 {
	var all wideSteps
	for name := range g.functions {
		x := e.wide[name]
		all.fetches, all.lines = all.fetches+x.fetches, all.lines+x.lines
	}
	if !(all.fetches > 0) {
		return 1
	}
	return all.lines / all.fetches
}

// levels are those of a group's fetches as one rate has them, with lines that compete for few sets where they are found then. The
// last cache's sets are chosen by more than the place in a page.
func (e *evidence) levels(g *group, r rated) (shares []float64, unknown, off float64, n int64) {
	shares, unknown, off, n = g.levels(r.levels, &e.costs)
	parts, all := map[float64]float64{}, 0.0
	for name := range g.functions {
		for part, fetches := range e.sets[name] {
			parts[part] += fetches
			all += fetches
		}
	}
	return e.among(shares, parts, all), unknown, off, n
}

func (e *evidence) among(shares []float64, parts map[float64]float64, all float64) []float64 {
	if !(all > parts[1]) || len(shares) != len(e.steps)+1 {
		return shares
	}
	out := make([]float64, len(shares))
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		for k, s := range shares {
			out[e.place(k, part)] += s * parts[part] / all
		}
	}
	return out
}

// place is the step at which data are found that would be in step k, had they all the sets.
func (e *evidence) place(k int, part float64) int {
	if part == 1 || k >= e.last {
		return k
	}
	between := float64(e.steps[k].Size) / 2 // bytes
	if k > 0 {
		between = math.Sqrt(float64(e.steps[k-1].Size) * float64(e.steps[k].Size))
	}
	for k < e.last {
		end := k // of the cache
		for levelName(e.steps[end+1]) == levelName(e.steps[k]) {
			end++
		}
		if between <= part*float64(e.steps[end].Size) {
			return k
		}
		k = end + 1
	}
	return k
}

// costs are what a line costs more than one in the first cache, in ns, by where data are found; and what else takes time.
type costs struct {
	chased, apart, streamed []float64
	cycle                   float64
}

// assumedCosts are a server's, where a profile has none of its own.
var assumedCosts = []model.Cost{{Waits: 2.2, Streams: 0.6, Apart: 1.5}, {Waits: 5, Streams: 0.8, Apart: 1.6}, {Waits: 20, Streams: 1.5, Apart: 3}, {Waits: 100, Streams: 3, Apart: 9}}

func costsOf(p *model.Profile) (c costs) {
	_, all := p.CostSteps()
	if len(all) < 2 || len(p.CostsOn) == 0 && len(all) != len(p.Caches)+1 {
		all = nil
		for i := range p.Caches {
			all = append(all, assumedCosts[min(i, len(assumedCosts)-2)])
		}
		all = append(all, assumedCosts[len(assumedCosts)-1])
	}
	// The chain that was measured has a load, a multiplication and two more, some nine cycles in all.
	c.cycle = min(max(all[0].Waits/9, 0.18), 0.7)
	for i, x := range all {
		apart, first := x.Apart, all[0].Apart
		if apart == 0 { // a writer that has not measured it
			apart, first = x.Waits/12, all[0].Waits/12
		}
		c.chased = append(c.chased, max(x.Waits-all[0].Waits, 0))
		if i == 0 {
			c.apart, c.streamed = append(c.apart, 0), append(c.streamed, 0)
			continue
		}
		c.apart = append(c.apart, max(apart-first, apart/4)) // the first's is its instructions' time, but for what fetches take meanwhile
		c.streamed = append(c.streamed, x.Streams)
	}
	return c
}

// each is what a fetch costs more than one in the first cache, behind the last: to weigh fetches of one function.
func (c *costs) each(t *model.Touch, serial bool) float64 {
	last := len(c.chased) - 1
	switch {
	case !t.Waits():
		return c.streamed[last] / 2 // mostly they have come before
	case t.Manner == model.MannerChase && serial:
		return c.chased[last]
	}
	return c.apart[last]
}

// shareEstimate is the share of time that a group waits.
type shareEstimate struct {
	Share
	inOrder float64 // of that, for lines that come in order
}

// scenario is what is not known of a machine's way to run code.
type scenario struct {
	perCycle, slower, overlap float64
	hidden                    bool // independent fetches are waited for only as far as they take longer than all else
	latency, weight           float64
}

// speeds are how many instructions are made in a cycle, where no model of the processor tells, how many times as long they take
// as it says where one does, and how likely that is: its error is 0.35 of the logarithm (docs/explanation/accuracy.md).
var speeds = [][3]float64{{0.6, 1.9, 0.1}, {1, 1.3, 0.2}, {1.6, 1, 0.3}, {2.5, 0.8, 0.25}, {4, 0.6, 0.15}}

// scenarios are combinations of speeds, of how much longer independent fetches take than where nothing is
// done but that, of whether other instructions are made meanwhile, and of how far off the latency is.
func scenarios(off float64) (out []scenario) {
	for _, a := range speeds {
		for _, b := range []struct {
			overlap float64
			hidden  bool
			weight  float64
		}{{1.2, true, 0.25}, {0.8, false, 0.2}, {1.2, false, 0.25}, {2, false, 0.2}, {4, false, 0.1}} {
			for _, l := range [][2]float64{{-1.2, 0.25}, {0, 0.5}, {1.2, 0.25}} {
				out = append(out, scenario{a[0], a[1], b.overlap, b.hidden, math.Exp(off * l[0]), a[2] * b.weight * l[1]})
			}
		}
	}
	return out
}

// misplaced is what share of the fetches that a cache should have may come from the next one all the same: caches are not
// fully associative, prefetchers and the kernel push lines out, and pages need translations. Each with its probability.
var misplaced = [][2]float64{{0, 0.6}, {0.05, 0.2}, {0.2, 0.13}, {0.5, 0.07}}

// placed are the levels that an unknown share of the fetches may add up to: all of it may be in any one of them, each as likely.
func placed(levels []float64, unknown float64) (out [][]float64) {
	if unknown == 0 {
		return [][]float64{levels}
	}
	for i := range levels {
		at := make([]float64, len(levels))
		for k, l := range levels {
			at[k] = l * (1 - unknown)
		}
		at[i] += unknown
		out = append(out, at)
	}
	return out
}

// farther moves a share of what each level but the last has to the next one.
func farther(levels []float64, share float64) []float64 {
	out := slices.Clone(levels)
	for i := range len(levels) - 1 {
		moved := levels[i] * share
		if i > 0 {
			moved /= 4 // a larger cache has more ways, and fewer lines of others in it
		}
		out[i] -= moved
		out[i+1] += moved
	}
	return out
}

const (
	cells      = 200  // of the grid of shares
	spread     = 0.35 // of a scenario's, in the logarithm of waiting to running
	openMinded = 0.02 // of the prior is even
	unseen     = 0.04 // of the time may be for what nothing here tells of, as translations of addresses
	skid       = 0.05 // of samples are found elsewhere than the processor should stop
)

// estimate is that of a group, where shares are likely as that says, besides; nil: all are.
func (g *group) estimate(from *evidence, likely *[cells]float64) (e shareEstimate) {
	c := &from.costs
	far := 0.0
	for _, r := range from.rates {
		levels, unknown, _, n := from.levels(g, r)
		far = max(far, 1-levels[0], 1/float64(n+1), unknown)
	}
	far *= g.most(c)
	open := openMinded
	if far < open { // what is in the first cache is not waited for
		open = max(far*far/openMinded, 1e-6)
	}
	var prior [cells]float64
	for i := range prior {
		prior[i] = open / cells
	}
	var total, inOrder float64
	lines := from.lines(g)
	for _, r := range from.rates {
		levels, unknown, off, _ := from.levels(g, r)
		placements := placed(levels, unknown)
		for _, levels := range placements {
			for _, m := range misplaced {
				levels, weight := farther(levels, m[0]), r.weight*m[1]/float64(len(placements))
				for _, s := range scenarios(off) {
					share, order := g.expected(c, levels, lines, s)
					total += weight * s.weight * share
					inOrder += weight * s.weight * order
					spreadOver(&prior, share, weight*(1-open)*s.weight)
				}
			}
		}
	}
	if total > 0 {
		e.inOrder = inOrder / total
	}
	var log [cells]float64
	best := math.Inf(-1)
	fallen := g.fallen()
	for i := range log {
		log[i] = fallen[i] + math.Log(prior[i])
		if likely != nil {
			log[i] += math.Log(likely[i])
		}
		best = max(best, log[i])
	}
	for i := range log {
		log[i] = math.Exp(log[i] - best)
	}
	e.Share = shareOf(&log)
	return e
}

// smallLoop is how many times as many of its instructions a loop has as are near one of them, at most, where all samples may well fall.
const smallLoop = 12

// shadow is the probability that all else is done while one waits, so that all samples fall there, of code that does nothing but wait.
const shadow = 0.3

// crowded is how many times as often as chance says samples fall where fetches are near, of code that does not wait: what
// takes long may be something else there, such as a division by what is fetched, or elsewhere, such as a chain of additions; in a
// loop of a dozen instructions most may fall on one of them, and all where all else is done while one waits. Each with its
// probability. It is as fine as thousands of samples tell.
var crowded = func() (out [][2]float64) {
	const step, end, width = 0.05, 1.0, 0.35             // of the logarithm
	const most, loops, small, all = 2.0, 0.2, 0.04, 0.01 // of the logarithm, and probabilities
	add := func(from, to, probability float64, weight func(l float64) float64) {
		begin, sum := len(out), 0.0
		for l := from; l < to+step/2; l += step {
			out = append(out, [2]float64{math.Exp(l), weight(l)})
			sum += weight(l)
		}
		for i := range out[begin:] {
			out[begin+i][1] *= probability / sum
		}
	}
	add(-end, end, 1-loops-small-all, func(l float64) float64 { return math.Exp(-l * l / (2 * width * width)) })
	add(0, most, loops, func(float64) float64 { return 1 })
	return append(out, [2]float64{smallLoop, small}, [2]float64{math.Inf(1), all})
}()

// instruction is one that samples fell on: so many, and how near they were, added up.
type instruction struct{ samples, near float64 }

// instructions are those that samples fell on. Whether one is near fetches is the same in all windows but for chance: in many that
// fetch a line now and then none is seen.
func (g *group) instructions() map[uint64]instruction {
	out := map[uint64]instruction{}
	for _, m := range g.moments {
		var at uint64
		if len(m.Stack) > 0 {
			at = m.Stack[0].Address
		}
		x := out[at]
		x.samples += float64(m.Samples)
		x.near += float64(m.Samples) * float64(m.Near)
		out[at] = x
	}
	return out
}

// fallen is the logarithm of the likelihood of where samples fell, by the share of waiting.
func (g *group) fallen() (log [cells]float64) {
	by := map[int]float64{} // samples, by how near
	for _, x := range g.instructions() {
		by[int(math.Round(x.near/x.samples))] += x.samples
	}
	order := slices.Sorted(maps.Keys(by))
	var parts [cells][]float64
	for _, c := range crowded {
		// Where all is near samples can't crowd, whatever else takes long.
		often := func(near int) float64 { return min(c[0], max(float64(near)/100, 1)) }
		found, chance, samples := 0.0, 0.0, 0.0
		for _, near := range order {
			if n := by[near]; near > 0 {
				part := min(100/float64(near), 1)
				found, chance, samples = found+n*part*often(near), chance+n*part, samples+n
			}
		}
		others := 1.0
		if chance < samples {
			others = max((samples-found)/(samples-chance), 0)
		}
		for i := range log {
			m := (float64(i) + 0.5) / cells
			meanwhile := shadow * m
			sum := math.Log(c[1] * (1 - meanwhile))
			if math.IsInf(c[0], 1) {
				sum = math.Log(c[1]*(1-meanwhile) + meanwhile)
			}
			for _, near := range order {
				waits, runs := (1-skid)*float64(near)/100+skid, others
				if near > 0 {
					runs = often(near)
				}
				runs = (1-skid)*runs + skid
				sum += by[near] * math.Log(m*waits+(1-m)*runs)
			}
			parts[i] = append(parts[i], sum)
		}
	}
	for i := range log {
		most := slices.Max(parts[i])
		for _, v := range parts[i] {
			log[i] += math.Exp(v - most)
		}
		log[i] = most + math.Log(log[i])
	}
	return log
}

// spreadOver adds weight to the cells around a share.
func spreadOver(to *[cells]float64, share, weight float64) {
	const end = 0.5 / cells
	at := logit(min(max(share, end), 1-end))
	before := 0.0
	for i := range to {
		upTo := 1.0
		if i < cells-1 {
			upTo = distuv.UnitNormal.CDF((logit(float64(i+1)/cells) - at) / spread)
		}
		to[i] += weight * (upTo - before)
		before = upTo
	}
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }

// expected is the share of time that a group's windows let expect, and what of it is for lines in order, which are so many apart.
func (g *group) expected(c *costs, levels []float64, lines float64, s scenario) (share, inOrder float64) {
	var chased, apart, streamed float64
	for i, p := range levels {
		chased += p * c.chased[i]
		apart += p * c.apart[i]
		streamed += p * c.streamed[i]
	}
	chased, apart, streamed = chased*s.latency, apart*s.latency*s.overlap, streamed*s.latency*lines
	const loadCycles = 5
	const underWay = 256 // instructions, at most
	for _, m := range g.moments {
		links := float64(m.Chases) / 1e4
		runs := max(c.cycle/s.perCycle, links*loadCycles*c.cycle)
		if m.Runs > 0 {
			runs = float64(m.Runs) / 1000 * s.slower
		}
		// Where few are under way the processor stands when it has no room for more, until the first is there.
		rate, stands := float64(m.Apart)/1e4, 0.0
		for i, p := range levels {
			stands += p * max(c.chased[i]*s.latency-underWay*runs, 0)
		}
		fetched := rate * max(apart, stands/max(rate*underWay, 1))
		if s.hidden {
			fetched = max(0, fetched-runs)
		}
		waits := links*chased + fetched
		order := max(0, float64(m.Streams)/1e4*streamed-runs-waits)
		all := runs + waits + order
		share += m.Nanoseconds / g.ns * (waits + order) / all
		inOrder += m.Nanoseconds / g.ns * order / all
	}
	return share, inOrder
}

// most is the share of time that a group waits if all its fetches come from memory, one after the other.
func (g *group) most(c *costs) (share float64) {
	const rounded = 0.5 // of as many in 10,000 instructions
	for _, m := range g.moments {
		waits := (float64(m.Chases+m.Apart+m.Streams) + rounded) / 10 * c.chased[len(c.chased)-1]
		runs := 1000 * c.cycle
		if m.Runs > 0 {
			runs = float64(m.Runs)
		}
		share += m.Nanoseconds / g.ns * waits / (waits + runs)
	}
	return share
}

// levels are the shares of a group's fetches that find their data in the first cache, each other, and behind the last; of what
// share nobody watched where; and how far off, relatively, that makes the mean latency.
func (g *group) levels(from *levelSums, c *costs) (shares []float64, unknown, off float64, n int64) {
	sum := levelSum{misses: make([]float64, len(from.all.misses))}
	for name := range g.functions {
		if f := from.of[name]; f != nil {
			sum.join(f)
		}
	}
	n = sum.n
	whose := &sum
	if sum.fetches+sum.unknown == 0 {
		whose = &from.all
	}
	if whose.unknown > 0 {
		unknown = whose.unknown / (whose.fetches + whose.unknown)
	}
	measured, all := sum.shares(), from.all.shares()
	const least = 3 // observations that the whole counts for
	mean, square, total := 0.0, 0.0, 0.0
	shares = make([]float64, len(measured))
	for i := range measured {
		shares[i] = (measured[i]*float64(n) + all[i]*least) / (float64(n) + least)
		total += shares[i]
	}
	if !(total > 0) && from.seen { // all was reused soon
		shares[0] = 1
	} else if !(total > 0) { // nothing was seen of where data come from
		for i := range shares {
			shares[i] = 1 / float64(len(shares))
		}
	}
	for i, s := range shares {
		mean += s * c.chased[i]
		square += s * c.chased[i] * c.chased[i]
	}
	if !(mean > 0) {
		return shares, unknown, 0.5, n
	}
	// Of what less than one observation stands for it matters no more how little it is.
	return shares, unknown, math.Sqrt(0.2*0.2 + min((square/(mean*mean)-1)/float64(n+least), 1)), n
}
