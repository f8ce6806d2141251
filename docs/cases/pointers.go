//go:build ignore

// pointers before|after SECONDS: sums a field of a million structures, through a slice of pointers that was shuffled or in a
// slice of structures, for so long, and prints ns an item.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"syscall"
)

type item struct {
	value int
	rest  [7]int
}

const items = 1 << 20

//go:noinline
func throughPointers(all []*item) (sum int) {
	for _, p := range all {
		sum += p.value
	}
	return sum
}

//go:noinline
func inPlace(all []item) (sum int) {
	for i := range all {
		sum += all[i].value
	}
	return sum
}

// spent is the process's CPU time in seconds.
func spent() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec) + float64(u.Utime.Usec)/1e6
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pointers before|after SECONDS")
		os.Exit(2)
	}
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	pointers, values := make([]*item, items), make([]item, items)
	for i := range pointers {
		pointers[i] = &item{value: i}
		values[i].value = i
	}
	rand.Shuffle(items, func(i, j int) { pointers[i], pointers[j] = pointers[j], pointers[i] })
	run := func() int { return throughPointers(pointers) }
	if os.Args[1] == "after" {
		run = func() int { return inPlace(values) }
	}
	run()
	sum, times, start := 0, 0, spent()
	for spent()-start < seconds {
		sum += run()
		times++
	}
	fmt.Printf("%.3f\n", (spent()-start)*1e9/float64(times)/items)
	if sum == 1 {
		fmt.Println(sum)
	}
}
