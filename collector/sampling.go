package collector

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// sampling is what a session does and keeps while it samples. It is set up before the first thread is seized, is the
// tracing thread's until no thread is traced any more, and then whoever waits takes out what it has seen. Each of its
// parts holds its own fields, and knows of the others only what wire tells it.
type sampling struct {
	cfg    Config
	kernel *sampler.Kernel
	locate *ahead.Locator
	rand   *rand.Rand

	tracing    tracing
	targets    targets
	holds      holds
	stepper    stepper
	neighbours neighbours
	reports    reports
	watches    watches
	kept       observations
	timing     timing
	ticks      tickPace
	src        sourceState
	account    account
	prober     prober
	copyLimit  copyLimit
	self       profilerCost
	handler    handler
	traps      traps
	memory     *memory
	handover   handover
	latest     sampler.Stats // as of the last tick
}

func newSampling(cfg Config) *sampling {
	return (&sampling{
		cfg:      cfg,
		locate:   ahead.NewLocator(),
		rand:     rand.New(rand.NewPCG(cfg.Seed, 1)),
		handler:  handler{late: make(lateHolds)},
		handover: newHandover(),
		targets:  newTargets(),
		watches:  newWatches(),
		account:  account{losses: make(map[model.CountName]int64)},
	}).wire()
}

// choose says what is sampled and watched, once the kernel's programs are loaded.
func (s *sampling) choose() error {
	if err := s.src.choose(); err != nil {
		return err
	}
	s.prober.stampCosts(s.ticks.budget.tickNS)
	s.holds.chooseLines()
	err := s.watches.count()
	if err == nil && s.watches.groups() {
		err = s.kernel.SetUseCost(s.timing.calibration.Cost)
	}
	if err == nil && s.cfg.Heap {
		err = s.targets.loadHeap()
	}
	if err == nil {
		err = errors.Join(s.kernel.SetAccept(s.ticks.budget.accepted()), s.kernel.SetHoldLimit(holdLimit))
	}
	if err == nil && s.watches.halves {
		err = s.kernel.SetHalfLines()
	}
	if err == nil {
		err = s.src.askForHolds()
	}
	if err == nil && s.watches.groups() && s.cfg.PID != 0 {
		err = s.watches.expectMany(s.cfg.PID)
	}
	return err
}

// trace begins to trace, no thread yet, and starts the program that is to be sampled, if one is.
func (s *sampling) trace() (*traced, error) {
	tracer, err := ptrace.NewTracer(events{&s.targets, &s.handler}, s.cfg.Follow)
	if err != nil {
		return nil, err
	}
	onRequest, err := s.kernel.OnRequest(func() { tracer.Ask(s.traps.drain) }, tracer.AskAgain)
	if err != nil {
		tracer.Detach()
		return nil, err
	}
	fail := func(err error) (*traced, error) {
		tracer.Detach()
		onRequest()
		return nil, err
	}
	if err := s.cfg.interrupted(); err != nil {
		return fail(err)
	}
	s.tracing.begin(tracer, time.Now())
	s.self.begin(profilerTime())
	var launched *ptrace.Launched
	if s.cfg.PID == 0 {
		if launched, err = ptrace.Launch(s.cfg.Command); err != nil {
			return fail(err)
		}
		s.targets.launch(launched.PID)
	}
	s.memory = newMemory(s.cfg.PID != 0)
	return &traced{tracer: tracer, sampling: s, start: s.tracing.start, to: s.handover.to, back: s.handover.back,
		files: s.targets.processes.WaitForFiles, launched: launched, onRequest: onRequest}, nil
}

// seize has the threads traced that there are, and says how long that took. It is called on the tracing thread.
func (s *sampling) seize() (lasted time.Duration, err error) {
	seizing := time.Now()
	if err = s.targets.seize(); err == nil {
		err = s.account.err
	}
	lasted = time.Since(seizing)
	if err != nil {
		s.closeAll()
	}
	return lasted, err
}

