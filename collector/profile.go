package collector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// input is what was seen while sampling, as plain data: each part tells what it has of it.
func (s *sampling) input(sum estimate.Totals, stats sampler.Stats) estimate.Input {
	in := estimate.Input{
		Seed: s.cfg.Seed, AccessRate: s.cfg.AccessRate, Conflicts: s.cfg.Costs.Conflicts,
		Shared: s.cfg.Stack == SharedStack || s.cfg.Stack == BothStacks,
		Totals: sum, Held: stats.Holds, Ran: s.targets.processes.Ran(), Modes: s.targets.processes.Modes(),
	}
	s.kept.fill(&in)
	s.timing.fill(&in)
	s.src.fill(&in)
	s.prober.fill(&in)
	s.holds.fill(&in)
	return in
}

// profile makes the profile of what was seen, with the session's account and what was lost.
func (s *sampling) profile(b *backlog, c course) (*model.Profile, error) {
	stats, err := s.kernel.Stats()
	if err != nil {
		return nil, err
	}
	s.self.look(profilerTime(), false) // the target is not traced any more
	sum := s.ticks.total(true)
	p := &model.Profile{
		Start:         s.tracing.start,
		Duration:      c.end.Sub(s.tracing.start),
		Source:        s.src.name(),
		BinsPerOctave: s.cfg.BinsPerOctave,
		Caches:        s.cfg.Caches,
		Costs:         model.CostsByLevel(s.cfg.Costs.On, s.cfg.Caches),
		CostsOn:       s.cfg.Costs.On,
	}
	p.Command = s.targets.command()
	in := s.input(sum, stats)
	in.Stacks, in.Windows, in.Resident, in.Touched = b.table, b.windows.Kept(), c.resident, c.touched
	estimate.Fill(p, in)
	p.Counts = append(p.Counts, b.table.Counts()...)
	stops := s.tracing.tracer.StopCounts()
	s.counts(p.AddCount, sum, stats, stops)
	s.comments(p, c, sum, stats, stops)
	slices.SortFunc(p.Counts, func(a, b model.Count) int { return cmp.Compare(a.Name, b.Name) })
	return p, nil
}

// counts are all parts' counts.
func (s *sampling) counts(count count, sum estimate.Totals, stats sampler.Stats, stops ptrace.StopCounts) {
	hold := uint64(s.holds.perHoldWanted()) // samples
	countStats(stats, hold, count)
	if s.cfg.Interrupt {
		count(model.CPUWaiting, sum.UnheldTime())
	} else {
		count(model.CPUMasked, sum.UnheldTime())
	}
	count(model.CPUSampled, sum.CPU-sum.UnheldTime())
	count(model.LostBecause.Of(model.CountersUnread), uint64(sum.Unclock))
	count(model.SourceShared, sum.Shared)
	count(model.OtherStops, stops.N)
	count(model.TrapsStray, stops.Stray)
	count(model.TrapsStrayOfRdx, ptrace.StrayTrapsOfRdx())
	s.account.counts(count)
	s.targets.counts(count)
	s.watches.copyCost.counts(hold, count)
	s.copyLimit.counts(count)
	s.ticks.counts(sum, count)
	s.src.counts(sum, count)
	if s.watches.groups() {
		s.watches.counts(stats, count)
		s.kept.countLined(count)
	}
	s.holds.counts(count)
}

// comments are all parts' comments, in the order in which they are read.
func (s *sampling) comments(p *model.Profile, c course, sum estimate.Totals, stats sampler.Stats, stops ptrace.StopCounts) {
	say := func(all ...string) {
		for _, said := range all {
			if said != "" {
				p.Comments = append(p.Comments, said)
			}
		}
	}
	cpu := max(sum.CPU, s.targets.processes.Ran())
	say(throttles(sum))
	say(s.notes()...)
	say(s.timing.heldComment(), s.ticks.tickComment()+s.timing.resumeComment(), s.timing.constantComment(), s.targets.attachedComment(c))
	say(s.ticks.budget.comment(), s.self.comment(cpu, s.ticks.budget.spent))
	say(s.watches.copyCost.comments()...)
	say(s.ticks.budget.waited(cpu), s.ticks.budget.floor.comment(cpu), s.timing.stopped(stops).comment(cpu))
	if stats.Interrupts > 0 {
		say(s.timing.interruptComment())
	}
	if s.watches.groups() {
		say(fmt.Sprintf("stack: %s; %d watchpoints in other threads for %d observations", s.cfg.Stack, s.watches.others, len(s.kept.seen)), s.kept.linedComment())
		say(s.watches.registers.comments()...)
		say(s.neighbours.merges.Comments()...)
		say(s.watches.otherComment())
	}
	say(s.targets.heapComments(sum.CPU, p.AddCount)...)
	if !s.tracing.tracer.RealTime {
		say("the tracing thread has no real-time priority (CAP_SYS_NICE): threads are held longer on a busy machine")
	}
	say(s.holds.burstComment(), s.holds.stages.comment())
}

