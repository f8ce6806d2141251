package collector

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// What Config.Source and Config.Clock may say.
const (
	Auto    = "auto"     // the best that works; the profile says which and why
	PEBS    = "pebs"     // source: Intel's, with addresses
	IBS     = "ibs"      // source: AMD's, with addresses
	Clock   = "clock"    // source: CPU time
	PMU     = "pmu"      // source or clock: the processor's counters
	CPUTime = "cpu-time" // clock
)

// BadConfig is an error of what was asked for, whatever the machine.
type BadConfig struct{ error }

// CheckChoice says what is wrong with the choice of source, clock and what is
// watched, by a BadConfig, and fills in what it leaves open.
func (c *Config) CheckChoice() error {
	if err := c.checkChoice(); err != nil {
		return BadConfig{fmt.Errorf("start session: %w", err)}
	}
	return nil
}

func (c *Config) checkChoice() error {
	if c.Source == "" {
		c.Source = Auto
	}
	if c.Clock == "" {
		c.Clock = Auto
	}
	if c.Stack == "" {
		c.Stack = OwnStack
	}
	if c.Granularity == "" {
		c.Granularity = Auto
	}
	if c.BurstEngine == "" {
		c.BurstEngine = Interpret
	}
	if err := c.checkEngine(); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{OwnStack, PrivateStack, SharedStack, BothStacks}, c.Stack):
		return fmt.Errorf("unknown stack %q (want own, private, shared or both)", c.Stack)
	case !slices.Contains([]string{Auto, Word, Line}, c.Granularity):
		return fmt.Errorf("unknown granularity %q (want auto, word or line)", c.Granularity)
	case c.Granularity == Line && c.Slots < sampler.NumSlots:
		return fmt.Errorf("a sample of a line takes %d slots, there are %d (or choose granularity word)", sampler.NumSlots, c.Slots)
	case c.Granularity == Line && c.Burst == 0:
		return errors.New("without reading ahead a line can't be told from its half (choose granularity word)")
	case c.Granularity == Line && c.Stack != OwnStack:
		return errors.New("watching other threads takes the slots that a line would (choose granularity word)")
	case c.addresses() && c.Granularity == Line:
		return fmt.Errorf("with source %s a line can't be watched: that takes reading ahead of the use, which is over (choose granularity word, or source pmu)", c.Source)
	case c.addresses() && c.Stack != OwnStack:
		return fmt.Errorf("with source %s other threads can't be watched: their accesses come before the watchpoints (use --source pmu)", c.Source)
	case !slices.Contains([]string{Auto, PEBS, IBS, PMU, Clock}, c.Source):
		return fmt.Errorf("unknown source %q (want auto, pebs, ibs, pmu or clock)", c.Source)
	case c.Unwatched && c.watchpointsFor() != "":
		return fmt.Errorf("%s needs watchpoints (leave --unwatched out)", c.watchpointsFor())
	case c.Clock != Auto && c.Clock != CPUTime && c.Clock != PMU:
		return fmt.Errorf("unknown clock %q (want auto, cpu-time or pmu)", c.Clock)
	}
	return nil
}

// addresses says whether a source with addresses is asked for.
func (c *Config) addresses() bool { return c.Source == PEBS || c.Source == IBS }

// unitsPerNS turns the period, given as CPU time, into the source's unit. It need
// only be of the right order.
var unitsPerNS = map[string]float64{sampler.Nanoseconds: 1, sampler.Accesses: 1, sampler.Cycles: 2, sampler.Instructions: 2, sampler.Operations: 3}

// machine is where rdx looks for PMUs.
func machine() sampler.Machine {
	return sampler.Machine{Proc: os.DirFS("/proc"), Sys: os.DirFS("/sys")}
}

// generic events of any PMU.
func generic(label, unit string, config uint64) sampler.Counted {
	return sampler.Counted{Unit: unit, Events: []sampler.Event{{Label: label, Type: unix.PERF_TYPE_HARDWARE, Config: config}}}
}

// counters lists what may be counted, best first, and why the best is not
// there.
func counters(cycles bool) ([]sampler.Counted, error) {
	var out []sampler.Counted
	accesses, err := machine().AccessEvents()
	if err == nil {
		out = append(out, accesses)
	}
	// Where cores differ, a generic event counts on one type of them only.
	if !accesses.Hybrid {
		out = append(out, generic("instructions", sampler.Instructions, unix.PERF_COUNT_HW_INSTRUCTIONS))
		if cycles {
			out = append(out, generic("cycles", sampler.Cycles, unix.PERF_COUNT_HW_CPU_CYCLES))
		}
	}
	return out, err
}

