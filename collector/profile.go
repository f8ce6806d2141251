package collector

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// profile turns what was seen into a profile: observations become records,
// addresses locations, counters losses.
func (s *Session) profile() (*model.Profile, error) {
	stats, err := s.kernel.Stats()
	if err != nil {
		return nil, err
	}
	s.own.look(ownTime(), false) // the target is not traced any more
	s.fitLocal()
	s.rates.settle(s.cfg.AccessRate, s.clock)
	s.weighByCode()
	s.weighByOverlap()
	sum := s.total(true)
	perSource := s.sourceRate(sum) // accesses
	p := &model.Profile{
		Start:         s.start,
		Duration:      s.end.Sub(s.start),
		Source:        strings.Join(append(slices.Clone(s.replaced), s.source.Name()), ", then "),
		Period:        (sum.ticked - sum.unheld) * perSource / s.rates.mean() / float64(max(stats.Holds, 1)),
		Clock:         s.clockModel(),
		Block:         s.block(),
		BinsPerOctave: s.cfg.BinsPerOctave,
		Caches:        s.cfg.Caches,
		DesignEffect:  s.designEffect(),
	}
	if all := s.allProcesses(); len(all) > 0 {
		p.Command = all[len(all)-1].facts.Command()
	}
	perCount := sum.perTally()
	if s.clock.Counted != nil {
		perCount = s.rates.mean() / perSource
	}
	s.weighEpochs(perCount)
	for _, o := range s.seen {
		if o.state == done {
			s.settle(o)
		}
	}
	s.setPaces(p)
	s.unsmear()
	watched := s.watched()
	passed := 0
	locations := make(locationTable)
	data := make(dataTable)
	byWall := s.accessesPerWall(sum)
	lines := s.lineWeights()
	checks := s.checkWeights()
	if s.cfg.Stack == SharedStack || s.cfg.Stack == BothStacks {
		s.feet = s.footprints()
	}
	for _, o := range s.seen {
		if o.state != done {
			continue // counted as lost where it was lost
		}
		weight := o.epoch.perObservation() * o.touches()
		if w := watched[shareKey{o.epoch, o.stack}]; o.passed && w.seen > 0 {
			passed++
			continue
		} else if o.counted == 0 {
			weight *= w.each()
		}
		if weight *= checks.of(o); weight == 0 {
			continue
		}
		r := model.Record{
			Kind:         o.kind,
			Use:          locations.stack(o.process, s.stacks.stack(o.useStack)),
			Op:           o.op,
			TID:          o.tid,
			Data:         data.of(s, o, locations),
			Epoch:        o.epoch.number,
			Observations: 1,
			Accesses:     weight * perSource,
		}
		r.Stack, r.EndTID = o.stack, o.endTID
		if o.endTID != 0 {
			r.Address, r.Written = o.word, o.word
		}
		s.setTime(&r, o, byWall)
		r.DataSource = o.source
		if o.latency > 0 {
			p.Latencies = append(p.Latencies, model.Latency{Use: r.Use, Op: r.Op, TID: r.TID, DataSource: o.source, Cycles: float64(o.latency) * r.Accesses})
		}
		if o.kind == model.Reuse || o.kind == model.Invalidated {
			r.Reuse = locations.stack(o.process, s.stacks.stack(o.reuse))
		}
		p.Records = append(p.Records, r)
		for i := range o.line {
			w := &o.line[i]
			if w.seen == nil {
				continue
			}
			look := o.watchedLook()
			p.Records = append(p.Records, model.Record{Kind: model.FalseSharing, Use: locations.stack(o.process, s.stacks.stack(look.use)), Op: look.op, TID: o.tid, Data: r.Data, Stack: o.stack, Observations: 1,
				Reuse: locations.stack(o.process, s.stacks.stack(w.seen.stack)), EndTID: w.seen.tid, Address: o.word, Written: w.addr,
				Accesses: r.Accesses * lines.of(o, w),
				Native:   uint64(math.Round(w.seen.wall * byWall.native)),
				Time:     uint64(math.Round(max(w.seen.wall*byWall.accesses, 1)))})
		}
	}
	p.JoinEpochs()
	count := func(name string, n uint64) {
		if n > 0 {
			p.Counts = append(p.Counts, model.Count{Name: name, N: int64(n)})
		}
	}
	hold := uint64(s.perHoldWanted()) // samples
	count("lost: thread blocks the hold signals", hold*stats.SignalBlocked)
	count("lost: thread blocks the hold signals, and has waited within 10 ms", hold*stats.Waits)
	if s.cfg.Interrupt {
		count(model.CPUWaiting, sum.unheldTime())
	} else {
		count(model.CPUMasked, sum.unheldTime())
	}
	count("holds by interrupt", stats.Interrupts)
	count("ticks passed over until a new thread had its gap", stats.FirstAgain)
	count("lost: hold signal not sent", hold*stats.SignalFailed)
	count("lost: too many holds a second", hold*stats.Throttled)
	count("lost: trap record dropped, ring full", stats.RingFull)
	count("lost: trap without a time", stats.ClockFailed)
	for name, n := range s.losses {
		count(name, uint64(n))
	}
	count("samples", stats.Ticks)
	count("candidates", stats.Candidates)
	count("candidates that lost the draw for a slot", stats.Losers)
	count("candidates of a thread on hold", stats.HoldPending)
	count("holds", stats.Holds)
	count("traps nobody waited for", stats.ExtraTraps)
	count("events of threads already gone", stats.Unknown)
	count("ticks while stepping over a watchpoint", stats.Stepping)
	count("stacks not copied at a trap", stats.StackLost)
	p.Counts = append(p.Counts, s.stacks.counts()...)
	cpu, stops := max(sum.cpu, s.ranTime()), s.stopped()
	count("CPU time of the target, ns", s.ranTime())
	count("stops besides holds", stops.n)
	count("traps of watchpoints that the kernel did not know as such, kept from the target", s.tracer.Stops().Stray)
	count("traps of rdx's own watchpoints that the kernel did not know as such", ptrace.OwnStrayTraps())
	count("CPU time of the target with words watched, ns", uint64(s.copying.watched))
	count("watchpoints given up, as they slowed copying", uint64(s.copying.givenUp))
	count("samples not watched, as that would slow copying", hold*uint64(s.copying.passed))
	count("processes that ended before it was known what they copied beside watched words", uint64(s.copying.unread))
	count(model.CPUChildren, s.childrenTime())
	count(model.CPUSampled, sum.cpu-sum.unheldTime())
	count("lost: ticks throttled or without a free counter", sum.missed(s.gap))
	count("accesses that the source did not count, throttled or without a counter", s.unsampled(sum))
	count("ticks of the source in the kernel", stats.InKernel)
	count("ticks of the source without a memory access", stats.NoMemory)
	count("lost: access without an address", stats.NoAddress)
	count("lost: threads whose counters could not be read", uint64(sum.unclock))
	count("observations that can have no reuse, their thread or memory being gone", uint64(s.never))
	count("reuses read ahead left out, as other threads came first where others of the same code were watched", uint64(checks.dropped))
	count("samples without a slot, in whose place others of the time are watched", uint64(math.Round(float64(passed)+s.stoodFor)))
	count("source's counter shared with others, ns", sum.shared)
	s.countThrottles(p, sum, count)
	count("source throttled without a clock that counts: weights do not make up for it, ns", s.unweighed)
	p.Comments = append(p.Comments, s.notes()...)
	p.Comments = append(p.Comments,
		fmt.Sprintf("thread held per sample: p50 %v, p99 %v", s.held.quantile(.5), s.held.quantile(.99)),
		fmt.Sprintf("a tick costs %.1f µs, to run again after a hold %v", s.budget.tickNS/1000, s.resumes.quantile(.5)),
		fmt.Sprintf("two traps with nothing between: p10 %.0f, p50 %.0f, p90 %.0f %s; the constant is subtracted", s.calibration.P10, s.calibration.P50, s.calibration.P90, s.clock.Unit),
		fmt.Sprintf("attached to %d threads in %v, detached in %v", s.attached, s.attachTime.Round(time.Microsecond), s.detachTime.Round(time.Microsecond)),
		fmt.Sprintf("overhead by the profiler's own account: %.2f%% of the target's CPU time; cold caches are taken to cost %.0f%% of the holds", 100*s.budget.spent, 100*s.budget.cold),
		s.own.comment(cpu, s.budget.spent),
	)
	for _, said := range append(s.copying.comments(), s.budget.waited(cpu), stops.comment(cpu)) {
		if said != "" {
			p.Comments = append(p.Comments, said)
		}
	}
	if stats.Interrupts > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("threads that block the hold signals were interrupted %v after the tick at the median, %v at p99: what they do so soon after a system call is not sampled", s.interrupts.quantile(.5), s.interrupts.quantile(.99)))
	}
	count("timed reuses near the clock's resolution, placed by their distribution without the traps' noise", uint64(s.unsmeared))
	s.secondLookComments(p)
	s.rateComment(p)
	s.overlapComment(p)
	s.sharingComments(p, stats, count)
	s.heapComments(p, sum.cpu, count)
	if !s.tracer.RealTime {
		p.Comments = append(p.Comments, "the tracing thread has no real-time priority (CAP_SYS_NICE): threads are held longer on a busy machine")
	}
	return p, nil
}

