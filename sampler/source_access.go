package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations is the unit of IBS: micro-operations, of which the accesses are
// a part.
const Operations = "operations"

// AccessSource samples accesses that the processor itself picks and reports
// with their address: Intel's PEBS and AMD's IBS. The thread is held as soon as
// the report is made, some instructions after the access; a reuse within these
// is missed.
type AccessSource struct {
	name      string
	unit      string
	groups    int    // events that count at a time: those of one type of core
	minPeriod uint64 // keeps a program's every sample affordable
	events    []Precise
	counts    *Counted // nil: the machine has no counter of accesses
	open      opener
}

// NewAccessSource returns the source named name, "pebs" or "ibs", of machine
// m. With latency, loads are picked by the load-latency facility where no other
// event reports latencies; it prefers slow ones.
func NewAccessSource(m Machine, name string, latency bool) (AccessSource, error) {
	var s AccessSource
	var events []Precise
	var err error
	switch name {
	case "ibs":
		events, err = m.ibsEvents()
		s = AccessSourceOf(name, Operations, 1, minPMUPeriod, events)
	case "pebs":
		if events, err = m.pebsEvents(latency); err != nil {
			err = fmt.Errorf("no PEBS: %w", err)
		}
		s = AccessSourceOf(name, Accesses, 2, minPMUPeriod, events)
	default:
		return s, fmt.Errorf("no source %q", name)
	}
	if accesses, none := m.AccessEvents(); none == nil {
		s.counts = &accesses
	}
	return s, err
}

// ReportingEvents is how many events the source would have, 0 if the machine
// does not name it. Whether it works is only known from a Probe.
func (m Machine) ReportingEvents(name string, latency bool) int {
	s, _ := NewAccessSource(m, name, latency)
	return len(s.events)
}

// AccessSourceOf is a source of other events that report addresses, of which
// groups count at a time, in the given unit.
func AccessSourceOf(name, unit string, groups int, minPeriod uint64, events []Precise) AccessSource {
	return AccessSource{name, unit, groups, minPeriod, events, nil, perfOpen}
}

// Events is how many the source has, each with a program of its own.
func (s AccessSource) Events() int { return len(s.events) }

func (s AccessSource) Name() string { return s.name }
func (s AccessSource) Unit() string { return s.unit }

// Counts accesses, where the machine does.
func (s AccessSource) Counts() *Counted { return s.counts }

// Reports is AfterAccess if any of the events points behind its instruction.
func (s AccessSource) Reports() Report {
	for _, e := range s.events {
		if e.After {
			return AfterAccess
		}
	}
	return AtAccess
}

func (s AccessSource) Open(k *Kernel, tid int, period uint64) (*Ticker, error) {
	t := &Ticker{groups: s.groups, rings: &k.rings}
	for i, e := range s.events {
		program, err := k.obj.program(accessProgram(i))
		if err == nil {
			err = s.openOne(t, e, tid, program.FD(), period)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sample thread %d by %s: %w", tid, e.Label, err), t.Close())
		}
	}
	return t, nil
}

func (s AccessSource) openOne(t *Ticker, e Precise, tid, program int, period uint64) error {
	leader := -1
	if e.Aux != nil {
		fd, err := s.open(e.Aux, tid, -1)
		if err != nil {
			return fmt.Errorf("the auxiliary event: %w", err)
		}
		t.aux = append(t.aux, &event{fd: fd})
		leader = fd
	}
	attr := e.Attr
	err := t.add(s.open, event{align: e.Align, min: s.minPeriod}, &attr, period, tid, program, leader)
	switch {
	case errors.Is(err, unix.EINVAL) && s.name == "ibs":
		err = fmt.Errorf("%w (IBS samples single threads from Linux 6.2 on)", err)
	case errors.Is(err, unix.ENODATA):
		err = fmt.Errorf("%w (the load-latency event needs its auxiliary event)", err)
	}
	if err == nil && leader >= 0 {
		// A group counts as soon as its leader does.
		err = t.aux[len(t.aux)-1].ioctl(unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	return err
}

// AccessProbe is what a source with addresses said of a known loop.
type AccessProbe struct {
	Ticks     uint64 // all
	Memory    int    // with an address
	Right     int    // whose address is one of the loop's
	Loads     int    // of these
	Stores    int
	Latencies int // with a latency
	Sources   int // that say where the data came from
}

// Usable says what is wrong with the source, if anything.
func (p AccessProbe) Usable(name string) error {
	switch {
	case p.Ticks == 0:
		return fmt.Errorf("%s reports nothing (the hypervisor does not deliver its interrupts)", name)
	case p.Memory == 0:
		return fmt.Errorf("none of %d samples of %s has an address (a virtual PMU without them: use bare metal, or --source pmu)", p.Ticks, name)
	case float64(p.Right) < rightShare*float64(p.Memory):
		return fmt.Errorf("%d of %d addresses that %s reports are wrong (a virtual PMU? use --source pmu)", p.Memory-p.Right, p.Memory, name)
	case p.Loads == 0 || p.Stores == 0:
		return fmt.Errorf("%s reports %d loads and %d stores of a loop with as many of each (use --source pmu)", name, p.Loads, p.Stores)
	}
	return nil
}

// rightShare of the addresses must be the loop's: rdx's own thread does little
// else meanwhile.
const rightShare = 0.9

// Probe samples a loop of known accesses in a thread of rdx itself.
func (s AccessSource) Probe(k *Kernel) (AccessProbe, error) {
	from, to := make([]uint64, countBlock), make([]uint64, countBlock)
	return s.probe(k, from, to)
}

func (s AccessSource) probe(k *Kernel, from, to []uint64) (p AccessProbe, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		if err != nil {
			err = fmt.Errorf("sample a known loop: %w", err)
		}
	}()
	index, t, err := k.AddThread(unix.Gettid())
	if err != nil {
		return p, err
	}
	defer k.RemoveThread(index)
	// A hold would be of this very thread.
	if err := k.obj.ReportOnly.Set(uint32(1)); err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, k.obj.ReportOnly.Set(uint32(0)), k.forget()) }()
	ticker, err := s.Open(k, int(t.Tid), s.minPeriod)
	if err != nil {
		return p, err
	}
	for range validationRounds {
		countedLoop(from, to, countLoops)
	}
	if err := ticker.Close(); err != nil {
		return p, err
	}
	p.Ticks = t.Ticks
	var sample Trap
	for {
		ok, err := k.ReadTrap(&sample)
		if err != nil || !ok {
			return p, err
		}
		if sample.Kind != TrapSample || sample.Index != index {
			continue
		}
		p.Memory++
		load, store := within(sample.Addr, from), within(sample.Addr, to)
		if load {
			p.Loads++
		}
		if store {
			p.Stores++
		}
		if load || store {
			p.Right++
		}
		if sample.Latency > 0 {
			p.Latencies++
		}
		if sample.DataSrc > 0 {
			p.Sources++
		}
	}
}

// within says whether addr is one of the words'.
func within(addr uint64, words []uint64) bool {
	return addr-uint64(uintptr(unsafe.Pointer(&words[0]))) < uint64(8*len(words))
}
