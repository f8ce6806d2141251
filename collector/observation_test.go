package collector

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/collector/estimate"
	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// newPairing is a session with one thread and an armed observation in slot 0,
// as after Hold; traps are fed by hand.
func newPairing() (*sampling, *observation) {
	s := (&sampling{locate: ahead.NewLocator(), targets: targets{byIndex: make(map[uint32]*thread)}, account: account{losses: make(map[model.CountName]int64)}, timing: timing{clock: sampler.CPUTime(), calibration: sampler.TwoTrap{P10: 2900, P50: 3000, P90: 3100}}}).wire()
	t := &thread{tid: 7, process: target.NewSet().Add(1 << 30), shared: new(sampler.Thread)}
	o := &observation{Observation: record.Observation{Process: t.process, TID: 7, PC: 0x1000, Stands: 5}, next: 0x1004}
	t.enterEpoch(&o.Observation)
	t.slots[0] = watch{seq: 1, obs: o}
	s.targets.byIndex[3] = t
	return s, o
}

func trapOf(kind sampler.TrapKind) (t sampler.Trap) {
	t.Kind = kind
	return t
}

func trapAt(kind sampler.Trap, clock uint64, traps uint32, ip uint64) *sampler.Trap {
	kind.Index, kind.Tid, kind.Seq = 3, 7, 1
	kind.Clock, kind.Traps, kind.Ip = clock, traps, ip
	return &kind
}

var (
	use   = trapOf(sampler.TrapUse)
	reuse = trapOf(sampler.TrapReuse)
)

func TestPair(t *testing.T) {
	s, o := newPairing()
	s.traps.deliver(trapAt(use, 1000, 10, 0x1004))
	s.traps.deliver(trapAt(reuse, 24_000, 11, 0x1004))
	if o.State != record.Done || o.Kind != model.Reuse || s.kept.pairs != 1 {
		t.Fatalf("%+v", o)
	}
	// One trap of another slot came in between, and cost as much as a pair.
	if o.Native != 23_000-3000 || o.BelowResolution {
		// between counts the reuse's own trap: 11-10 = 1 constant
		t.Errorf("reuse after %v ns", o.Native)
	}
}

// What was read ahead without a reuse goes into the record of a reuse that was timed, and of a use that was cut off: its
// distance is no less.
func TestRecordsHaveWhatWasReadAhead(t *testing.T) {
	s, o := newPairing()
	e := estimate.NewStage(estimate.Input{Clock: s.timing.clock, Calibration: s.timing.calibration})
	e.Rates.Fixed = 1
	o.After, o.Distinct = 254, 40
	s.traps.deliver(trapAt(use, 1000, 10, 0x1004))
	s.traps.deliver(trapAt(reuse, 24_000, 11, 0x1004))
	var r model.Record
	if e.SetTime(&r, &o.Observation, estimate.PerWall{}); r.After != 254 || r.Distinct != 40 || r.Exact || r.Time != 20_000 {
		t.Errorf("%+v", r)
	}
	o.Kind = model.Censored
	r = model.Record{}
	if e.SetTime(&r, &o.Observation, estimate.PerWall{}); r.After != 254 || r.Distinct != 40 || r.Exact {
		t.Errorf("cut off: %+v", r)
	}
	o.NoSlot, o.Counted = true, 255
	r = model.Record{}
	if e.SetTime(&r, &o.Observation, estimate.PerWall{}); r.Distinct != 40 || !r.Exact || r.Time != 255 {
		t.Errorf("not watched: %+v", r)
	}
}

// Reuse times are in touches of blocks, and an access to several blocks weighs as many: as an
// exact trace is analysed.
func TestTouches(t *testing.T) {
	s, o := newPairing()
	e := estimate.NewStage(estimate.Input{Clock: s.timing.clock, Calibration: s.timing.calibration, Holds: []record.Hold{{Accesses: 100, Touches: 130}}})
	e.Rates.Fixed = 2
	s.traps.deliver(trapAt(use, 1000, 10, 0x1004))
	s.traps.deliver(trapAt(reuse, 24_000, 11, 0x1004))
	var r model.Record
	if e.SetTime(&r, &o.Observation, estimate.PerWall{}); r.Time != 52_000 || r.Native != 20_000 {
		t.Errorf("20 us at 2 accesses of 1.3 words each a nanosecond: %+v", r)
	}
	r = model.Record{}
	if e.SetTime(&r, &record.Observation{Kind: model.Reuse, Counted: 26}, estimate.PerWall{}); r.Time != 26 || r.Native != 10 {
		t.Errorf("26 touches read ahead: %+v", r)
	}
	wide := &record.Observation{Stands: 2, Overlap: 5}
	if wide.Touches() != 10 {
		t.Errorf("an access to 5 words that stands for 2 counts as %v touches", wide.Touches())
	}
	if n := (ahead.Located{Addr: 0x103f, Size: 2}).Blocks(64); n != 2 {
		t.Errorf("an access across lines overlaps %d", n)
	}
	if c := e.ClockModel(); c.Rate != 2 || c.Touches != 1.3 || c.TouchRate() != 2.6 {
		t.Errorf("%+v", c)
	}
}