// count adds to a profile's number of a name.
type count func(name model.CountName, n uint64)

// countStats are the counts of the kernel's programs; a hold stands for so many samples.
func countStats(stats sampler.Stats, hold uint64, count count) {
	count(model.LostBecause.Of(model.SignalsBlocked), hold*stats.SignalBlocked)
	count(model.LostBecause.Of(model.SignalsWaited), hold*stats.Waits)
	count(model.HoldInterrupts, stats.Interrupts)
	count(model.TicksPassedOver, stats.FirstAgain)
	count(model.TicksLate, stats.FirstLate)
	count(model.LostBecause.Of(model.SignalNotSent), hold*stats.SignalFailed)
	count(model.LostBecause.Of(model.HoldsTooMany), hold*stats.Throttled)
	count(model.LostBecause.Of(model.TrapDropped), stats.RingFull)
	count(model.LostBecause.Of(model.TrapWithoutTime), stats.ClockFailed)
	count(model.Samples, stats.Ticks)
	count(model.Candidates, stats.Candidates)
	count(model.DrawLost, stats.Losers)
	count(model.HeldAlready, stats.HoldPending)
	count(model.Holds, stats.Holds)
	count(model.TrapsUnawaited, stats.ExtraTraps)
	count(model.EventsUnknown, stats.Unknown)
	count(model.TicksStepping, stats.Stepping)
	count(model.StacksNotCopied, stats.StackLost)
	count(model.TicksInKernel, stats.InKernel)
	count(model.TicksNoMemory, stats.NoMemory)
	count(model.LostBecause.Of(model.NoAddress), stats.NoAddress)
}

// burstComment says how reading ahead went, "" where nothing was read.
func (s *holds) burstComment() string {
	switch {
	case s.reading.last.n == 0:
		return ""
	case s.steps():
		return fmt.Sprintf("burst engine: step; %d threads moved on by %d steps of %.1f instructions, %.1f accesses, %v each: %v a burst at the median, %v at p99; without a reuse as far as %d accesses at the median, %d at p10",
			s.reading.last.n, s.stepper.totals.steps, float64(s.stepper.totals.instructions)/float64(max(s.stepper.totals.steps, 1)), float64(s.readAhead())/float64(max(s.stepper.totals.steps, 1)),
			s.reading.sum/time.Duration(max(s.stepper.totals.steps, 1)), s.reading.quantile(.5), s.reading.quantile(.99), s.reached.quantile(.5), s.reached.quantile(.1))
	case s.burst == 0:
		return ""
	}
	return fmt.Sprintf("read ahead: %v at the median, %v at p99; without a reuse as far as %d accesses at the median, %d at p10",
		s.reading.quantile(.5), s.reading.quantile(.99), s.reached.quantile(.5), s.reached.quantile(.1))
}

// counts are of what was read ahead, and why it ended.
func (s *holds) counts(count count) {
	count(model.ReadAhead, uint64(s.readAhead()))
	count(model.HoldsInSyscall, uint64(s.inSyscall))
	ends, readTime := make(map[model.Reason]uint64), uint64(0)
	for i := range s.made {
		ends[model.Reason(s.made[i].End)]++
		if s.made[i].ReadTime {
			readTime++
		}
	}
	count(model.ReadTime, readTime)
	for end, n := range ends {
		count(model.BurstEnded.Of(end), n)
	}
}

// fill tells the estimate of the holds.
func (s *holds) fill(in *estimate.Input) {
	s.findHot(in.Seen)
	in.Block, in.Stepped, in.PerHold = s.block(), s.steps(), s.perHoldWanted()
	in.Holds, in.StoodFor, in.Overlaps = s.made, s.stoodFor, s.overlaps
	for _, lap := range s.laps {
		if lap.Timed {
			in.Laps = append(in.Laps, *lap)
		}
	}
}

