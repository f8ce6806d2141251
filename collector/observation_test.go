package collector

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// newPairing is a session with one thread and an armed observation in slot 0,
// as after Hold; traps are fed by hand.
func newPairing() (*Session, *observation) {
	s := &Session{
		byIndex:     make(map[uint32]*thread),
		stacks:      newStackTable(),
		losses:      make(map[string]int64),
		locate:      ahead.NewLocator(),
		clock:       sampler.CPUTime(),
		calibration: sampler.TwoTrap{P10: 2900, P50: 3000, P90: 3100},
	}
	t := &thread{tid: 7, process: &process{pid: 1 << 30}, shared: new(sampler.Thread)}
	o := &observation{process: t.process, tid: 7, pc: 0x1000, next: 0x1004, instead: 5}
	t.enterEpoch(o)
	t.slots[0] = watch{seq: 1, obs: o}
	s.byIndex[3] = t
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
	s.pair(trapAt(use, 1000, 10, 0x1004))
	s.pair(trapAt(reuse, 24_000, 11, 0x1004))
	if o.state != done || o.kind != model.Reuse || s.pairs != 1 {
		t.Fatalf("%+v", o)
	}
	// One trap of another slot came in between, and cost as much as a pair.
	if o.native != 23_000-3000 || o.below {
		// between counts the reuse's own trap: 11-10 = 1 constant
		t.Errorf("reuse after %v ns", o.native)
	}
}

// What was read ahead without a reuse goes into the record of a reuse that was timed, and of no
// other: it would only split records that are alike.
func TestRecordsHaveWhatWasReadAhead(t *testing.T) {
	s, o := newPairing()
	s.rates.fixed = 1
	o.after, o.distinct = 254, 40
	s.pair(trapAt(use, 1000, 10, 0x1004))
	s.pair(trapAt(reuse, 24_000, 11, 0x1004))
	var r model.Record
	if s.setTime(&r, o, perWall{}); r.After != 254 || r.Distinct != 40 || r.Exact || r.Time != 20_000 {
		t.Errorf("%+v", r)
	}
	o.kind = model.Censored
	r = model.Record{}
	if s.setTime(&r, o, perWall{}); r.After != 0 || r.Distinct != 0 {
		t.Errorf("cut off: %+v", r)
	}
}

// Reuse times are in touches of blocks, and an access to several blocks weighs as many: as an
// exact trace is analysed.
func TestTouches(t *testing.T) {
	s, o := newPairing()
	s.rates.fixed = 2
	s.readAhead, s.touched = 100, 130
	s.pair(trapAt(use, 1000, 10, 0x1004))
	s.pair(trapAt(reuse, 24_000, 11, 0x1004))
	var r model.Record
	if s.setTime(&r, o, perWall{}); r.Time != 52_000 || r.Native != 20_000 {
		t.Errorf("20 us at 2 accesses of 1.3 words each a nanosecond: %+v", r)
	}
	r = model.Record{}
	if s.setTime(&r, &observation{kind: model.Reuse, counted: 26}, perWall{}); r.Time != 26 || r.Native != 10 {
		t.Errorf("26 touches read ahead: %+v", r)
	}
	wide := &observation{instead: 2, blocks: (ahead.Located{Addr: 0x1004, Size: 32}).Blocks(8)}
	if wide.touches() != 10 {
		t.Errorf("an access to 5 words that stands for 2 counts as %v touches", wide.touches())
	}
	if n := (ahead.Located{Addr: 0x103f, Size: 2}).Blocks(64); n != 2 {
		t.Errorf("an access across lines overlaps %d", n)
	}
	if c := s.clockModel(); c.Rate != 2 || c.Touches != 1.3 || c.TouchRate() != 2.6 {
		t.Errorf("%+v", c)
	}
}

func TestPairBelowResolution(t *testing.T) {
	s, o := newPairing()
	s.pair(trapAt(use, 1000, 10, 0x1004))
	s.pair(trapAt(reuse, 4050, 11, 0x1004))
	if !o.below || o.native != 200 {
		t.Errorf("reuse after %v ns, below resolution %v; want the resolution, 200", o.native, o.below)
	}
}

func TestPairOtherTrapsBetween(t *testing.T) {
	s, o := newPairing()
	s.pair(trapAt(use, 1000, 10, 0x1004))
	s.pair(trapAt(reuse, 101_000, 14, 0x1004))
	if o.native != 100_000-4*3000 {
		t.Errorf("reuse after %v ns with three other traps between", o.native)
	}
}