func TestPairBelowResolution(t *testing.T) {
	s, o := newPairing()
	s.traps.deliver(trapAt(use, 1000, 10, 0x1004))
	s.traps.deliver(trapAt(reuse, 4050, 11, 0x1004))
	if !o.BelowResolution || o.Native != 200 {
		t.Errorf("reuse after %v ns, below resolution %v; want the resolution, 200", o.Native, o.BelowResolution)
	}
}

func TestPairOtherTrapsBetween(t *testing.T) {
	s, o := newPairing()
	s.traps.deliver(trapAt(use, 1000, 10, 0x1004))
	s.traps.deliver(trapAt(reuse, 101_000, 14, 0x1004))
	if o.Native != 100_000-4*3000 {
		t.Errorf("reuse after %v ns with three other traps between", o.Native)
	}
}

func TestPairLosses(t *testing.T) {
	for name, f := range map[model.Reason]func(*sampling){
		model.UseElsewhere: func(s *sampling) { s.traps.deliver(trapAt(use, 1, 1, 0x2000)) },
		model.UseDropped:   func(s *sampling) { s.traps.deliver(trapAt(reuse, 1, 1, 0x1004)) },
		model.ClockBackwards: func(s *sampling) {
			s.traps.deliver(trapAt(use, 1000, 1, 0x1004))
			s.traps.deliver(trapAt(reuse, 999, 2, 0x1004))
		},
		model.ClockStood: func(s *sampling) {
			s.traps.deliver(trapAt(use, 1000, 1, 0x1004))
			after := trapAt(reuse, 2000, 2, 0x1004)
			after.ClockLag = 1
			s.traps.deliver(after)
		},
		model.TrapOfGoneWatch: func(s *sampling) {
			trap := trapAt(use, 1, 1, 0x1004)
			trap.Seq = 9
			s.traps.deliver(trap)
		},
		model.TrapOfGoneThread: func(s *sampling) {
			trap := trapAt(use, 1, 1, 0x1004)
			trap.Index = 4
			s.traps.deliver(trap)
		},
	} {
		s, o := newPairing()
		f(s)
		// An observation that is lost is lost with all that it stands for, and once.
		want := int64(1)
		if o.State == record.Void {
			want = 5
			s.account.loseObserved(&o.Observation, name)
		}
		if s.account.losses[model.LostBecause.Of(name)] != want || o.State == record.Done {
			t.Errorf("%s: losses %v, state %v", name, s.account.losses, o.State)
		}
		if o.State == record.Void && o.Epoch.Accepted != 0 {
			t.Errorf("%s: the lost observation still has a weight", name)
		}
	}
}

// CPU time in which nothing could hold the thread is of no observed.
func TestUnheld(t *testing.T) {
	th := &thread{shared: new(sampler.Thread)}
	th.shared.Sampled, th.shared.Ticks, th.shared.Unheld = 30, 3, 2
	th.account()
	if th.cpu != 30 || th.unheld != 20 || th.epoch.CPU != 10 {
		t.Errorf("cpu %d, unheld %d, epoch %d, want 30, 20, 10", th.cpu, th.unheld, th.epoch.CPU)
	}
	// A tick that came between the readings is of the next call.
	th.shared.Unheld++
	th.account()
	th.shared.Sampled, th.shared.Ticks = 40, 4
	th.account()
	if th.cpu != 40 || th.unheld != 30 || th.epoch.CPU != 10 {
		t.Errorf("then cpu %d, unheld %d, epoch %d, want 40, 30, 10", th.cpu, th.unheld, th.epoch.CPU)
	}
	s := (&sampling{ticks: tickPace{gone: estimate.Totals{CPU: 400, Ticked: 40, Unheld: 30}}}).wire()
	if got := s.ticks.gone.UnheldTime(); got != 300 {
		t.Errorf("unheld %d ns, want 300", got)
	}
	// All of it is not all but a nanosecond.
	for cpu := uint64(1_000_000_007); cpu < 4_000_000_000; cpu += 30_000_001 {
		sum := estimate.Totals{CPU: cpu, Ticked: float64(cpu) / 3, Unheld: float64(cpu) / 3}
		if got := sum.UnheldTime(); got != cpu {
			t.Errorf("unheld %d ns of %d in which nothing could be held", got, cpu)
		}
	}
}