// load loads the programs with the best clock that works, and leaves the
// calibration. It makes sure, before any target is touched, that watchpoints
// and clock work in a thread of the profiler itself.
func (s *sampling) load() error {
	if s.cfg.clock != nil {
		return s.loadClock(*s.cfg.clock)
	}
	var why error
	if s.cfg.Clock != CPUTime {
		var candidates []sampler.Counted
		candidates, why = counters(false)
		for _, c := range candidates {
			err := c.Validate()
			if err == nil {
				err = s.loadClock(sampler.CounterClock(c))
			}
			if err == nil {
				s.timing.notBest(why)
				return nil
			}
			why = errors.Join(why, err)
		}
		if s.cfg.Clock == PMU {
			return fmt.Errorf("start session: no counter can be the clock: %w (without --clock pmu, CPU time is)", oneLine(why))
		}
	}
	if err := s.loadClock(sampler.CPUTime()); err != nil {
		return err
	}
	s.timing.notBest(why)
	return nil
}

// notes say in the profile what was taken, and why nothing better.
func (s *sampling) notes() []string {
	var out []string
	for i, c := range []Choice{s.src.choice(), s.timing.choice()} {
		note := []string{"source: ", "clock: "}[i] + c.Name
		if c.Why != "" {
			note += ", because: " + c.Why
		}
		out = append(out, note)
	}
	if s.cfg.Interrupt && s.src.source.Reports() != sampler.NoAccess {
		out = append(out, model.InterruptIdle+": the accesses that the source reports are over when the interrupt comes")
	}
	switch {
	case s.watches.none != nil:
		out = append(out, model.NothingWatched+", because: "+s.watches.none.Error())
	case s.watches.halves:
		out = append(out, "lines: watched by halves, because: "+s.watches.points.WhyNot)
	case s.holds.lines:
		out = append(out, "lines: watched whole")
	}
	return out
}

// oneLine joins the lines of joined errors.
func oneLine(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out error
		for _, e := range joined.Unwrap() {
			if e = oneLine(e); out == nil {
				out = e
			} else {
				out = fmt.Errorf("%w; %w", out, e)
			}
		}
		return out
	}
	return err
}

// needs are the programs that the choice of a source may come to.
func (s *sourceState) needs() sampler.Needs {
	n := sampler.Needs{Others: s.watches.groups(), Stamps: s.cfg.MeasureRate && s.cfg.AccessRate == 0 && s.cfg.Clock != PMU, Steps: s.holds.steps()}
	if given, ok := s.cfg.source.(sampler.AccessSource); ok {
		n.Access = given.Events()
		return n
	}
	for _, name := range sampler.AccessSources {
		if s.mayReport(name) == nil {
			n.Access = max(n.Access, machine().ReportingEvents(name, s.cfg.Latency))
		}
	}
	return n
}

// mayReport says why a source with addresses does not come into question.
func (s *sourceState) mayReport(name string) error {
	switch {
	case s.watches.none != nil:
		return fmt.Errorf("%s needs watchpoints: %w", name, s.watches.none)
	case s.cfg.Source != Auto && s.cfg.Source != name:
		return fmt.Errorf("%s is not asked for", name)
	case s.watches.groups():
		return fmt.Errorf("with %s other threads can't be watched", name)
	case s.cfg.Granularity == Line:
		return fmt.Errorf("with %s lines can't be watched", name)
	case s.holds.steps():
		return fmt.Errorf("with %s nothing can be stepped: the access is over", name)
	}
	return nil
}

// loadClock loads the programs with a clock.
func (s *sampling) loadClock(clock sampler.Clock) error {
	var err error
	if s.kernel, err = sampler.LoadClock(s.cfg.Slots, clock, s.src.needs()); err != nil {
		return err
	}
	s.wire()
	if err = s.watches.try(); err != nil {
		s.kernel.Close()
		return fmt.Errorf("start session: %w", err)
	}
	tickCost, err := s.kernel.TickCost()
	if err != nil {
		s.cfg.Log.Warn("the cost of a tick is assumed", zap.Error(err))
	}
	perByte, err := s.cfg.copyCost()
	if err != nil {
		s.cfg.Log.Warn("whether watched words slow copying is not known, nor in the account", zap.Error(err))
	}
	s.watches.copyCost.slows(perByte, err)
	if s.cfg.MeasureRate && clock.Counted == nil {
		stampCost, err := s.kernel.StampCost()
		if err != nil {
			s.cfg.Log.Warn("the cost of a stamp is taken to be a tick's", zap.Error(err))
		}
		s.prober.stampCosts(stampCost)
	}
	s.timing.use(clock, tickCost)
	s.holds.reach(clock)
	return nil
}

