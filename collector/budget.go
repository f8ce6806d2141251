package collector

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// budget keeps the profiler's cost to a share of the target's CPU time by
// the probability with which a sample becomes a candidate.
type budget struct {
	target   float64 // share of the target's CPU time
	floor    floor
	accept   float64
	spent    float64 // share so far
	trapNS   float64 // one trap
	tickNS   float64 // one tick
	ticks    float64 // for every sample
	periodNS float64 // CPU time between two ticks; 0: not known
	// apartNS is likewise what all threads keep to, 0 while that is the first period.
	apartNS float64
	// counters: ticks are few, so that it is their own periods that must be
	// geometric.
	counters bool

	cold    float64 // share of a hold's time that goes in cold caches after it, where afterNS is not known
	afterNS float64 // what a hold costs after its end, measured; 0: not known
	holdNS  float64 // one hold and its traps
	forced  float64 // what is accepted whatever it costs, below 0: that is for the budget

	firstNS    float64 // holdNS as it was assumed
	firstHolds uint64  // that have told better

	copied      float64 // ns by which watched words slowed copying so far, see copying
	copiedShare float64 // of the target's CPU time, as of the last update

	lastCPU   uint64
	lastCost  float64
	lastHolds uint64

	// Of holds that cost more than the budget pays for in some time each is waited for until it is paid.
	saved float64 // ns that are not spent of what the budget allowed so far; below 0 they are owed
	next  float64 // ns that the next hold is taken to cost
	// batch is how many of these come soon after each other, once all of them are paid for, and coming how many of them are
	// still to come.
	batch, coming int
}

const (
	// A tick costs its interrupt and the program. Of a timer that is measured.
	// The interrupt of a hardware counter is far dearer on a virtual machine:
	// bench/overhead finds 45 to 65 µs.
	timerTickNS, counterTickNS = 2000, 50_000
	// Ticks for every sample: the more, the nearer the periods between samples
	// are to geometric ones.
	timerTicks, counterTicks = 4, 1.5
	// coldShare is what the program is taken to lose after a hold, in caches and branch history
	// that are cold, as a share of the hold, where it was not measured: more than was ever
	// found. Where there is a PMU a hold is much shorter, and nothing of the kind was found.
	coldShare = 1
	// judged is how many holds the budget is to pay for between two looks at what was
	// spent: of fewer, chance would steer it.
	judged = 4
	// sooner is by how much a hold that is paid for in full is likelier than one on credit: with four it comes
	// within a quarter of the CPU time that the next takes to be paid for.
	sooner = 4
	// holdsVary is what must be saved for one that costs the mean: they differ by as much.
	holdsVary = 1.25
	// fewAim is the share of the budget aimed at where holds wait until they are paid for.
	fewAim = 0.9
	// makeGood is the CPU time in which what was spent too much is saved.
	makeGood = 2 * time.Second
	// memoryShare of the micro-operations that IBS picks access memory.
	memoryShare = 0.16
	// firstHoldNS is assumed of a hold until holds have been measured: as of the slow
	// ones of virtual machines, for a thousand threads that wake up together may
	// have ten of them before the first is accounted for.
	firstHoldNS          = 1_000_000
	minAccept, maxAccept = 0.001, 1.0
	ticksShare           = 0.25
	// Ticks are no further apart and no closer than this; a timer's where holds wait until they are paid for no further than
	// maxPeriodOfFew: there each costs a share of a hold. Where several come together the next is to come soon.
	minPeriod, maxPeriod, maxPeriodOfFew = 500 * time.Microsecond, 20 * time.Millisecond, 50 * time.Millisecond
)

// forHolds is the share that copying leaves to holds.
func (b *budget) forHolds() float64 { return b.target - min(b.copiedShare, copyingShare*b.target) }

// slowed is told by how many ns watched words have slowed copying so far.
func (b *budget) slowed(ns float64) { b.copied = ns }

// aim sets what share of the target's CPU time the budget is from now on.
func (b *budget) aim(share float64) {
	b.accept = min(max(b.accept*share/b.target, minAccept), maxAccept)
	b.target = share
}

// paid is how many ns the budget pays for of a target that ran for so many.
func (b *budget) paid(cpu uint64) float64 {
	return b.floor.allows(cpu, b.target) * b.forHolds() / b.target
}

// period is the distance of ticks at which the budget pays for as many samples as there
// should be.
func (b *budget) period() time.Duration {
	perSample := (b.holdNS + b.ticks*b.tickNS) / b.forHolds()
	most := maxPeriod
	if b.few() && !b.counters && b.batch == 1 {
		most = maxPeriodOfFew
	}
	return min(max(time.Duration(perSample/b.ticks), minPeriod), most)
}

