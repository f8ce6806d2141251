// gosharing shares data between two goroutines, each on an OS thread of its own, in ways whose outcome is
// known by construction, as sharing.c does: in rounds that they take by turns, so that only what a round touches
// decides what is invalidated.
//
// usage: gosharing pingpong|false SECONDS
//
//	pingpong  both load and store a word of every line. The load finds the other's write, the store its own
//	          load: half of the accesses (those whose use is the store) are invalidated.
//	false     each stores one word of every line twice, a at +0, b at +40: no word is invalidated, and half of
//	          the accesses (the second stores) are followed by the other's write to the line.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"
)

const lines = 65536

type line [8]uint64

// data begins a line: the runtime aligns what is that large to pages.
var data = make([]line, lines)

//go:noinline
func pingpongA(data []line) (seen uint64) {
	for i := range data {
		x := data[i][0]
		seen ^= x
		data[i][0] = x + 1
	}
	return seen
}

//go:noinline
func pingpongB(data []line) (seen uint64) {
	for i := range data {
		x := data[i][0]
		seen ^= x
		data[i][0] = x + 1
	}
	return seen
}

//go:noinline
func falseA(data []line) uint64 {
	for i := range data {
		for j := range 2 {
			data[i][0] = uint64(i + j)
		}
	}
	return 0
}

//go:noinline
func falseB(data []line) uint64 {
	for i := range data {
		for j := range 2 {
			data[i][5] = uint64(i + j)
		}
	}
	return 0
}

func main() {
	work, ok := map[string][2]func([]line) uint64{"pingpong": {pingpongA, pingpongB}, "false": {falseA, falseB}}[os.Args[1]]
	seconds, err := strconv.Atoi(os.Args[2])
	if !ok || err != nil {
		fmt.Println("usage: gosharing pingpong|false SECONDS")
		os.Exit(2)
	}
	if uintptr(unsafe.Pointer(&data[0]))%64 != 0 {
		fmt.Println("BAD data are not aligned to lines")
		os.Exit(1)
	}
	// A turn carries no value: whoever sends one to a waiting goroutine writes it to that goroutine's stack, beside
	// what its functions keep there, which is false sharing too.
	turns := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	rounds := [2]chan uint64{make(chan uint64), make(chan uint64)}
	for me := range 2 {
		go func() {
			runtime.LockOSThread()
			n := uint64(0)
			for range turns[me] {
				work[me](data)
				n++
				turns[1-me] <- struct{}{}
			}
			rounds[me] <- n
		}()
	}
	turns[0] <- struct{}{}
	time.Sleep(time.Duration(seconds) * time.Second)
	// The one that has the turn is not disturbed: whoever gets it next ends.
	var n uint64
	select {
	case <-turns[0]:
	case <-turns[1]:
	}
	for me := range 2 {
		close(turns[me])
		n += <-rounds[me]
	}
	for i := range data {
		switch d := &data[i]; {
		case os.Args[1] == "pingpong" && d[0] != n, os.Args[1] == "false" && (d[0] != uint64(i+1) || d[5] != uint64(i+1)):
			fmt.Printf("BAD line %d: %d after %d rounds\n", i, *d, n)
			os.Exit(1)
		}
	}
	fmt.Println("ok")
}
