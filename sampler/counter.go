package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/elastic/go-perf"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/bpf"
)

// maxCounters is how many counters of a thread the programs add up, one for
// each type of core: MAX_COUNTERS in the C.
const maxCounters = 3

// ClockFailed in a trap's ClockLag: its clock could not be read.
const ClockFailed = ^uint64(0)

// Clock is what reuse times are measured in.
type Clock struct {
	Name string // "cpu-time", or the events counted
	Unit string
	// Counted is what each thread's counter counts, nil for CPU time.
	Counted *Counted
}

// Units of sources and clocks.
const (
	Nanoseconds  = "nanoseconds" // of the thread's CPU time
	Accesses     = "accesses"
	Instructions = "instructions"
	Cycles       = "cycles"
)

// CPUTime is the clock of machines without a PMU.
func CPUTime() Clock { return Clock{Name: "cpu-time", Unit: Nanoseconds} }

// CounterClock is the clock that counts c in each thread.
func CounterClock(c Counted) Clock {
	return Clock{Name: c.Label(), Unit: c.Unit, Counted: &c}
}

// useCounters makes the programs read the clock from counters. The library
// would make the map as large as the number of CPUs, as for samples; ours is
// indexed by thread.
func useCounters(spec *ebpf.CollectionSpec, c *Counted) (*ebpf.Map, error) {
	hybrid := uint32(0)
	if c.Hybrid {
		hybrid = 1
	}
	err := errors.Join(
		spec.Variables[bpf.RDXVarClockCounters].Set(uint32(len(c.Events))),
		spec.Variables[bpf.RDXVarClockHybrid].Set(hybrid),
	)
	if err != nil {
		return nil, fmt.Errorf("set up clock: %w", err)
	}
	m, err := newCounterMap(MaxThreads * maxCounters)
	if err != nil {
		return nil, err
	}
	for _, p := range spec.Programs {
		err := p.Instructions.AssociateMap(bpf.RDXMapCounters, m)
		// on_sample does not read the clock.
		if err != nil && !errors.Is(err, asm.ErrUnreferencedSymbol) {
			m.Close()
			return nil, fmt.Errorf("set up clock: %w", err)
		}
	}
	return m, nil
}

func newCounterMap(entries uint32) (*ebpf.Map, error) {
	attr := struct{ kind, keySize, valueSize, maxEntries, flags uint32 }{
		unix.BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, entries, 0,
	}
	fd, _, e := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if e != 0 {
		return nil, fmt.Errorf("make map of counters: %w", e)
	}
	m, err := ebpf.NewMapFromFD(int(fd))
	if err != nil {
		return nil, fmt.Errorf("make map of counters: %w", err)
	}
	return m, nil
}

// Counter is the clock of one thread, at work.
type Counter struct {
	counters *ebpf.Map
	first    uint32 // key of the first event
	events   []*perf.Event
}

// OpenCounter starts the clock of a thread in the table. The Counter is nil
// if the clock is CPU time, which needs none.
func (k *Kernel) OpenCounter(index uint32, tid int) (*Counter, error) {
	if k.clock.Counted == nil {
		return nil, nil
	}
	events, err := openCounting(*k.clock.Counted, tid)
	if err != nil {
		return nil, fmt.Errorf("count %s in thread %d: %w", k.clock.Unit, tid, err)
	}
	c := &Counter{k.counters, index * maxCounters, events}
	for i, ev := range events {
		fd, err := ev.FD()
		if err == nil {
			err = c.counters.Put(c.first+uint32(i), uint32(fd))
		}
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("count %s in thread %d: %w", k.clock.Unit, tid, err)
		}
	}
	return c, nil
}

// openCounting opens and starts one event for each of c's.
func openCounting(c Counted, tid int) ([]*perf.Event, error) {
	var events []*perf.Event
	for _, e := range c.Events {
		ev, err := perf.Open(&perf.Attr{
			Label:       e.Label,
			Type:        perf.EventType(e.Type),
			Config:      e.Config,
			Config1:     e.Config1,
			Config2:     e.Config2,
			CountFormat: perf.CountFormat{Enabled: true, Running: true},
			Options: perf.Options{
				// A counter that takes turns has holes; on hybrids one of
				// the two always rests.
				Pinned:            !c.Hybrid,
				ExcludeKernel:     true,
				ExcludeHypervisor: true,
			},
		}, tid, perf.AnyCPU, nil)
		if err != nil {
			closeAll(events)
			return nil, fmt.Errorf("%s: %w", e.Label, explainPerf(err))
		}
		events = append(events, ev)
	}
	return events, nil
}

func closeAll(events []*perf.Event) error {
	var errs []error
	for _, ev := range events {
		errs = append(errs, ev.Close())
	}
	return errors.Join(errs...)
}

// explainPerf adds to an error of perf_event_open what the user can do.
func explainPerf(err error) error {
	switch {
	case isRefused(err):
		return explainRefused(err)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w (raise the limit of open files: ulimit -n)", err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w (another profiler or the NMI watchdog has the counter: echo 0 | sudo tee /proc/sys/kernel/nmi_watchdog)", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w (this processor or its hypervisor does not offer the event)", err)
	}
	return err
}

func isRefused(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }

// explainRefused adds what the user can do if it is for want of rights that the event is not to be had. Debian's and Ubuntu's
// kernels have levels of perf_event_paranoid above 2; at these some ask for CAP_SYS_ADMIN, whatever other rights there are.
func explainRefused(err error) error {
	if !isRefused(err) {
		return err
	}
	return fmt.Errorf("%w (run as root, or with CAP_PERFMON and perf_event_paranoid at 2: sysctl kernel.perf_event_paranoid=2)", err)
}

// ErrNotRunning: the event is not on the PMU, though its thread runs.
var ErrNotRunning = errors.New("the counter does not run (another profiler or the NMI watchdog has it: " +
	"echo 0 | sudo tee /proc/sys/kernel/nmi_watchdog)")

// readCounting returns the sum of the events and the time it lags behind,
// as read_clock does in BPF.
func readCounting(c Counted, events []*perf.Event) (value, lag uint64, err error) {
	for i, ev := range events {
		fd, err := ev.FD()
		if err != nil {
			return 0, 0, fmt.Errorf("read counter: %w", err)
		}
		n, err := readCounts(fd)
		if err != nil {
			return 0, 0, fmt.Errorf("read counter: %w", err)
		}
		value += n.value
		lag -= n.running
		if i == 0 || !c.Hybrid {
			lag += n.enabled
		}
	}
	return value, lag, nil
}

// Read is the thread's clock as of now.
func (c *Counter) Read(k *Kernel) (value, lag uint64, err error) {
	return readCounting(*k.clock.Counted, c.events)
}

// Close stops the thread's clock.
func (c *Counter) Close() error {
	if c == nil {
		return nil
	}
	for i := range c.events {
		// Not there if opening ended half-way.
		_ = c.counters.Delete(c.first + uint32(i))
	}
	return closeAll(c.events)
}

// Accuracy with which a counter must count a known loop: what a wrong path
// adds is not more.
const countTolerance = 0.1

const (
	countLoops    = 200_000
	countAttempts = 3
)

// Validate counts loops of known length in a thread of rdx itself. Some
// hypervisors offer a PMU and count nothing. What counts time may be right for one loop by
// chance, where an access takes about as long as its unit; not for a second one that takes
// several times as long for as many accesses.
func (c Counted) Validate() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	events, err := openCounting(c, unix.Gettid())
	if err != nil {
		return fmt.Errorf("count a known loop: %w", err)
	}
	defer closeAll(events)
	// An interruption may fall into one attempt, not into all.
	for range countAttempts {
		var per [2]float64
		for i, loop := range []func(from, to []uint64, n int){countedLoop, slowLoop} {
			if per[i], err = countRound(c, events, loop); err != nil {
				break
			}
		}
		switch {
		case err == nil:
			if err = c.plausible(per[0], per[1]); err == nil {
				return nil
			}
		case !errors.Is(err, ErrNotRunning):
			return err
		}
	}
	return err
}

// countRound is what is counted of one round of a loop.
func countRound(c Counted, events []*perf.Event, loop func(from, to []uint64, n int)) (per float64, err error) {
	from, to := make([]uint64, countBlock), make([]uint64, countBlock)
	var at [3]uint64
	var lags [3]uint64
	for i := range at {
		if at[i], lags[i], err = readCounting(c, events); err != nil {
			return 0, fmt.Errorf("count a known loop: %w", err)
		}
		// The second round is three times as long as the first: the
		// difference leaves out what reading costs.
		loop(from, to, countLoops*(1+2*i))
	}
	if lags[0] != lags[2] {
		return 0, fmt.Errorf("count a known loop: %w", ErrNotRunning)
	}
	return (float64(at[2]-at[1]) - float64(at[1]-at[0])) / (2 * countLoops), nil
}

// plausible judges the counts of one round of each known loop, which makes two
// accesses.
func (c Counted) plausible(per, slow float64) error {
	low, high := 2*(1-countTolerance), 2*(1+countTolerance)
	switch c.Unit {
	case Instructions:
		low, high, slow = 4, 12, per
	case Cycles:
		low, high, slow = .2, 100, per
	}
	if per == 0 {
		return fmt.Errorf("count a known loop: %s counts nothing (the hypervisor fakes the PMU)", c.Label())
	}
	if min(per, slow) < low || max(per, slow) > high {
		return fmt.Errorf("count a known loop: %s counted %.2f %s a round, %.2f if a round takes longer, want %.1f to %.1f", c.Label(), per, c.Unit, slow, low, high)
	}
	return nil
}

const countBlock = 512

// countedLoop makes n loads and n stores, and no other access: slices, so that
// no nil check reads from them.
//
//go:noinline
func countedLoop(from, to []uint64, n int) {
	sum := uint64(0)
	for i := range n {
		sum += from[i&(countBlock-1)]
		to[i&(countBlock-1)] = sum
	}
}

// slowLoop makes as many accesses, and between them a chain of multiplications, each of which waits for the one
// before: some fifty cycles.
//
//go:noinline
func slowLoop(from, to []uint64, n int) {
	sum := uint64(1)
	for i := range n {
		sum += from[i&(countBlock-1)]
		for range 16 {
			sum *= sum | 3
		}
		to[i&(countBlock-1)] = sum
	}
}