// firstPeriod is that of a thread until its first hold, of which ticks must not take
// more than ticksShare of the budget: it may be long in coming.
func (b *budget) firstPeriod() time.Duration {
	if b.counters {
		return defaultPeriod
	}
	return min(max(time.Duration(b.tickNS/(ticksShare*b.target)), defaultPeriod), maxPeriod)
}

func newBudget(target float64, c sampler.TwoTrap, unit string) budget {
	b := budget{target: target, forced: -1, floor: floor{given: target}, batch: 1, trapNS: c.Cost, cold: coldShare, tickNS: timerTickNS, ticks: timerTicks}
	if unit != sampler.Nanoseconds {
		b.counters, b.tickNS, b.ticks, b.cold = true, counterTickNS, counterTicks, 0
	}
	b.holdNS = b.charge(1, firstHoldNS) + 2*c.Cost
	if unit == sampler.Operations {
		b.ticks /= memoryShare
	}
	b.setFirst()
	return b
}

// expectSteps assumes a burst of steps of the first holds, not reading ahead.
func (b *budget) expectSteps() {
	b.holdNS = b.charge(1, ahead.StepLimit) + 2*b.trapNS
	b.setFirst()
}

// measured has holds charged with what they cost after their end, in ns, as it was measured.
func (b *budget) measured(after float64) {
	b.holdNS -= b.charge(1, firstHoldNS)
	b.afterNS, b.cold = after, 0
	b.holdNS += b.charge(1, firstHoldNS)
	b.setFirst()
}

// tickCosts is told what a tick of a timer costs, in ns, as it was measured.
func (b *budget) tickCosts(ns float64) {
	b.tickNS = ns
	b.setFirst()
}

// ticksEvery is told how far apart in CPU time a timer's ticks are, in ns.
func (b *budget) ticksEvery(ns float64) { b.periodNS = ns }

// force has so much accepted, whatever it costs.
func (b *budget) force(accept float64) { b.forced = accept }

// ticksApart is told how far apart in CPU time all threads' ticks were, and are from now on.
func (b *budget) ticksApart(were, are float64) {
	b.accept = min(max(b.accept*are/were, minAccept), maxAccept)
	b.apartNS = are
}

// charge is what so many holds cost their threads, which took held altogether.
func (b *budget) charge(holds uint64, held time.Duration) float64 {
	return (1+b.cold)*float64(held) + b.afterNS*float64(holds)
}

// afterHolds is the account's remark on it.
func (b *budget) afterHolds() string {
	if b.afterNS > 0 {
		return fmt.Sprintf("a hold costs %.0f µs after its end (--hold-cost, or as measured on this machine)", b.afterNS/1000)
	}
	return fmt.Sprintf("cold caches are taken to cost %.0f%% of the holds", 100*b.cold)
}

// setFirst sets what is accepted of the first ticks.
func (b *budget) setFirst() {
	b.firstNS, b.next = b.holdNS, b.holdNS
	b.accept = b.acceptFirst(b.firstNS)
}

// holdTogether has so many holds come soon after each other.
func (b *budget) holdTogether(n int) { b.batch, b.coming = n, min(b.coming, n-1) }

// acceptFirst is what is accepted of ticks at first if a hold costs that much: as many as what
// the ticks leave of the budget pays for.
func (b *budget) acceptFirst(holdNS float64) float64 {
	apart := b.apartNS
	if apart == 0 {
		apart = float64(b.firstPeriod())
	}
	perTick := b.forHolds() * apart
	perTick -= min(b.tickNS, ticksShare*perTick)
	return min(max(perTick/holdNS, minAccept), maxAccept)
}

// few says that a hold costs more than the CPU time of one look at the account pays for. Of so few
// chance would make several in a session of seconds, where the budget pays for one or two. Where they
// are many, it evens out.
func (b *budget) few() bool { return b.next > b.forHolds()*float64(tickInterval) }

// accepted is the probability with which a tick becomes a candidate now. Where holds are few, none does until the next
// one is paid in full; and then the sooner, for what is saved would else not be spent.
func (b *budget) accepted() float64 {
	switch {
	case b.forced >= 0:
		return b.forced
	case b.coming > 0:
		return maxAccept
	case !b.few():
		return b.accept
	case b.saved < holdsVary*b.next*float64(b.batch):
		return 0
	}
	return min(sooner*b.accept, maxAccept)
}

// waited says why there are few holds, if there are, of a target that ran for so many ns.
func (b *budget) waited(cpu uint64) string {
	if !b.few() {
		return ""
	}
	return fmt.Sprintf(model.BudgetWaits+": one is taken to cost %v with what comes after it, and the whole budget pays for %.1f",
		time.Duration(b.next).Round(10*time.Microsecond), b.paid(cpu)/b.next)
}

