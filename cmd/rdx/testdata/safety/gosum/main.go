// gosum works in many goroutines that allocate, so that the runtime collects
// garbage and preempts by SIGURG all the time, and checks the results: until
// its input ends, and for as many rounds as its argument says.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type node struct {
	left, right *node
	value       int
}

func build(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{build(depth - 1), build(depth - 1), 1}
}

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.value + n.left.sum() + n.right.sum()
}

// spin has no call in it: only a signal preempts it.
func spin(n int) (x uint64) {
	for i := range n {
		x = x*6364136223846793005 + uint64(i)
	}
	return x
}

func main() {
	debug.SetGCPercent(5)
	winch := make(chan os.Signal, 100)
	signal.Notify(winch, syscall.SIGWINCH)
	want := spin(3_000_000)
	var stop atomic.Bool
	var rounds atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for !stop.Load() {
				if s := build(12).sum(); s != 1<<13-1 {
					fmt.Printf("BAD sum %d\n", s)
					os.Exit(1)
				}
				if spin(3_000_000) != want {
					fmt.Println("BAD spin")
					os.Exit(1)
				}
				rounds.Add(1)
			}
		})
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	if len(os.Args) > 1 {
		least, err := strconv.Atoi(os.Args[1])
		if err != nil {
			fmt.Println("BAD argument:", err)
			os.Exit(1)
		}
		for rounds.Load() < int64(least) {
			time.Sleep(time.Millisecond)
		}
	}
	stop.Store(true)
	wg.Wait()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if len(winch) > 0 {
		fmt.Printf("BAD %d SIGWINCH from nowhere\n", len(winch))
		os.Exit(1)
	}
	fmt.Printf("ok rounds=%d collections=%d\n", rounds.Load(), m.NumGC)
}
