package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// knownTargetArg is the hidden first argument with which rdx becomes a program
// whose reuse times are known: it walks a cyclic array of the given number of
// words until its standard input ends, so that every word is touched again
// after exactly as many accesses. It prints "ready" when it walks, and at the
// end the median CPU time of one round in nanoseconds.
const knownTargetArg = "__known-target"

const keptRounds = 1 << 12

func runKnownTarget(arg string) int {
	words, err := strconv.Atoi(arg)
	if err != nil || words < 1 || words > 1<<27 {
		fmt.Fprintf(os.Stderr, "rdx: known target: %q is not a number of words\n", arg)
		return exitUsage
	}
	// Nothing but the walk should run here.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	runtime.LockOSThread()

	var ended atomic.Bool
	go func() {
		var b [1]byte
		for {
			if n, err := os.Stdin.Read(b[:]); n == 0 || err != nil {
				ended.Store(true)
				return
			}
		}
	}()
	array := make([]uint64, words)
	for i := range array {
		array[i] = uint64(i)
	}
	rounds := make([]int64, 0, keptRounds)
	var sum uint64
	fmt.Println("ready")
	for n, start := 0, threadTime(); !ended.Load(); n++ {
		sum += walk(array)
		now := threadTime()
		if len(rounds) < keptRounds {
			rounds = append(rounds, now-start)
		} else {
			rounds[n%keptRounds] = now - start
		}
		start = now
	}
	// The sum is printed so that the walk is not compiled away.
	fmt.Println(median(rounds), sum)
	return 0
}

// median sorts values in place; it is 0 if there are none.
func median[T int64 | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func threadTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return ts.Nano()
}
