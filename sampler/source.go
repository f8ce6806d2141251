package sampler

import (
	"fmt"
	"time"

	"github.com/elastic/go-perf"
	"golang.org/x/sys/unix"
)

// A Source interrupts a thread at a random access of its own code: it opens
// one perf event a thread, which runs on_sample.
type Source interface {
	// Name as in the profile: "cpu-clock".
	Name() string
	// Open starts sampling thread tid. gap is the mean distance between two
	// ticks in Unit; the events' phases are the caller's to spread.
	Open(k *Kernel, tid int, gap uint64) (*Ticker, error)
	// Unit of a gap: "nanoseconds" of CPU time, or "accesses".
	Unit() string
}

// Ticker is a Source at work on one thread.
type Ticker struct {
	events []*perf.Event // each with the same gap
}

// SetGap changes the distance to the next ticks. Ticks come at even gaps;
// what makes the samples' gaps geometric is the thinning in on_sample, and
// redrawing the gap at every hold keeps the ticks out of step with the
// program's own periods.
func (t *Ticker) SetGap(gap uint64) error {
	for _, ev := range t.events {
		if err := ev.UpdatePeriod(gap); err != nil {
			return fmt.Errorf("set sampling gap: %w", err)
		}
	}
	return nil
}

// Close stops sampling the thread.
func (t *Ticker) Close() error { return closeAll(t.events) }

// CPUClock samples by the thread's CPU time, on machines without a PMU. It
// prefers slow accesses in proportion to their time.
type CPUClock struct{}

func (CPUClock) Name() string { return "cpu-clock" }
func (CPUClock) Unit() string { return Nanoseconds }

// MinGap is the shortest time between two ticks of a thread.
const MinGap = 100 * time.Microsecond

func (CPUClock) Open(k *Kernel, tid int, gap uint64) (*Ticker, error) {
	return open(k, tid, &perf.Attr{
		Label:  "cpu-clock",
		Type:   perf.SoftwareEvent,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample: max(gap, uint64(MinGap)),
	})
}

// open starts a sampling event. User mode only: a sample must never find the
// thread in a system call, which the hold would interrupt.
func open(k *Kernel, tid int, attr *perf.Attr) (*Ticker, error) {
	attr.Options.Disabled = true
	attr.Options.ExcludeKernel = true
	attr.Options.ExcludeHypervisor = true
	ev, err := perf.Open(attr, tid, perf.AnyCPU, nil)
	if err != nil {
		err = explainPerf(err)
		return nil, fmt.Errorf("sample thread %d by %s: %w", tid, attr.Label, err)
	}
	if err := ev.SetBPF(uint32(k.obj.OnSample.FD())); err != nil {
		ev.Close()
		return nil, fmt.Errorf("sample thread %d by %s: %w", tid, attr.Label, err)
	}
	if err := ev.Enable(); err != nil {
		ev.Close()
		return nil, fmt.Errorf("sample thread %d by %s: %w", tid, attr.Label, err)
	}
	return &Ticker{[]*perf.Event{ev}}, nil
}
