package sampler

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A loop of tickWork runs with and without ticks every MinGap, in turns. It is
// short, so that it often runs through where others want the CPU, too.
const (
	tickWork   = 500 * time.Microsecond
	tickRounds = 36
)

// TickCost measures what a tick of the CPU clock costs the thread it
// interrupts, in nanoseconds of its time: the interrupt, the program, and the
// way back. It is the difference of the lower quartiles of some rounds with and
// without ticks, in a thread of its own process.
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
	// The shortest of some, for one that others came into tells nothing.
	for min(spin(n), spin(n), spin(n)) < tickWork && n < 1<<30 {
		n *= 2
	}
	var bare, ticked []time.Duration
	ticks := uint64(0)
	for range tickRounds {
		bare = append(bare, spin(n))
		ticker, err := CPUClock{}.Open(k, tid, uint64(MinGap))
		if err != nil {
			return 0, fmt.Errorf("measure a tick: %w", err)
		}
		before := t.Ticks
		took := spin(n)
		if t.Ticks > before {
			ticked = append(ticked, took)
			ticks += t.Ticks - before
		}
		if err := ticker.Close(); err != nil {
			return 0, fmt.Errorf("measure a tick: %w", err)
		}
	}
	if err := k.forget(); err != nil {
		return 0, fmt.Errorf("measure a tick: %w", err)
	}
	if len(ticked) < tickRounds/2 {
		return 0, fmt.Errorf("measure a tick: of %d rounds, %d had ticks", tickRounds, len(ticked))
	}
	slices.Sort(bare)
	slices.Sort(ticked)
	// What came between in other rounds is not the ticks'.
	cost := float64(ticked[len(ticked)/4]-bare[len(bare)/4]) * float64(len(ticked)) / float64(ticks)
	return min(max(cost, leastTick), mostTick), nil
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
