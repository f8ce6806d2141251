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

// input is what was seen while sampling.
func (s *sampling) input(sum estimate.Totals, stats sampler.Stats) estimate.Input {
	s.prober.Probes.Pending = s.prober.probe.state == replaying
	s.holds.findHot(s.kept.seen)
	return estimate.Input{
		Seen: s.kept.seen, Seed: s.cfg.Seed,
		Clock: s.timing.clock, Calibration: s.timing.calibration, Unit: s.src.source.Unit(), Totals: sum, Unweighed: s.src.unweighed,
		AccessRate: s.cfg.AccessRate, Probes: s.prober.Probes, MeasuresRate: s.prober.used(), Ran: s.targets.processes.Ran(),
		Block: s.holds.block(), Stepped: s.holds.steps(), Shared: s.cfg.Stack == SharedStack || s.cfg.Stack == BothStacks,
		PerHold: s.holds.perHoldWanted(), Held: stats.Holds, Holds: s.holds.made, StoodFor: s.holds.stoodFor,
		Overlaps: s.holds.overlaps, Conflicts: s.cfg.Costs.Conflicts,
	}
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
		Source:        strings.Join(append(slices.Clone(s.src.replaced), s.src.source.Name()), ", then "),
		BinsPerOctave: s.cfg.BinsPerOctave,
		Caches:        s.cfg.Caches,
		Costs:         model.CostsByLevel(s.cfg.Costs.On, s.cfg.Caches),
		CostsOn:       s.cfg.Costs.On,
	}
	p.Command = s.targets.command()
	in := s.input(sum, stats)
	in.Stacks, in.Windows, in.Resident, in.Touched = b.table, b.windows.Kept(), c.resident, c.touched
	estimate.Fill(p, in)
	count := p.AddCount
	hold := uint64(s.holds.perHoldWanted()) // samples
	count(model.LostBecause.Of(model.SignalsBlocked), hold*stats.SignalBlocked)
	count(model.LostBecause.Of(model.SignalsWaited), hold*stats.Waits)
	if s.cfg.Interrupt {
		count(model.CPUWaiting, sum.UnheldTime())
	} else {
		count(model.CPUMasked, sum.UnheldTime())
	}
	count(model.HoldInterrupts, stats.Interrupts)
	count(model.TicksPassedOver, stats.FirstAgain)
	count(model.TicksLate, stats.FirstLate)
	count(model.LostBecause.Of(model.SignalNotSent), hold*stats.SignalFailed)
	count(model.LostBecause.Of(model.HoldsTooMany), hold*stats.Throttled)
	count(model.LostBecause.Of(model.TrapDropped), stats.RingFull)
	count(model.LostBecause.Of(model.TrapWithoutTime), stats.ClockFailed)
	for name, n := range s.account.losses {
		count(name, uint64(n))
	}
	count(model.Samples, stats.Ticks)
	count(model.Candidates, stats.Candidates)
	count(model.DrawLost, stats.Losers)
	count(model.HeldAlready, stats.HoldPending)
	count(model.Holds, stats.Holds)
	count(model.TrapsUnawaited, stats.ExtraTraps)
	count(model.EventsUnknown, stats.Unknown)
	count(model.TicksStepping, stats.Stepping)
	count(model.StacksNotCopied, stats.StackLost)
	p.Counts = append(p.Counts, b.table.Counts()...)
	cpu, stopped := max(sum.CPU, s.targets.processes.Ran()), s.timing.stopped(s.tracing.tracer.Stops())
	count(model.CPUTarget, s.targets.processes.Ran())
	count(model.OtherStops, stopped.n)
	count(model.TrapsStray, s.tracing.tracer.Stops().Stray)
	count(model.TrapsStrayOfRdx, ptrace.OwnStrayTraps())
	count(model.CPUWatched, uint64(s.watches.copyCost.watched))
	count(model.WatchesGivenUp, uint64(s.watches.copyCost.givenUp))
	count(model.WatchesSpared, uint64(s.copyLimit.spared))
	count(model.TrapsCopying, s.watches.copyCost.copiedTraps)
	count(model.WatchesPassed, hold*uint64(s.watches.copyCost.passed))
	count(model.CopiesUnread, uint64(s.watches.copyCost.unread))
	count(model.CPUChildren, s.targets.childrenTime())
	count(model.CPUSampled, sum.CPU-sum.UnheldTime())
	count(model.LostBecause.Of(model.TicksMissed), sum.Missed(s.ticks.meanPeriod))
	count(model.SourceUncounted, s.src.unsampled(sum, s.timing.clock))
	count(model.TicksInKernel, stats.InKernel)
	count(model.TicksNoMemory, stats.NoMemory)
	count(model.LostBecause.Of(model.NoAddress), stats.NoAddress)
	count(model.LostBecause.Of(model.CountersUnread), uint64(sum.Unclock))
	count(model.NoReuseLeft, uint64(s.account.outlivedN))
	count(model.SourceShared, sum.Shared)
	countThrottles(p, sum, count)
	p.Comments = append(p.Comments, s.notes()...)
	p.Comments = append(p.Comments,
		fmt.Sprintf("thread held per sample: p50 %v, p99 %v, longest %v", s.timing.held.quantile(.5), s.timing.held.quantile(.99), s.timing.held.longest),
		fmt.Sprintf("a tick costs %.1f µs, to run again after a hold %v", s.ticks.budget.tickNS/1000, s.timing.resumes.quantile(.5)),
		fmt.Sprintf("two traps with nothing between: p10 %.0f, p50 %.0f, p90 %.0f %s; the constant is subtracted", s.timing.calibration.P10, s.timing.calibration.P50, s.timing.calibration.P90, s.timing.clock.Unit),
		fmt.Sprintf("attached to %d threads in %v, detached in %v", s.targets.attached, c.attaching.Round(time.Microsecond), c.detaching.Round(time.Microsecond)),
		fmt.Sprintf("overhead by the profiler's own account: %.2f%% of the target's CPU time; %s", 100*s.ticks.budget.spent, s.ticks.budget.afterHolds()),
		s.self.comment(cpu, s.ticks.budget.spent),
	)
	for _, said := range append(s.watches.copyCost.comments(), s.ticks.budget.waited(cpu), s.ticks.budget.floor.comment(cpu), stopped.comment(cpu)) {
		if said != "" {
			p.Comments = append(p.Comments, said)
		}
	}
	if stats.Interrupts > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("threads that block the hold signals were interrupted %v after the tick at the median, %v at p99: what they do so soon after a system call is not sampled", s.timing.interrupts.quantile(.5), s.timing.interrupts.quantile(.99)))
	}
	s.holds.sharingComments(p, stats, count)
	s.targets.heapComments(p, sum.CPU, count)
	if !s.tracing.tracer.RealTime {
		p.Comments = append(p.Comments, "the tracing thread has no real-time priority (CAP_SYS_NICE): threads are held longer on a busy machine")
	}
	s.holds.burstComments(p)
	if said := s.holds.stages.comment(); said != "" {
		p.Comments = append(p.Comments, said)
	}
	return p, nil
}

