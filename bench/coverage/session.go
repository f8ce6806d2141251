package coverage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/rdx-profiler/rdx/collector/callstack"
	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/hotset"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// Setting is how sessions are drawn.
type Setting struct {
	Clock Clocking
	Holds int
	// Halves: only half of a line can be watched.
	Halves bool
	// KnownRate: the user has given it.
	KnownRate bool
	// Unwatched: nothing is watched.
	Unwatched bool
}

func (c Setting) String() string {
	out := fmt.Sprintf("%d holds by %v", c.Holds, c.Clock)
	if c.Halves {
		out += ", half lines"
	}
	if c.KnownRate {
		out += ", rate given"
	}
	if c.Unwatched {
		out += ", unwatched"
	}
	return out
}

const (
	// holdPeriod is how long holds are apart on average, in ns, or accesses.
	holdPeriod = 20e6
	// unwatchedPeriod is the same where nothing is watched.
	unwatchedPeriod = 200e6
	// trapPair is what two traps take by themselves, in ns, of which about trapNoise varies.
	trapPair, trapNoise = 3000, 250
	// modelOff is the standard deviation of the logarithm of what the processor's model is off by, in a program, and
	// windowOff that of one window about it.
	modelOff, windowOff = 0.35, 0.2
	// coldOff is that of what lines cost that are touched again after a hold, and coldShare what they cost of the
	// last cache's wait: 0.5 to 30 ns in 95 of a hundred sessions. There are no more of them than the second cache has.
	coldOff, coldShare, coldLines = 1, 0.6, 1 << 14
	// countedOn: so many accesses after a hold lines are counted one by one, from there on as many as on average.
	countedOn = 1 << 13
)

// drawn is a session being drawn.
type drawn struct {
	*Stream
	Setting
	rng     *rand.Rand
	clock   *clock
	in      estimate.Input
	epoch   *record.Epoch
	slots   []slot
	off     float64 // of the processor's model
	cold    float64 // ns a line touched for the first time after a hold takes more
	hot     hotset.Sets
	farther ahead.Farther
	// blocks are those of the last hold, and uses the touches that are observed.
	blocks []uint64
	uses   []int
}

// slot watches one touch.
type slot struct {
	n     float64 // holds that have drawn for it since it was free
	watch *watch
}

// watch is of an observation in the works.
type watch struct {
	o          *record.Observation
	use, reuse int     // touches
	useAt      float64 // the clock
	more       float64 // what cold lines add, and the noise of traps
	pair       float64 // when its pair of words is touched; of half lines
}

// noise is what two traps take, but for the constant.
func (d *drawn) noise() float64 {
	if d.Clock == ByAccesses {
		return 0
	}
	return trapNoise * (d.rng.NormFloat64() + 0.5*d.rng.ExpFloat64() - 0.5)
}

// Draw draws a session, and gives its profile as far as miss ratios go.
func (s *Stream) Draw(c Setting, rng *rand.Rand) *model.Profile {
	d := &drawn{Stream: s, Setting: c, rng: rng, clock: &s.clocks[c.Clock], epoch: new(record.Epoch).Next(record.Marks{})}
	d.slots = make([]slot, sampler.NumSlots)
	if c.Halves {
		d.slots = d.slots[:1]
	}
	d.begin()
	process := &target.Process{PID: 1}
	t := rng.Float64() * d.clock.lap
	period := holdPeriod
	if d.hot.Block = lineBytes; c.Unwatched {
		period = unwatchedPeriod
	}
	for range c.Holds {
		gone := period * rng.ExpFloat64()
		t += gone
		p := d.clock.find(t)
		d.finish(p, t)
		if d.epoch.Full(0) {
			d.epoch = d.epoch.Next(record.Marks{})
		}
		d.epoch.Holds++
		d.epoch.CPU += uint64(gone)
		d.epoch.Weighed = true
		d.in.Totals.Ticked += gone
		d.hold(process, p, t)
	}
	t += period
	d.finish(d.clock.find(t), t)
	for i := range d.slots {
		d.censor(&d.slots[i], t)
	}
	d.in.Held = uint64(c.Holds)
	d.end()
	levels := d.hot.Levels()
	for i, o := range d.in.Seen {
		if c.Unwatched {
			o.Hot = levels.Of(process, d.block(d.uses[i]))
		}
	}
	var caches []model.Cache
	for i, size := range Sizes {
		caches = append(caches, model.Cache{Level: fmt.Sprintf("L%d", i+1), Size: size, Line: lineBytes})
	}
	return estimate.Look(d.in, caches, 32)
}