// settle takes what is still to be had when no thread is traced any more, and hands all of it over.
func (s *sampling) settle(b *backlog) {
	s.targets.processes.SettleFiles()
	s.traps.drain()
	s.targets.findDataAgain()
	s.targets.processes.NameData()
	for _, p := range s.handover.end(s.progress) {
		b.tell(p)
	}
	rest := s.handover.takeWork()
	b.doRest(rest)
	s.neighbours.merges.Done(rest.holds)
}

// abandon gives back what was chosen, where nothing came of it.
func (s *sampling) abandon() error {
	s.targets.heap.Close()
	err := s.watches.registers.close()
	s.kernel.Close()
	return err
}

// release gives the kernel's programs back, and what reading ahead keeps.
func (s *sampling) release() unloaded {
	var u unloaded
	u.times, u.noTimes = s.kernel.ProgramTimes()
	u.err = s.kernel.Close()
	s.kernel, s.locate = nil, nil
	s.wire()
	return u
}

// keepTicking is called on the tracing thread.
func (s *sampling) keepTicking() {
	if err := s.tracing.tracer.Every(tickInterval, s.everyTick); err != nil {
		s.account.fail(err)
	}
}

// wire tells the owners of each other. It is called again when the kernel's programs are loaded.
func (s *sampling) wire() *sampling {
	s.tracing.account = &s.account
	t := &s.timing
	t.account, t.kept, t.targets, t.kernel = &s.account, &s.kept, &s.targets, s.kernel
	k := &s.ticks
	k.account, k.src, k.targets, k.tracing = &s.account, &s.src, &s.targets, &s.tracing
	k.cfg, k.kernel, k.rand = &s.cfg, s.kernel, s.rand
	s.kept.account = &s.account
	r := &s.src
	r.account, r.holds, r.kept, r.targets, r.ticks, r.timing, r.watches = &s.account, &s.holds, &s.kept, &s.targets, &s.ticks, &s.timing, &s.watches
	r.cfg, r.kernel = &s.cfg, s.kernel
	w := &s.watches
	w.account, w.timing, w.kept = &s.account, &s.timing, &s.kept
	w.cfg, w.kernel, w.locate = &s.cfg, s.kernel, s.locate
	w.drain, w.threadAt = s.traps.drain, s.targets.threadAt
	o := &w.groupWatches
	o.account, o.cfg, o.kernel, o.rand, o.timing, o.watches = &s.account, &s.cfg, s.kernel, s.rand, &s.timing, w
	h := &s.holds
	h.account, h.timing, h.kept, h.src, h.watches = &s.account, &s.timing, &s.kept, &s.src, w
	h.neighbours, h.prober, h.reports, h.stepper, h.ticks = &s.neighbours, &s.prober, &s.reports, &s.stepper, k
	n := &s.neighbours
	n.cfg, n.locate, n.watches = &s.cfg, s.locate, w
	e := &s.reports
	e.account, e.kept, e.src, e.ticks, e.watches = &s.account, &s.kept, r, k, w
	e.locate, e.rand, e.drain = s.locate, s.rand, s.traps.drain
	b := &s.stepper
	b.account, b.holds, b.watches = &s.account, h, w
	b.cfg, b.kernel, b.locate, b.rand = &s.cfg, s.kernel, s.locate, s.rand
	h.cfg, h.kernel, h.locate, h.rand, h.drain = &s.cfg, s.kernel, s.locate, s.rand, s.traps.drain
	p := &s.prober
	p.account, p.holds, p.src, p.ticks, p.timing, p.tracing = &s.account, h, &s.src, &s.ticks, &s.timing, &s.tracing
	p.cfg, p.kernel, p.locate, p.drain = &s.cfg, s.kernel, s.locate, s.traps.drain
	c := &s.copyLimit
	c.targets, c.ticks, c.tracing, c.watches, c.drain = &s.targets, &s.ticks, &s.tracing, w, s.traps.drain
	d := &s.handler
	d.account, d.copyLimit, d.holds, d.neighbours, d.prober, d.stepper = &s.account, c, h, n, p, b
	d.targets, d.ticks, d.timing, d.tracing, d.watches = &s.targets, k, t, &s.tracing, w
	d.locate, d.drain = s.locate, s.traps.drain
	a := &s.traps
	a.account, a.handler, a.reports, a.targets, a.ticks, a.watches, a.kernel = &s.account, d, e, &s.targets, k, w, s.kernel
	s.handover.account, s.handover.cfg, s.handover.holds, s.handover.kept, s.handover.neighbours = &s.account, &s.cfg, h, &s.kept, n
	g := &s.targets
	g.account, g.kept, g.prober, g.src, g.stepper = &s.account, &s.kept, p, r, b
	g.ticks, g.tracing, g.watches, g.late = k, &s.tracing, w, d.late
	g.cfg, g.kernel, g.locate, g.drain = &s.cfg, s.kernel, s.locate, s.traps.drain
	return s
}

