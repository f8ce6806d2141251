package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A loop of tickWork runs with and without ticks every MinPeriod, in turns. It is
// short, so that it often runs through where others want the CPU, too.
const (
	tickWork   = 500 * time.Microsecond
	tickRounds = 36
)

// TickCost measures what a tick of the CPU clock costs the thread it
// interrupts, in nanoseconds of its time: the interrupt, the program, and the
// way back.
func (k *Kernel) TickCost() (float64, error) {
	return k.interruptCost("tick", mostTick, func(_ uint32, tid int, t *Thread) (func() (uint64, error), error) {
		ticker, err := CPUClock{}.Open(k, tid, uint64(MinPeriod))
		if err != nil {
			return nil, err
		}
		before := t.Ticks
		return func() (uint64, error) { return t.Ticks - before, ticker.Close() }, nil
	})
}

// StampCost measures what one of a thread's stamps costs it, likewise. It is more than a
// tick: an event that ticks once only must be taken down, for which its processor
// interrupts itself once more.
func (k *Kernel) StampCost() (float64, error) {
	var after []time.Duration
	for i := range stampsARound {
		after = append(after, tickWork*time.Duration(i+1)/(stampsARound+1))
	}
	return k.interruptCost("stamp", mostStamp, func(index uint32, tid int, _ *Thread) (func() (uint64, error), error) {
		stamps, err := k.Stamps(index, tid, after)
		if err != nil {
			return nil, err
		}
		return func() (uint64, error) {
			_, err := k.ReadTrap(new(Trap))
			return uint64(len(stamps.Read())), errors.Join(err, stamps.Close())
		}, nil
	})
}

// stampsARound of tickWork, of which each may take all its share.
const (
	stampsARound = 4
	mostStamp    = float64(tickWork) / stampsARound
)

// interruptCost is the difference of the lower quartiles of some rounds with and
// without interrupts, in a thread of its own process, by their number. It is most at most. begin has
// them come, and returns what ends them and says how many there were.
func (k *Kernel) interruptCost(of string, most float64, begin func(index uint32, tid int, t *Thread) (func() (uint64, error), error)) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fail := func(err error) (float64, error) { return 0, fmt.Errorf("measure a %s: %w", of, err) }
	if err := k.SetAccept(0); err != nil { // nobody is to be held
		return fail(err)
	}
	defer k.SetAccept(1) // as it is when loaded
	tid := unix.Gettid()
	index, t, err := k.AddThread(tid)
	if err != nil {
		return fail(err)
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
		end, err := begin(index, tid, t)
		if err != nil {
			return fail(err)
		}
		elapsed := spin(n)
		came, err := end()
		if err != nil {
			return fail(err)
		}
		if came > 0 {
			ticked = append(ticked, elapsed)
			ticks += came
		}
	}
	if err := k.forget(); err != nil {
		return fail(err)
	}
	if len(ticked) < tickRounds/2 {
		return fail(fmt.Errorf("of %d rounds, %d had any", tickRounds, len(ticked)))
	}
	slices.Sort(bare)
	slices.Sort(ticked)
	// What came between in other rounds is not theirs.
	cost := float64(ticked[len(ticked)/4]-bare[len(bare)/4]) * float64(len(ticked)) / float64(ticks)
	return min(max(cost, leastTick), most), nil
}

// Nothing is cheaper than an interrupt, nor dearer than half of a period: there the
// loop could not be measured.
const leastTick, mostTick = 500, float64(MinPeriod) / 2

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
