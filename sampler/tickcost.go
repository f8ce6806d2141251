package sampler

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A loop of tickWork runs with and without ticks every MinGap, in turns.
const (
	tickWork   = 2 * time.Millisecond
	tickRounds = 9
)

// TickCost measures what a tick of the CPU clock costs the thread it
// interrupts, in nanoseconds of its time: the interrupt, the program, and the
// way back. It is the median of some rounds in a thread of its own process.
func (k *Kernel) TickCost() (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := k.SetAccept(0); err != nil { // nobody is to be held
		return 0, fmt.Errorf("measure a tick: %w", err)
	}
	defer k.SetAccept(1) // as it is when loaded
	tid := unix.Gettid()
	index, t, err := k.AddThread(tid)
	if err != nil {
		return 0, fmt.Errorf("measure a tick: %w", err)
	}
	defer k.RemoveThread(index)
	n := 1000
	for spin(n) < tickWork && n < 1<<30 {
		n *= 2
	}
	var costs []float64
	for range tickRounds {
		bare := spin(n)
		ticker, err := CPUClock{}.Open(k, tid, uint64(MinGap))
		if err != nil {
			return 0, fmt.Errorf("measure a tick: %w", err)
		}
		before := t.Ticks
		ticked := spin(n)
		ticks := t.Ticks - before
		if err := ticker.Close(); err != nil {
			return 0, fmt.Errorf("measure a tick: %w", err)
		}
		if ticks > 0 {
			costs = append(costs, float64(ticked-bare)/float64(ticks))
		}
	}
	if err := k.forget(); err != nil {
		return 0, fmt.Errorf("measure a tick: %w", err)
	}
	if len(costs) < tickRounds/2 {
		return 0, fmt.Errorf("measure a tick: of %d rounds, %d had ticks", tickRounds, len(costs))
	}
	slices.Sort(costs)
	// What came between in most rounds is not the ticks'.
	return min(max(costs[len(costs)/2], leastTick), mostTick), nil
}

// Nothing is cheaper than an interrupt, nor dearer than half of a gap: there the
// loop could not be measured.
const leastTick, mostTick = 500, float64(MinGap) / 2

var spun uint64 // keeps the loop

// spin does the same work every time, and says how long it took.
func spin(n int) time.Duration {
	start := Monotonic()
	x := spun
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	spun = x
	return Monotonic() - start
}