// readsLosers says whether samples that are not watched are of use.
func (s *holds) readsLosers() bool {
	return s.burst > 0 && s.src.source.Reports() == sampler.NoAccess
}

// tick does what need not be done while a thread is held.
func (s *sampling) tick() {
	s.traps.drain()
	if s.watches.none == nil {
		s.timing.recalibrate(s.traps.deliver)
	}
	s.watches.clearEnded()
	if s.watches.groups() {
		s.watches.prune()
		s.watches.tendRegisters()
	}
	s.targets.findData()
	for _, p := range s.targets.processes.Alive {
		p.Refresh()
		p.ReadTime()
		p.ReadModes(sampler.Monotonic())
		s.targets.probeHeap(p)
		if s.watches.groups() {
			p.NoteCPU(sampler.Monotonic())
		}
	}
	s.targets.findDataAgain()
	s.memory.tick(s.targets.processes)
	stats, err := s.kernel.Stats()
	if err != nil {
		s.account.fail(err)
	}
	for _, t := range s.targets.threads {
		s.handler.expire(t)
	}
	sum := s.ticks.total(false)
	s.timing.watch(stats)
	s.src.watch(sum, stats)
	s.prober.drive(sum.CPU)
	busy, err := sampler.AllBusy(s.watches.cpus)
	if err != nil {
		s.account.fail(err)
	}
	s.timing.noteBusy(busy)
	s.self.look(profilerTime(), busy)
	s.copyLimit.settle()
	ran := max(sum.CPU, s.targets.processes.Ran())
	s.ticks.holdTogether(s.watches.several())
	accepted := s.ticks.aim(ran)
	s.copyLimit.takeTurns(ran)
	// Holds leave caches cold, waits and stamps don't.
	trapped := s.ticks.budget.trapped(sum.Traps+stats.OtherProcess, sum.Spent)
	if s.cfg.turns != nil {
		s.ticks.takeTurn(stats, trapped)
	} else {
		s.ticks.keep(sum, ran, accepted, stats, s.timing.held.sum-s.stepper.totals.cpu, trapped+s.timing.resumed()+s.prober.stampCost())
	}
	s.latest = stats
}

// closeAll stops sampling and ends all observations.
func (s *sampling) closeAll() {
	s.tracing.close()
	s.traps.drain()
	for _, p := range s.targets.processes.Alive {
		p.ReadTime()
		p.ReadModes(sampler.Monotonic())
	}
	s.copyLimit.settle()
	standing := make(map[threadOf]time.Duration)
	for _, t := range s.targets.threads {
		s.targets.dropThread(t)
		s.tracing.tracer.Beat()
		if s.timing.unread > 0 {
			standing[t.of()] = t.wentOn
		}
	}
	s.kept.loseTimes(standing) // not before: what still traps until its slot is retired counts, too
}