// slotShare is what an epoch's observations have of touches, of those that found a
// slot, and of those that did not, nor a reuse as far as was read ahead.
type slotShare struct{ seen, passed float64 }

// each is what one that was watched stands for.
func (w slotShare) each() float64 {
	if w.seen == 0 {
		return 1
	}
	return 1 + w.passed/w.seen
}

// shareKey: of both stacks, each has observations of its own.
type shareKey struct {
	epoch *epoch
	stack model.StackKind
}

// watched is each epoch's and stack's slotShare. Those watched stand also for
// those that found no slot: for these it is only known that there is no reuse
// as far as was read ahead, and what comes after goes with the program's phases.
func (s *Session) watched() map[shareKey]slotShare {
	shares := make(map[shareKey]slotShare)
	for _, o := range s.seen {
		if o.state != done {
			continue
		}
		key := shareKey{o.epoch, o.stack}
		w := shares[key]
		if o.passed {
			w.passed += o.touches()
		} else if o.counted == 0 {
			w.seen += o.touches()
		}
		shares[key] = w
	}
	return shares
}

// designEffect is that of the observations of a hold.
func (s *Session) designEffect() float64 {
	holds := make([][]model.Clustered, s.holdsUsed)
	for _, o := range s.seen {
		if o.state != done || o.hold == 0 {
			continue
		}
		c := model.Clustered{Time: math.MaxUint64, Times: o.times()}
		if o.kind == model.Reuse && o.counted > 0 {
			c.Time = uint64(o.counted)
		}
		holds[o.hold-1] = append(holds[o.hold-1], c)
	}
	return model.DesignEffect(holds)
}

