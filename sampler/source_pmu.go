package sampler

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// PMUSource samples a thread every so many of its own accesses, or cycles, as
// a counter of the processor overflows. It needs no address from the
// processor: the thread is held and its next access decoded.
//
// The interrupt comes some instructions late, so that accesses that follow a
// slow one are preferred; far less than CPU time prefers the slow one itself.
type PMUSource struct{ counted Counted }

// NewPMUSource returns the source that samples by c.
func NewPMUSource(c Counted) PMUSource { return PMUSource{c} }

func (s PMUSource) Name() string { return s.counted.Label() }
func (s PMUSource) Unit() string { return s.counted.Unit }

// Reports nothing: the thread is held and its next access decoded.
func (PMUSource) Reports() Report { return NoAccess }

// Counts the same events.
func (s PMUSource) Counts() *Counted { return &s.counted }

// minPMUPeriod keeps a program's every sample affordable: some ten microseconds.
const minPMUPeriod = 20_000

func (s PMUSource) Open(k *Kernel, tid int, period uint64) (*Ticker, error) {
	t := &Ticker{groups: len(s.counted.Events), rings: &k.rings}
	if s.counted.Hybrid {
		t.groups = 1
	}
	for _, e := range s.counted.Events {
		attr := samplingAttr(e)
		if err := t.add(perfOpen, event{min: minPMUPeriod}, &attr, period, tid, k.obj.programs[sampleProgram].FD(), -1); err != nil {
			return nil, errors.Join(fmt.Errorf("sample thread %d by %s: %w", tid, e.Label, err), t.Close())
		}
	}
	return t, nil
}

// Validate samples a loop in a thread of rdx itself: as many ticks must come
// as it is long. There are PMUs that count and never interrupt.
func (s PMUSource) Validate(k *Kernel) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	index, t, err := k.AddThread(unix.Gettid())
	if err != nil {
		return fmt.Errorf("sample a known loop: %w", err)
	}
	defer k.RemoveThread(index)
	// A sample would hold this very thread.
	if err := k.SetAccept(0); err != nil {
		return fmt.Errorf("sample a known loop: %w", err)
	}
	ticker, err := s.Open(k, int(t.Tid), minPMUPeriod)
	if err != nil {
		return fmt.Errorf("sample a known loop: %w", err)
	}
	defer func() {
		// Its last tick may come now; none of them is a session's.
		err = errors.Join(err, ticker.Close(), k.forget())
	}()
	from, to := make([]uint64, countBlock), make([]uint64, countBlock)
	var n float64
	for range validationRounds {
		countedLoop(from, to, countLoops)
	}
	for _, ev := range ticker.events {
		c, err := ev.read()
		if err != nil {
			return fmt.Errorf("sample a known loop: %w", err)
		}
		n += float64(c.value)
	}
	want := n / minPMUPeriod
	if got := float64(t.Ticks); got < .8*want-1 || got > 1.2*want+1 || want < 1 {
		return fmt.Errorf("sample a known loop: %s counted %.0f %s and interrupted %.0f times, want %.0f "+
			"(the hypervisor does not deliver the interrupts, or the kernel throttles them: see /proc/sys/kernel/perf_event_max_sample_rate)",
			s.Name(), n, s.Unit(), got, want)
	}
	return nil
}

const validationRounds = 10
