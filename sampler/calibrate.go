package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/clock"
)

// TwoTrap is the time that two traps seem to be apart when nothing lies
// between them, in nanoseconds of CPU time. It is subtracted from every
// measured time; its spread is what a single measurement cannot resolve.
type TwoTrap struct {
	P10, P50, P90 float64
	Times         []float64 // the last few hundred single ones
	N             int       // immediate reuses measured
	// Cost of a trap to the thread, in nanoseconds; P50 if the clock is CPU
	// time.
	Cost float64
	// Limit is what the last trap of a watchpoint costs above the others, in
	// the clock's unit: the kernel takes the watchpoint down.
	Limit float64
}

// Resolution is the reuse time below which nothing is known of a single pair.
func (t TwoTrap) Resolution() float64 { return t.P90 - t.P10 }

// keptTimes are the last so many, for the constant may drift.
const keptTimes = 400

// Join takes further times of immediate reuses into account.
func (t TwoTrap) Join(times []float64) TwoTrap {
	t.Times = slices.Concat(t.Times, times)
	t.N += len(times)
	t.Times = t.Times[max(0, len(t.Times)-keptTimes):]
	sorted := slices.Sorted(slices.Values(t.Times))
	at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
	t.P10, t.P50, t.P90 = at(.1), at(.5), at(.9)
	return t
}

// Calibrate measures n immediate reuses in a thread of its own process: two
// adjacent loads of one watched word.
func (k *Kernel) Calibrate(n int) (TwoTrap, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	times, costs, err := k.ImmediateReuses(n, func(*Trap) {})
	if err != nil {
		return TwoTrap{}, err
	}
	if len(times) < max(n/2, 1) {
		return TwoTrap{}, fmt.Errorf("calibrate: a watched word was touched twice %d times, seen %d times: "+
			"hardware watchpoints do not work here, or rdx runs in a PID namespace of its own (run it in the host's)", n, len(times))
	}
	slices.Sort(costs)
	index, t, err := k.AddThread(unix.Gettid())
	if err != nil {
		return TwoTrap{}, fmt.Errorf("calibrate: %w", err)
	}
	defer k.RemoveThread(index)
	counter, err := k.OpenCounter(index, int(t.Tid))
	if err != nil {
		return TwoTrap{}, fmt.Errorf("calibrate: %w", err)
	}
	if counter != nil {
		defer counter.Close()
	}
	limit, err := k.calibrateLimit(index, t, n/2)
	if err != nil {
		return TwoTrap{}, err
	}
	return TwoTrap{Cost: costs[len(costs)/2], Limit: limit}.Join(times), nil
}

// ImmediateReuses measures n of them in the calling OS thread: the times
// between the two traps by the clock, and by the wall. Traps of other threads
// that are waiting to be read go to stray.
func (k *Kernel) ImmediateReuses(n int, stray func(*Trap)) (times, walls []float64, err error) {
	index, t, err := k.AddThread(unix.Gettid())
	if err != nil {
		return nil, nil, fmt.Errorf("calibrate: %w", err)
	}
	defer k.RemoveThread(index)
	counter, err := k.OpenCounter(index, int(t.Tid))
	if err != nil {
		return nil, nil, fmt.Errorf("calibrate: %w", err)
	}
	if counter != nil {
		defer counter.Close()
	}
	word := &newWords()[0].word
	var trap Trap
	for range n {
		slot := &t.Slots[0]
		slot.Seq++
		slot.State = SlotArmed
		w, err := k.Arm(int(t.Tid), 0, uint64(uintptr(unsafe.Pointer(word))), 2)
		if err != nil {
			return nil, nil, fmt.Errorf("calibrate: %w", err)
		}
		word.Load()
		word.Load()
		w.Close()
		var use, lag, at uint64
		for {
			ok, err := k.ReadTrap(&trap)
			if err != nil {
				return nil, nil, fmt.Errorf("calibrate: %w", err)
			}
			if !ok {
				break
			}
			switch {
			case trap.Index != index:
				stray(&trap)
			case trap.Seq != slot.Seq:
			case trap.Kind == TrapUse:
				use, lag, at = trap.Clock, trap.ClockLag, trap.Time
			case trap.ClockLag == ClockFailed || trap.ClockLag != lag:
			case trap.Kind == TrapReuse:
				times = append(times, float64(trap.Clock-use))
				walls = append(walls, float64(trap.Time-at))
			}
		}
	}
	return times, walls, nil
}

// newWords returns words to be watched, each in a cache line of its own and
// all on the heap: a stack may move.
//
//go:noinline
func newWords() *[2]struct {
	word atomic.Uint64
	_    [15]uint64
} {
	return new([2]struct {
		word atomic.Uint64
		_    [15]uint64
	})
}

// calibrateLimit measures the time between the traps of two watchpoints, the
// first of which is taken down at its trap, or is not.
func (k *Kernel) calibrateLimit(index uint32, t *Thread, n int) (float64, error) {
	words := newWords()
	address := func(w *atomic.Uint64) uint64 { return uint64(uintptr(unsafe.Pointer(w))) }
	var median [2]float64
	var trap Trap
	for i, traps := range []int{2, 1} {
		var times []float64
		for range n {
			t.Slots[0].Seq++
			t.Slots[0].State = SlotArmed
			t.Slots[1].Seq++
			t.Slots[1].State = SlotUsed
			a, err := k.Arm(int(t.Tid), 0, address(&words[0].word), traps)
			if err != nil {
				return 0, fmt.Errorf("calibrate: %w", err)
			}
			b, err := k.Arm(int(t.Tid), 1, address(&words[1].word), 1)
			if err != nil {
				a.Close()
				// With one slot there are no other watchpoints to account for.
				if errors.Is(err, ErrNoSlot) {
					return 0, nil
				}
				return 0, fmt.Errorf("calibrate: %w", err)
			}
			words[0].word.Load()
			words[1].word.Load()
			a.Close()
			b.Close()
			var from Trap
			for {
				ok, err := k.ReadTrap(&trap)
				if err != nil {
					return 0, fmt.Errorf("calibrate: %w", err)
				}
				switch {
				case !ok:
				case trap.Index != index || trap.ClockLag == ClockFailed:
				case trap.Kind == TrapUse:
					from = trap
				case k.clock.Counted != nil:
					times = append(times, float64(trap.Clock-from.Clock))
				default:
					// Each event has a clock of CPU time of its own.
					times = append(times, float64(trap.Time-from.Time))
				}
				if !ok {
					break
				}
			}
		}
		if len(times) == 0 {
			return 0, errors.New("calibrate: no traps of two watchpoints in a row")
		}
		slices.Sort(times)
		median[i] = times[len(times)/2]
	}
	return max(median[1]-median[0], 0), nil
}

// Monotonic is the clock of Trap.Time and Thread.HoldTime.
func Monotonic() time.Duration { return clock.Monotonic() }