// rateComment says how the access rate was obtained, and how reading ahead
// went.
func (s *Session) rateComment(p *model.Profile) {
	if s.steps() && s.reading.last.n > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("burst engine: step; %d threads moved on by %d steps of %.1f instructions, %.1f accesses, %v each: %v a burst at the median, %v at p99; without a reuse as far as %d accesses at the median, %d at p10",
			s.reading.last.n, s.stepped.stops, float64(s.stepped.instructions)/float64(max(s.stepped.stops, 1)), float64(s.readAhead)/float64(max(s.stepped.stops, 1)),
			s.reading.sum/time.Duration(max(s.stepped.stops, 1)), s.reading.quantile(.5), s.reading.quantile(.99), s.reached.quantile(.5), s.reached.quantile(.1)))
	} else if s.burst > 0 && s.reading.last.n > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("read ahead: %v at the median, %v at p99; without a reuse as far as %d accesses at the median, %d at p10",
			s.reading.quantile(.5), s.reading.quantile(.99), s.reached.quantile(.5), s.reached.quantile(.1)))
	}
	for _, c := range []struct {
		name string
		n    int
	}{
		{"accesses read ahead", s.readAhead},
		{"holds that came in a system call", s.inSyscall},
	} {
		if c.n > 0 {
			p.Counts = append(p.Counts, model.Count{Name: c.name, N: int64(c.n)})
		}
	}
	s.rateCounts(p)
	for end, n := range s.ends {
		p.Counts = append(p.Counts, model.Count{Name: "bursts ended: " + end, N: n})
	}
	slices.SortFunc(p.Counts, func(a, b model.Count) int { return strings.Compare(a.Name, b.Name) })
}

// setTime gives a record its time in accesses and in the clock's unit.
func (s *Session) setTime(r *model.Record, o *observation, byWall perWall) {
	switch {
	case o.stack == model.StackShared:
		s.setSharedTime(r, o, byWall)
		return
	case o.kind == model.Invalidated || o.byWall:
		// By another thread's clock, and at most what this one's has to say.
		r.Native = uint64(math.Round(o.wall * byWall.native))
		if o.age > 0 {
			r.Native = min(r.Native, uint64(o.age))
		}
		r.Time = max(uint64(math.Round(s.touchesIn(float64(r.Native)))), 1)
		if o.byWall {
			r.Time = max(r.Time, uint64(o.after)+1) // it was read ahead that there is no reuse so soon
			return
		}
		r.BelowResolution = o.wall < s.calibration.Resolution()
		return
	}
	if o.counted > 0 && (o.kind == model.Reuse || s.steps()) || o.passed {
		r.Exact = true
		r.Time = uint64(o.counted)
		if o.kind == model.Reuse {
			r.Distinct = uint64(o.distinct)
		}
		r.Native = uint64(math.Round(float64(o.counted) / s.touchesOf(o, 1)))
		return
	}
	timed := uint64(math.Round(s.touchesOf(o, o.native))) + uint64(o.lead)
	// It was read ahead that there is no reuse so soon.
	least := uint64(o.after) + 1
	r.Native = uint64(math.Round(o.native + float64(o.lead)/s.touchesOf(o, 1)))
	r.Time = max(timed, least)
	r.BelowResolution = o.below && timed > least
	if o.kind == model.Reuse && o.after > 0 {
		r.After, r.Distinct = uint64(o.after), uint64(o.distinct)
	}
	if o.half {
		r.Half, r.After, r.Pair = true, uint64(o.after), o.pair
		r.PairTime = max(uint64(math.Round(s.touchesOf(o, o.pairNative))), least)
	}
}

// locationTable makes one model.Location of each address of a process.
type locationTable map[locationKey]*model.Location

type locationKey struct {
	process *process
	address uint64
}

func (lt locationTable) stack(p *process, addresses []uint64) []*model.Location {
	out := make([]*model.Location, len(addresses))
	for i, a := range addresses {
		key := locationKey{p, a}
		l := lt[key]
		if l == nil {
			l = &model.Location{Address: a}
			if m := p.find(a); m != nil {
				m.identify()
				l.Mapping = &m.Mapping
			}
			lt[key] = l
		}
		out[i] = l
	}
	return out
}