// fill tells the estimate what was observed.
func (s *observations) fill(in *estimate.Input) { in.Seen = s.seen }

// fill tells the estimate how time was told.
func (s *timing) fill(in *estimate.Input) { in.Clock, in.Calibration = s.clock, s.calibration }

// fill tells the estimate what ticked.
func (s *sourceState) fill(in *estimate.Input) { in.Unit, in.Unweighed = s.source.Unit(), s.unweighed }

// fill tells the estimate what probes have found.
func (p *prober) fill(in *estimate.Input) {
	p.Probes.Pending = p.probe.state == replaying
	in.Probes, in.MeasuresRate = p.Probes, p.used()
}

// name is the source's, after those that it has replaced.
func (s *sourceState) name() string {
	return strings.Join(append(slices.Clone(s.replaced), s.source.Name()), ", then ")
}

// heldComment says how long threads were held.
func (s *timing) heldComment() string {
	return fmt.Sprintf(model.HeldFor+"p50 %v, p99 %v, longest %v", s.held.quantile(.5), s.held.quantile(.99), s.held.longest)
}

// resumeComment and tickComment are one line.
func (s *timing) resumeComment() string {
	return fmt.Sprintf("to run again after a hold %v", s.resumes.quantile(.5))
}

func (s *tickPace) tickComment() string {
	return fmt.Sprintf("a tick costs %.1f µs, ", s.budget.tickNS/1000)
}

// constantComment says what two traps take.
func (s *timing) constantComment() string {
	return fmt.Sprintf("two traps with nothing between: p10 %.0f, p50 %.0f, p90 %.0f %s; the constant is subtracted", s.calibration.P10, s.calibration.P50, s.calibration.P90, s.clock.Unit)
}

// interruptComment says how late interrupts come.
func (s *timing) interruptComment() string {
	return fmt.Sprintf("threads that block the hold signals were interrupted %v after the tick at the median, %v at p99: what they do so soon after a system call is not sampled", s.interrupts.quantile(.5), s.interrupts.quantile(.99))
}

// attachedComment says how long it took to attach and to detach.
func (s *targets) attachedComment(c course) string {
	return fmt.Sprintf("attached to %d threads in %v, detached in %v", s.attached, c.attaching.Round(time.Microsecond), c.detaching.Round(time.Microsecond))
}

// comment is the account of what was spent.
func (b *budget) comment() string {
	return fmt.Sprintf(model.Overhead+"%.2f%% of the target's CPU time; %s", 100*b.spent, b.afterHolds())
}

// counts are of CPU time, which tells of processes what ticks don't.
func (s *targets) counts(count count) {
	count(model.CPUTarget, s.processes.Ran())
	count(model.CPUChildren, s.childrenTime())
}

// counts are the losses by name, and what was no loss as it turned out.
func (s *account) counts(count count) {
	for name, n := range s.losses {
		count(name, uint64(n))
	}
	count(model.NoReuseLeft, uint64(s.outlivedN))
}

// counts are of what copying cost; a hold stands for so many samples.
func (c *copyCost) counts(hold uint64, count count) {
	count(model.CPUWatched, uint64(c.watched))
	count(model.WatchesGivenUp, uint64(c.givenUp))
	count(model.TrapsCopying, c.copiedTraps)
	count(model.WatchesPassed, hold*uint64(c.passed))
	count(model.CopiesUnread, uint64(c.unread))
}

func (s *copyLimit) counts(count count) { count(model.WatchesSpared, uint64(s.spared)) }

func (s *tickPace) counts(sum estimate.Totals, count count) {
	count(model.LostBecause.Of(model.TicksMissed), sum.Missed(s.meanPeriod))
}

// counts say how often and how long the kernel had
// stopped the source. What it still lets through is as random as before, and has the
// weight of what was missed, see estimate.
func (s *sourceState) counts(sum estimate.Totals, count count) {
	count(model.SourceUncounted, s.unsampled(sum, s.timing.clock))
	count(model.ThreadsBlind, uint64(sum.Blind))
	count(model.SourceThrottles, sum.Throttles)
	count(model.SourceThrottled, sum.Stopped)
}

// command is the command line of the process that was named or started. One that ended before it was looked at has that by
// which it was started.
func (s *targets) command() string {
	if all := s.processes.All(); len(all) > 0 {
		if c := all[len(all)-1].Facts.Command(); c != "" {
			return c
		}
	}
	return strings.Join(s.cfg.Command, " ")
}