// held charges a hold that has just ended with what it is taken to cost, until the next update, and says whether
// accepted has changed by it.
func (b *budget) held() bool {
	before := b.accepted()
	b.saved -= b.next
	if b.coming > 0 {
		b.coming--
	} else {
		b.coming = b.batch - 1
	}
	return b.accepted() != before
}

// trapped is what so many traps cost, whose programs took that long beyond the
// simplest one's time.
func (b *budget) trapped(traps, spent uint64) time.Duration {
	return time.Duration(b.trapNS*float64(traps)) + time.Duration(spent)
}

// update takes the state of the session so far and says whether accept has
// changed. Cost is what the target's threads lose: the time they are held, what they lose in cold caches after
// that, the ticks, and with the traps the time they wait to run again; and what watched words
// slow their copying by, which is kept to its share by watching less. Not
// what they lose in stops: to save that in samples would leave none of processes that live for
// milliseconds.
func (b *budget) update(cpu uint64, stats sampler.Stats, held, trapped time.Duration) bool {
	ofHolds := b.charge(stats.Holds, held) + float64(trapped)
	cost := ofHolds + b.tickNS*float64(stats.Ticks+stats.FirstAgain+stats.FirstLate)
	if stats.Holds > 0 {
		b.holdNS = ofHolds / float64(stats.Holds)
	}
	if cpu > 0 {
		b.copiedShare = b.copied / float64(cpu)
		b.spent = cost/float64(cpu) + b.copiedShare
	}
	before := b.accepted()
	b.saved = b.paid(cpu) - cost
	// What was assumed counts for no more than one of them.
	b.next = (b.firstNS + ofHolds) / float64(1+stats.Holds)
	if b.lastCPU == 0 && stats.Holds > b.firstHolds {
		// Too few to judge what is spent by.
		b.firstHolds = stats.Holds
		b.accept = b.acceptFirst(b.next)
	}
	b.judge(cpu, cost, stats)
	b.acceptRaised()
	return b.accepted() != before
}

// acceptRaised sets accept by what a hold costs where the floor is the budget: such a target runs so little that
// a session is over before enough was spent to judge by.
func (b *budget) acceptRaised() {
	if b.target <= b.floor.given || b.periodNS == 0 {
		return
	}
	b.accept = (b.forHolds()*b.periodNS - b.tickNS) / b.next
	b.accept *= min(max(1+b.saved/(4*b.next), 0.25), 2) // what is left of what was allowed, or too much
	b.accept = min(max(b.accept, minAccept), maxAccept)
}

// judge sets accept by what was spent since it last did.
func (b *budget) judge(cpu uint64, cost float64, stats sampler.Stats) {
	if cpu == b.lastCPU {
		return
	}
	recent := (cost - b.lastCost) / float64(cpu-b.lastCPU)
	// Wait for enough CPU time to judge by, but not where the first holds show that
	// they cost a multiple of what was thought.
	tooMuch := recent > 4*b.forHolds() && stats.Holds-b.lastHolds >= 2*judged
	if !tooMuch && cpu-b.lastCPU < uint64(max(float64(200*time.Millisecond), judged*b.holdNS/b.forHolds())) {
		return
	}
	b.lastCPU, b.lastCost, b.lastHolds = cpu, cost, stats.Holds
	// Aim at the target over the run so far, not only from now on: what was spent
	// beyond it is saved in the next seconds.
	share := b.forHolds()
	aim := share
	if b.few() {
		aim *= fewAim // all of it can't be reached: the last is saved for the next hold
	}
	if over := cost - b.paid(cpu); over > 0 {
		aim = max(share-over/float64(makeGood), 0.25*share)
	}
	factor := min(max(aim/max(recent, 1e-6), 0.1), 2)
	b.accept = min(max(b.accept*factor, minAccept), maxAccept)
}

// durations keeps the last few thousand, for quantiles, and the sum of all.
type durations struct {
	sum, longest time.Duration
	last         lengths
}

func (d *durations) add(v time.Duration) {
	d.sum += v
	d.longest = max(d.longest, v)
	d.last.add(int(v))
}

// quantile of the kept durations, 0 if there are none.
func (d *durations) quantile(q float64) time.Duration { return time.Duration(d.last.quantile(q)) }

// lengths keeps the last few thousand of any measure.
type lengths struct {
	n    int // all
	ring []int
}

const keptLengths = 4096

func (l *lengths) add(v int) {
	if len(l.ring) < keptLengths {
		l.ring = append(l.ring, v)
	} else {
		l.ring[l.n%keptLengths] = v
	}
	l.n++
}

// quantile of those kept, 0 if there are none.
func (l *lengths) quantile(q float64) int {
	if len(l.ring) == 0 {
		return 0
	}
	s := slices.Clone(l.ring)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1))]
}