// begin sets up what is known before.
func (d *drawn) begin() {
	if d.Unwatched {
		d.farther.Begin(firstCache)
	}
	d.in = estimate.Input{Stacks: callstack.NewTable(), Seed: d.rng.Uint64(), Block: lineBytes, PerHold: perHold, Resident: d.resident,
		Clock: sampler.CPUTime(), Unit: sampler.Nanoseconds}
	if d.Clock == ByAccesses {
		d.in.Clock, d.in.Unit = sampler.Clock{Name: "accesses", Unit: sampler.Accesses, Counted: new(sampler.Counted)}, sampler.Accesses
		return
	}
	var times []float64
	for range 400 {
		times = append(times, d.noise())
	}
	c := &d.in.Calibration
	c.P10, c.P50, c.P90 = quantile(times, .1), quantile(times, .5), quantile(times, .9)
	for i := range times {
		times[i] += trapPair
	}
	c.P10, c.P50, c.P90, c.Times, c.N, c.Cost = c.P10+trapPair, c.P50+trapPair, c.P90+trapPair, times, len(times), trapPair
	d.off = math.Exp(modelOff * d.rng.NormFloat64())
	d.cold = coldShare * waits[2] * meanAlone * math.Exp(coldOff*d.rng.NormFloat64())
}

// end fills in the totals.
func (d *drawn) end() {
	n := &d.in.Totals
	n.CPU = uint64(n.Ticked)
	if d.Clock == ByAccesses {
		n.Counted, n.Clock = n.Ticked, n.Ticked
	} else if d.KnownRate {
		d.in.AccessRate = float64(len(d.next)) / d.clock.lap
	}
}

// hold reads ahead at touch p, at time t, and watches what wins a slot.
func (d *drawn) hold(process *target.Process, p int, t float64) {
	first, most := timedClassified, timedMost
	if d.Clock == ByAccesses && !d.Unwatched {
		first, most = countedClassified, countedMost
	}
	if d.farther.On() {
		most = farMost
	}
	w := d.read(p, first, most, d.rng)
	if d.farther.Settling() {
		d.farther.Note(d.behind(&w))
	}
	if d.Clock == ByTime {
		d.setHeads(&w)
	}
	if d.Unwatched {
		defer d.addHot(process, &w, t)
	}
	h := record.Hold{Process: process, TID: 1, Accesses: w.length, Touches: w.length, Instructions: perTouch * w.length, Heads: w.heads}
	if d.Clock == ByTime {
		h.Times = d.foretold(&w, d.off*math.Exp(windowOff*d.rng.NormFloat64()))
	}
	d.in.Holds = append(d.in.Holds, h)
	d.in.Overlaps.Note(1, w.length, w.length, d.Clock == ByTime)
	slot := &d.slots[d.rng.IntN(len(d.slots))]
	slot.n++
	won := d.rng.Float64()*slot.n < 1
	if slot.n == 1 && d.timeLap(&w) {
		slot.n, won = 0, false
	}
	for i := range w.octaves {
		if x := &w.octaves[i]; x.n > 0 {
			o := d.observe(process, x.at, float64(x.n)/float64(w.first))
			o.State, o.Kind, o.After, o.Soon, o.Counted, o.Distinct = record.Done, model.Reuse, x.after, x.after, x.after, x.distinct
			o.Heads = w.within(x.touches)
		}
	}
	switch {
	case len(w.opens) == 0 && d.Halves:
		slot.n-- // it does not draw
	case len(w.opens) == 0 && won && slot.watch == nil:
		slot.n = 0
	case len(w.opens) > 0 && d.Unwatched:
		d.observeOpen(process, &w)
	case len(w.opens) > 0:
		o := d.observe(process, w.chosen, float64(len(w.opens))/float64(w.first))
		o.After, o.Distinct, o.Heads = w.from+w.length-1-w.chosen, w.distinct, w.within(w.opens)
		if !won {
			o.State, o.Kind, o.NoSlot, o.Counted = record.Done, model.Censored, true, o.After+1
			return
		}
		d.in.StoodFor += max(o.Times()-1, 0)
		d.censor(slot, t)
		d.arm(slot, o, &w)
	}
}

// timeLap has a hold time a lap of its window, and says whether it does.
func (d *drawn) timeLap(w *window) bool {
	if d.Clock != ByTime || !ahead.TimesLap(len(d.in.Laps), d.rng.IntN) {
		return false
	}
	from, to := 0, 0
	salt := d.rng.Uint64()
	for q := w.from; q < w.from+w.first; q++ {
		if (d.block(q)+salt)*0x9e3779b97f4a7c15>>32%8 > 0 {
			continue
		}
		if next := d.after(q); next < w.from+w.length && next-q > max(to-from, ahead.LeastLap-1) {
			from, to = q, next
		}
	}
	if to == 0 {
		return false
	}
	lines := d.coldTime(w, from, to) / d.cold
	d.in.Laps = append(d.in.Laps, record.Lap{Hold: len(d.in.Holds), Accesses: to - from, Data: int(lines), Timed: true,
		NS: d.clock.at(to) - d.clock.at(from) + d.cold*lines + d.noise()})
	return true
}

// block is the line of a touch.
func (d *drawn) block(p int) uint64 { return d.address[d.line[d.at(p)]] }

// addHot notes what a hold has touched.
func (d *drawn) addHot(process *target.Process, w *window, t float64) {
	d.blocks = d.blocks[:0]
	for q := w.from; q < w.from+w.length; q++ {
		d.blocks = append(d.blocks, d.block(q))
	}
	d.hot.Add(process, time.Duration(t), d.blocks)
}