// A lost observation's CPU time goes to the others of its epoch.
func TestEpochWeights(t *testing.T) {
	th := &thread{shared: new(sampler.Thread)}
	var all []*record.Observation
	for i := range record.EpochHolds + 1 {
		th.shared.Sampled += 20_000_000
		th.account()
		th.turnEpoch(nil)
		o := &record.Observation{Stands: float64(i % 3)}
		th.enterEpoch(o)
		all = append(all, o)
	}
	s := (&sampling{account: account{losses: make(map[model.CountName]int64)}}).wire()
	s.account.loseObserved(all[2], "")
	s.account.loseObserved(all[2], "") // twice is once
	if n := s.account.losses[model.LostBecause.Of("")]; n != 2 {
		t.Errorf("%d lost, want the 2 that it stands for", n)
	}
	all = slices.Delete(all, 2, 3)
	var sum float64
	for _, o := range all {
		sum += o.Epoch.PerObservation() * o.Times()
	}
	if want := float64(th.cpu); sum < 0.999*want || sum > 1.001*want {
		t.Errorf("observations stand for %v ns of %v", sum, want)
	}
}

// What a source reports of the access comes along.
func TestReportedLatency(t *testing.T) {
	s, _ := newPairing()
	s.rand = rand.New(rand.NewPCG(1, 1))
	s.wire()
	s.src.source = sampler.AccessSourceOf("given", sampler.Accesses, 1, 1, nil)
	// PERF_MEM_OP_LOAD, and PERF_MEM_LVLNUM_L2 at its place in perf_mem_data_src.
	const loadFromL2 = 2 | 2<<33
	sample := trapOf(sampler.TrapSample)
	sample.Addr, sample.Latency, sample.DataSrc = 0x5008, 14, loadFromL2
	s.traps.deliver(trapAt(sample, 1000, 10, 0x1000))
	r := s.targets.byIndex[3].reported
	if r == nil || r.obs.Latency != 14 || r.obs.Source != "L2" || r.obs.Op != model.Load || r.word != 0x5008 {
		t.Errorf("%+v", r)
	}
}

// What the programs of traps in between took is no part of the time.
func TestTrapsBetweenSpend(t *testing.T) {
	s, o := newPairing()
	first := trapAt(use, 1000, 10, 0x1004)
	first.Spent = 700
	s.traps.deliver(first)
	last := trapAt(reuse, 101_000, 12, 0x1004)
	last.Spent = 30_700
	s.traps.deliver(last)
	if o.Native != 100_000-2*3000-30_000 {
		t.Errorf("reuse after %v ns", o.Native)
	}
}

// What its thread or memory outlived is known to have no reuse; of half a line, and of
// what has ended, nothing changes.
func TestOutlived(t *testing.T) {
	for _, c := range []struct {
		o    record.Observation
		want model.Kind
	}{
		{record.Observation{State: record.Done, Kind: model.Censored}, model.Cold},
		{record.Observation{State: record.Done, Kind: model.Censored, Half: true}, model.Censored},
		{record.Observation{State: record.Done, Kind: model.Reuse}, model.Reuse},
		{record.Observation{State: record.Done, Kind: model.Pruned}, model.Pruned},
		{record.Observation{State: record.Void, Kind: model.Censored}, model.Censored},
	} {
		s := (&sampling{}).wire()
		if s.account.outlived(&c.o); c.o.Kind != c.want || (s.account.outlivedN == 1) != (c.want == model.Cold) {
			t.Errorf("%v, %d counted; want %v", c.o.Kind, s.account.outlivedN, c.want)
		}
	}
}