// burstComments say how reading ahead went.
func (s *holds) burstComments(p *model.Profile) {
	if s.steps() && s.reading.last.n > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("burst engine: step; %d threads moved on by %d steps of %.1f instructions, %.1f accesses, %v each: %v a burst at the median, %v at p99; without a reuse as far as %d accesses at the median, %d at p10",
			s.reading.last.n, s.stepped.steps, float64(s.stepped.instructions)/float64(max(s.stepped.steps, 1)), float64(s.readAhead())/float64(max(s.stepped.steps, 1)),
			s.reading.sum/time.Duration(max(s.stepped.steps, 1)), s.reading.quantile(.5), s.reading.quantile(.99), s.reached.quantile(.5), s.reached.quantile(.1)))
	} else if s.burst > 0 && s.reading.last.n > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("read ahead: %v at the median, %v at p99; without a reuse as far as %d accesses at the median, %d at p10",
			s.reading.quantile(.5), s.reading.quantile(.99), s.reached.quantile(.5), s.reached.quantile(.1)))
	}
	p.AddCount(model.ReadAhead, uint64(s.readAhead()))
	p.AddCount(model.HoldsInSyscall, uint64(s.inSyscall))
	ends := make(map[model.Reason]int64)
	for i := range s.made {
		ends[model.Reason(s.made[i].End)]++
	}
	for end, n := range ends {
		p.Counts = append(p.Counts, model.Count{Name: model.BurstEnded.Of(end), N: n})
	}
	slices.SortFunc(p.Counts, func(a, b model.Count) int { return cmp.Compare(a.Name, b.Name) })
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
