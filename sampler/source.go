package sampler

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A Source interrupts a thread at a random access of its own code: it opens
// the perf events of a thread, which run on_sample or on_access.
type Source interface {
	// Name as in the profile: "cpu-clock".
	Name() string
	// Open starts sampling thread tid. period is the mean distance between two
	// ticks in Unit; the events' phases are the caller's to spread.
	Open(k *Kernel, tid int, period uint64) (*Ticker, error)
	// Unit of a period: "nanoseconds" of CPU time, "accesses", "cycles" or
	// "operations".
	Unit() string
	// Reports says what a sample tells of its access.
	Reports() Report
	// Counts is what tells, counted beside the source, how much there was to pick
	// from; nil if that is CPU time, or nothing can.
	Counts() *Counted
}

// Report is what a source tells of the access it sampled.
type Report uint8

const (
	// NoAccess: the sample is one of the accesses after the tick, found by
	// reading ahead of the held thread.
	NoAccess Report = iota
	// AtAccess: the sample has the address, and points at the instruction. The
	// access is done when the thread is held, and is the use.
	AtAccess
	// AfterAccess is the same, but the sample points at the next instruction.
	AfterAccess
)

// Ticker is a Source at work on one thread.
type Ticker struct {
	events []*event
	// aux are events that others need beside them, and that do not sample.
	aux []*event
	// groups is how many of the events count at a time: those of one type of
	// core.
	groups int
	rings  *atomic.Int64 // of all tickers; nil: none
}

// SetPeriodOf changes the distance to the next tick of one event. The periods of
// samples are geometric if it is drawn anew for the event that ticked, at its
// tick; the others are as far from their next tick as they were before.
func (t *Ticker) SetPeriodOf(event int, period uint64) error {
	if event >= len(t.events) {
		return fmt.Errorf("set sampling period: no event %d", event)
	}
	if err := t.events[event].setPeriod(period); err != nil {
		return fmt.Errorf("set sampling period: %w", err)
	}
	return nil
}

// Len is how many events the thread has, none if it is not sampled.
func (t *Ticker) Len() int {
	if t == nil {
		return 0
	}
	return len(t.events)
}

// Period is the distance between the ticks of one event, as last set.
func (t *Ticker) Period(event int) uint64 { return t.events[event].period }

// Count is what the thread's events counted so far in the source's unit, for
// how many nanoseconds the thread ran, and for how many of them, at most,
// one of the events had no counter: others had it.
func (t *Ticker) Count() (counted, ran, lag uint64, err error) {
	var running uint64
	for i, ev := range t.events {
		n, err := ev.read()
		if err != nil {
			return 0, 0, 0, err
		}
		counted += n.value
		running += n.running
		if i == 0 {
			ran = n.enabled
		}
	}
	// Of the events of several types of core, one group runs at a time.
	if want := uint64(t.groups) * ran; want > running {
		lag = (want - running) / uint64(t.groups)
	}
	return counted, ran, lag, nil
}

// Throttled is how often so far the kernel stopped one of the events because it
// interrupted too often, and for how many nanoseconds they were stopped
// altogether, the thread's absences included. It takes no system call. known is
// false if it can't be told.
func (t *Ticker) Throttled() (times, ns uint64, known bool, err error) {
	known = true
	if t == nil {
		return 0, 0, known, nil
	}
	for _, ev := range t.events {
		if ev.throttled == nil {
			known = false
			continue
		}
		if err := ev.throttled.read(); err != nil {
			return 0, 0, false, fmt.Errorf("read sampling event: %w", err)
		}
		n, stopped := ev.throttled.sum()
		times += n
		ns += stopped
	}
	return times, ns, known, nil
}

// Stop ends the ticks, and the counting.
func (t *Ticker) Stop() error {
	var errs []error
	for _, ev := range t.events {
		errs = append(errs, ev.ioctl(unix.PERF_EVENT_IOC_DISABLE, 0))
	}
	return errors.Join(errs...)
}

// Close stops sampling the thread, if it was sampled.
func (t *Ticker) Close() error {
	if t == nil {
		return nil
	}
	var errs []error
	for _, ev := range append(t.events, t.aux...) {
		errs = append(errs, ev.close())
	}
	return errors.Join(errs...)
}

// add opens one more event of the thread, to tick every period, and starts it with
// the program. leader is of the event's group, -1 if it has none.
func (t *Ticker) add(open opener, ev event, attr *unix.PerfEventAttr, period uint64, tid, program, leader int) error {
	ev.period = ev.round(period)
	attr.Sample = ev.period
	var err error
	if ev.fd, err = open(attr, tid, leader); err != nil {
		return err
	}
	t.events = append(t.events, &ev)
	ev.throttled = openThrottling(ev.fd, t.rings)
	return ev.start(program)
}

// CPUClock samples by the thread's CPU time, on machines without a PMU. It
// prefers slow accesses in proportion to their time.
type CPUClock struct{}

func (CPUClock) Name() string    { return "cpu-clock" }
func (CPUClock) Unit() string    { return Nanoseconds }
func (CPUClock) Reports() Report { return NoAccess }

// Counts nothing: CPU time goes on while the clock is stopped.
func (CPUClock) Counts() *Counted { return nil }

// MinPeriod is the shortest time between two ticks of a thread.
const MinPeriod = 100 * time.Microsecond

func (CPUClock) Open(k *Kernel, tid int, period uint64) (*Ticker, error) {
	attr := samplingAttr(Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK})
	t := &Ticker{groups: 1, rings: &k.rings}
	if err := t.add(perfOpen, event{min: uint64(MinPeriod)}, &attr, period, tid, k.obj.programs[sampleProgram].FD(), -1); err != nil {
		return nil, errors.Join(fmt.Errorf("sample thread %d by cpu-clock: %w", tid, err), t.Close())
	}
	return t, nil
}