// observeOpen enters observations for the open touches: one for those of lines that holds have touched before, and one for others.
func (d *drawn) observeOpen(process *target.Process, w *window) {
	var chosen, n [2]int
	var all [2][]int
	for _, q := range w.opens {
		k := 0
		if d.hot.Known(process, d.block(q)) {
			k = 1
		}
		all[k] = append(all[k], q)
		if n[k]++; d.rng.IntN(n[k]) == 0 {
			chosen[k] = q
		}
	}
	for k, q := range chosen {
		if n[k] == 0 {
			continue
		}
		o := d.observe(process, q, float64(n[k])/float64(w.first))
		o.After, o.Distinct, o.Heads = w.from+w.length-1-q, d.distinctFrom(w, q), w.within(all[k])
		o.State, o.Kind, o.NoSlot, o.Counted = record.Done, model.Censored, true, o.After+1
	}
}

// observe enters an observation, of touch number use, that stands for a share of what its hold tells.
func (d *drawn) observe(process *target.Process, use int, share float64) *record.Observation {
	d.uses = append(d.uses, use)
	o := &record.Observation{Process: process, TID: 1, Op: model.Load, Stack: model.StackOwn, Stands: share * perHold, Hold: len(d.in.Holds),
		Overlap: d.in.Overlaps.Latest}
	d.epoch.Enter(o)
	d.in.Seen = append(d.in.Seen, o)
	return o
}

// arm has a slot watch the window's chosen touch.
func (d *drawn) arm(slot *slot, o *record.Observation, w *window) {
	x := &watch{o: o, use: w.chosen, useAt: d.clock.at(w.chosen)}
	x.reuse, x.pair = d.after(w.chosen), math.Inf(1)
	if d.Halves {
		d.armHalf(x)
	}
	x.more = d.noise() + d.coldTime(w, x.use, x.reuse)
	slot.watch = x
}

// armHalf finds when the half of the line is touched that has one of the used words, and when the pair.
func (d *drawn) armHalf(x *watch) {
	x.o.Half, x.o.Pair = true, model.Censored
	used := d.words[d.at(x.use)]
	word := d.rng.IntN(8)
	for used>>word&1 == 0 {
		word = (word + 1) % 8
	}
	pair := uint8(3) << (word &^ 1)
	half := uint8(15) << (word &^ 3)
	for d.words[d.at(x.reuse)]&half == 0 && x.reuse-x.use < mostLaps*len(d.next) {
		x.reuse = d.after(x.reuse)
	}
	p := x.reuse
	for d.words[d.at(p)]&pair == 0 && p-x.use < mostLaps*len(d.next) {
		p = d.after(p)
	}
	x.pair = d.clock.at(p) - x.useAt
}

// mostLaps bounds the search for a word that nobody but the use touches.
const mostLaps = 8

// coldTime is how much longer it takes from the use to a touch since caches have gone cold while the thread was held.
func (d *drawn) coldTime(w *window, use, until int) float64 {
	if d.cold == 0 {
		return 0
	}
	end := min(until, w.from+countedOn)
	before, all := 0, 0 // lines touched until the use, and until the end
	for q := w.from; q < end; q++ {
		next := d.after(q)
		if next >= end {
			all++
		}
		if q < use && next >= use {
			before++
		}
	}
	lines := float64(all - before)
	if until > end {
		lines += d.footprint.At(float64(until-w.from)) - d.footprint.At(float64(end-w.from))
	}
	return d.cold * min(lines, coldLines)
}

// finish ends the watches whose touch comes before p, at time t.
func (d *drawn) finish(p int, t float64) {
	for i := range d.slots {
		slot := &d.slots[i]
		x := slot.watch
		if x == nil {
			continue
		}
		switch {
		case x.o.Half && x.useAt+x.pair <= t: // all its words have trapped that tell something
			d.reused(x)
			x.o.Pair, x.o.PairNative = model.Reuse, max(x.pair+x.more, x.o.Native)
		case !x.o.Half && x.reuse < p:
			d.reused(x)
		default:
			continue
		}
		slot.n, slot.watch = 0, nil
	}
}

// reused notes a reuse.
func (d *drawn) reused(x *watch) {
	o := x.o
	o.State, o.Kind = record.Done, model.Reuse
	o.Smeared = d.clock.at(x.reuse) - x.useAt + x.more
	o.Native = o.Smeared
	if least := max(d.in.Calibration.Resolution(), 1); o.Native < least {
		o.Native, o.BelowResolution = least, true
	}
}

// censor gives up what a slot watches at time t.
func (d *drawn) censor(slot *slot, t float64) {
	x := slot.watch
	if x == nil {
		return
	}
	slot.watch = nil
	age := t - x.useAt
	age += d.cold * min(d.footprint.At(age*float64(len(d.next))/d.clock.lap), coldLines)
	if x.o.Half && d.clock.at(x.reuse) <= t {
		d.reused(x)
		x.o.PairNative = max(age, x.o.Native)
		return
	}
	o := x.o
	o.State, o.Kind, o.Native, o.PairNative = record.Done, model.Censored, age, age
}