// reach sets how far is read ahead beside a clock.
func (s *holds) reach(clock sampler.Clock) {
	if ahead.CanForetell && clock.Counted == nil && s.cfg.AccessRate == 0 {
		s.pipeline = pipeline.New(s.cfg.pipelineCosts())
	}
	s.burst = s.cfg.Burst
	if s.burst == AutoBurst {
		switch {
		case s.watches.none != nil:
			s.burst = timedBurst
		case s.steps():
			s.burst = steppedBurst
		case clock.Counted != nil:
			s.burst = countedBurst
		case s.cfg.Stack != OwnStack:
			s.burst = sharedBurst
		default:
			s.burst = timedBurst
		}
	}
	s.heads = s.pipeline != nil && s.cfg.Stack == OwnStack
}

// try finds out what watchpoints do here, and what they cost. Where there are none, reading ahead goes on without, if
// nothing else is asked for.
func (s *watches) try() (err error) {
	if s.cfg.Unwatched {
		s.none = errors.New("it was asked for (--unwatched)")
		return nil
	}
	s.points, err = s.kernel.ProbeWatchpoints()
	if errors.Is(err, sampler.ErrNoWatchpoints) {
		if needs := s.cfg.watchpointsFor(); needs != "" {
			return fmt.Errorf("%s needs watchpoints: %w", needs, err)
		}
		s.none = errors.New("watchpoints do not fire on this machine, as its hypervisor or emulator has none")
		return nil
	}
	if err == nil {
		err = s.points.Usable()
	}
	if err == nil {
		err = s.timing.calibrate()
	}
	s.moves = s.points.Moves && !s.groups() && s.cfg.BurstEngine != Step
	return err
}

// watchpointsFor is what is asked for that can't be had by reading ahead alone, "" if it all can.
func (c *Config) watchpointsFor() string {
	switch {
	case c.Stack != OwnStack:
		return "--stack " + c.Stack
	case c.BurstEngine == Step:
		return "--burst-engine " + Step
	case c.Burst == 0:
		return "--burst off"
	case c.addresses():
		return "--source " + c.Source
	}
	return ""
}

// choose takes the best source that works.
func (s *sourceState) choose() error {
	if s.cfg.source != nil {
		s.set(s.cfg.source)
		return nil
	}
	var why error
	for _, try := range []struct {
		names []string
		open  func() (sampler.Source, error)
	}{
		{[]string{Auto, PEBS}, func() (sampler.Source, error) { return s.accessSource(PEBS) }},
		{[]string{Auto, IBS}, func() (sampler.Source, error) { return s.accessSource(IBS) }},
		{[]string{Auto, PMU}, s.counterSource},
		{[]string{Auto, Clock}, func() (sampler.Source, error) { return sampler.CPUClock{}, nil }},
	} {
		if !slices.Contains(try.names, s.cfg.Source) {
			continue
		}
		if name := try.names[1]; name == PEBS || name == IBS {
			if err := s.mayReport(name); err != nil {
				why = errors.Join(why, err)
				continue
			}
		}
		source, err := try.open()
		if err == nil {
			s.whySource = errors.Join(why, s.whySource)
			s.set(source)
			return nil
		}
		why = errors.Join(why, err)
	}
	return fmt.Errorf("start session: %s can't be the source: %w (without --source, rdx takes the best that works)", s.cfg.Source, oneLine(why))
}

// set makes it the session's, with the ticks that it can afford.
func (s *sourceState) set(source sampler.Source) {
	s.source = source
	s.ticks.begin(source, s.timing, s.holds.steps())
}

// accessSource is PEBS or IBS, tried out.
func (s *sourceState) accessSource(name string) (sampler.Source, error) {
	source, err := sampler.NewAccessSource(machine(), name, s.cfg.Latency)
	if err != nil {
		return nil, err
	}
	probe, err := source.Probe(s.kernel)
	if err == nil {
		err = probe.Usable(name)
	}
	return source, err
}

// counterSource is the best of the processor's counters that works.
func (s *sourceState) counterSource() (sampler.Source, error) {
	candidates, why := counters(true)
	for _, c := range candidates {
		if c.Unit != sampler.Accesses && s.cfg.Source == Auto {
			// Ticks of another counter are no more accesses than those of the
			// clock are.
			continue
		}
		pmu := sampler.NewPMUSource(c)
		err := pmu.Validate(s.kernel)
		if err == nil {
			s.whySource = why // why it is not the best counter
			return pmu, nil
		}
		why = errors.Join(why, err)
	}
	return nil, why
}