func TestPairLosses(t *testing.T) {
	for name, f := range map[string]func(*Session){
		"use by another instruction": func(s *Session) { s.pair(trapAt(use, 1, 1, 0x2000)) },
		"record of the use dropped":  func(s *Session) { s.pair(trapAt(reuse, 1, 1, 0x1004)) },
		"clock ran backwards between use and reuse": func(s *Session) {
			s.pair(trapAt(use, 1000, 1, 0x1004))
			s.pair(trapAt(reuse, 999, 2, 0x1004))
		},
		"clock stood still between use and reuse": func(s *Session) {
			s.pair(trapAt(use, 1000, 1, 0x1004))
			after := trapAt(reuse, 2000, 2, 0x1004)
			after.ClockLag = 1
			s.pair(after)
		},
		"trap of a watchpoint that is gone": func(s *Session) {
			trap := trapAt(use, 1, 1, 0x1004)
			trap.Seq = 9
			s.pair(trap)
		},
		"trap of a thread that is gone": func(s *Session) {
			trap := trapAt(use, 1, 1, 0x1004)
			trap.Index = 4
			s.pair(trap)
		},
	} {
		s, o := newPairing()
		f(s)
		// An observation that is lost is lost with all that it stands for, and once.
		want := int64(1)
		if o.state == void {
			want = 5
			s.loseObserved(o, name)
		}
		if s.losses["lost: "+name] != want || o.state == done {
			t.Errorf("%s: losses %v, state %v", name, s.losses, o.state)
		}
		if o.state == void && o.epoch.accepted != 0 {
			t.Errorf("%s: the lost observation still has a weight", name)
		}
	}
}

// CPU time in which nothing could hold the thread is of no observation.
func TestUnheld(t *testing.T) {
	th := &thread{shared: new(sampler.Thread)}
	th.shared.Sampled, th.shared.Ticks, th.shared.Unheld = 30, 3, 2
	th.account()
	if th.cpu != 30 || th.unheld != 20 || th.epoch.cpu != 10 {
		t.Errorf("cpu %d, unheld %d, epoch %d, want 30, 20, 10", th.cpu, th.unheld, th.epoch.cpu)
	}
	// A tick that came between the readings is of the next call.
	th.shared.Unheld++
	th.account()
	th.shared.Sampled, th.shared.Ticks = 40, 4
	th.account()
	if th.cpu != 40 || th.unheld != 30 || th.epoch.cpu != 10 {
		t.Errorf("then cpu %d, unheld %d, epoch %d, want 40, 30, 10", th.cpu, th.unheld, th.epoch.cpu)
	}
	s := &Session{gone: totals{cpu: 400, ticked: 40, unheld: 30}}
	if got := s.gone.unheldTime(); got != 300 {
		t.Errorf("unheld %d ns, want 300", got)
	}
	// All of it is not all but a nanosecond.
	for cpu := uint64(1_000_000_007); cpu < 4_000_000_000; cpu += 30_000_001 {
		sum := totals{cpu: cpu, ticked: float64(cpu) / 3, unheld: float64(cpu) / 3}
		if got := sum.unheldTime(); got != cpu {
			t.Errorf("unheld %d ns of %d in which nothing could be held", got, cpu)
		}
	}
}

// A lost observation's CPU time goes to the others of its epoch.
func TestEpochWeights(t *testing.T) {
	th := &thread{shared: new(sampler.Thread)}
	var all []*observation
	for i := range epochHolds + 1 {
		th.shared.Sampled += 20_000_000
		th.account()
		th.turnEpoch(nil)
		o := &observation{instead: float64(i % 3)}
		th.enterEpoch(o)
		all = append(all, o)
	}
	s := &Session{losses: make(map[string]int64)}
	s.loseObserved(all[2], "")
	s.loseObserved(all[2], "") // twice is once
	if n := s.losses["lost: "]; n != 2 {
		t.Errorf("%d lost, want the 2 that it stands for", n)
	}
	all = slices.Delete(all, 2, 3)
	var sum float64
	for _, o := range all {
		sum += o.epoch.perObservation() * o.times()
	}
	if want := float64(th.cpu); sum < 0.999*want || sum > 1.001*want {
		t.Errorf("observations stand for %v ns of %v", sum, want)
	}
}

// What a source reports of the access comes along.
func TestReportedLatency(t *testing.T) {
	s, _ := newPairing()
	s.rand = rand.New(rand.NewPCG(1, 1))
	s.source = sampler.AccessSourceOf("given", sampler.Accesses, 1, 1, nil)
	// PERF_MEM_OP_LOAD, and PERF_MEM_LVLNUM_L2 at its place in perf_mem_data_src.
	const loadFromL2 = 2 | 2<<33
	sample := trapOf(sampler.TrapSample)
	sample.Addr, sample.Latency, sample.DataSrc = 0x5008, 14, loadFromL2
	s.pair(trapAt(sample, 1000, 10, 0x1000))
	r := s.byIndex[3].reported
	if r == nil || r.obs.latency != 14 || r.obs.source != "L2" || r.obs.op != model.Load || r.word != 0x5008 {
		t.Errorf("%+v", r)
	}
}
