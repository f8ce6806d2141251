// Package cost measures what an access costs on this machine, by where its data are found: one that the next
// waits for, one of many that go on at a time, and one in a row that prefetchers follow. It takes some tens of milliseconds, and memory of a few
// times the largest cache, which it gives back.
//
// The package is rdx's own and may change.
package cost

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Cost of an access to another line, in ns.
type Cost struct {
	Waits   float64 // where the next address depends on it
	Streams float64 // where lines are read in order
	Apart   float64 // where no address depends on another, and no prefetcher foresees it
	// Within is how many bytes of data a program can go through and still find them there; 0: as many as the cache has.
	// Behind it they take as long as from memory: a cache's far slices do, and a virtual machine may have a part of it only.
	Within int64
}

const (
	line = 64
	// most is how much memory is used: a machine with larger caches tells less of its memory.
	most = 256 << 20
	// mostReach is up to where the last cache's is sought: it takes as long as all the rest.
	mostReach = 64 << 20
	// Each figure is the median of so many rounds of so many accesses.
	rounds, perRound = 9, 4096
)

// Measure gives the cost of data in the first of the caches, whose sizes are given in bytes, in each other, and
// behind the last: one more than there are caches.
func Measure(sizes []int64) ([]Cost, error) {
	if len(sizes) == 0 {
		return nil, nil
	}
	var spans []int64
	for i, s := range sizes {
		within := s / 2
		if i > 0 { // well beyond the one before
			within = max(2*sizes[i-1], (sizes[i-1]+s)/4)
		}
		spans = append(spans, min(powerOfTwo(within), most))
	}
	spans = append(spans, min(powerOfTwo(2*sizes[len(sizes)-1]), most))
	memory, err := unix.Mmap(-1, 0, int(slices.Max(spans)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("measure what accesses cost: map memory: %w", err)
	}
	defer unix.Munmap(memory)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1 // else all pages are the one zero page
		memory[i] = 0
	}
	all := make([]Cost, len(spans))
	last := len(sizes) - 1
	all[last+1] = measure(memory[:spans[last+1]], 0)
	if last > 0 {
		took := func(span int64) float64 { return waits(memory[:span], int(span/line)) }
		spans[last], all[last].Within = reach(took, spans[last], sizes[last-1], sizes[last], all[last+1].Waits)
	}
	for i, span := range spans[:last+1] {
		within := all[i].Within
		all[i] = measure(memory[:span], int(span/line))
		all[i].Within = within
	}
	return all, nil
}

func measure(b []byte, warm int) Cost {
	return Cost{Waits: waits(b, warm), Streams: streams(b, warm), Apart: apart(b, warm)}
}

// reach finds up to which span the last cache has the data, by how long an access took there: less than the geometric mean of what it takes
// right behind the cache before, and far, in memory. span is where such data are well within, the given one if all are.
func reach(took func(span int64) float64, span, before, size int64, far float64) (inside, within int64) {
	first := powerOfTwo(2 * before)
	near := 0.0
	for s := first; s <= min(size/2, mostReach); s *= 2 {
		now := took(s)
		if s == first {
			if near = now; far < 2*near {
				break // it is no faster than memory, or memory as fast
			}
		}
		if now > math.Sqrt(near*far) {
			within = s / 2
			return max(min(span, within/2), first), within
		}
	}
	return span, 0
}

// powerOfTwo is the largest up to n.
func powerOfTwo(n int64) int64 {
	p := int64(line)
	for 2*p <= n {
		p *= 2
	}
	return p
}

var sink atomic.Uint64 // keeps the compiler from leaving the loads out

// waits, after warm accesses that bring the data to where they stay, has each address depend on what was read before: a full-period congruential generator (Hull and Dobell,
// SIAM Review 4, 1962) in which the zeros that are read are added.
func waits(b []byte, warm int) float64 {
	mask := uint64(len(b)/line - 1)
	at := uint64(1)
	return median(warm, func(n int) {
		for range n {
			at = (at*0x9e3779b1 + 0x3c6ef35f + uint64(b[at*line])) & mask
		}
		sink.Add(at)
	})
}

// apart has the same addresses as waits, but none that depends on what was read.
func apart(b []byte, warm int) float64 {
	mask := uint64(len(b)/line - 1)
	at, sum := uint64(1), uint64(0)
	return median(warm, func(n int) {
		for range n {
			at = (at*0x9e3779b1 + 0x3c6ef35f) & mask
			sum += uint64(b[at*line])
		}
		sink.Add(sum)
	})
}

// streams reads lines in order.
func streams(b []byte, warm int) float64 {
	at, sum := 0, uint64(0)
	return median(warm, func(n int) {
		for range n {
			sum += uint64(b[at])
			if at += line; at == len(b) {
				at = 0
			}
		}
		sink.Add(sum)
	})
}

// Cycle is how long a cycle of the core takes as it runs now, in ns: multiplications that wait for each other take three each on all
// of them.
func Cycle() float64 {
	const multiply = 3
	x, by := uint64(3), sink.Load()|1 // a constant would be multiplied in one go
	return median(perRound, func(n int) {
		for range n {
			x *= by
			x *= by
			x *= by
			x *= by
		}
		sink.Add(x)
	}) / (4 * multiply)
}

// median of what an access takes in a round, in ns, after warm accesses.
func median(warm int, f func(n int)) float64 {
	f(warm)
	var times []float64
	for range rounds {
		start := time.Now()
		f(perRound)
		times = append(times, float64(time.Since(start).Nanoseconds())/perRound)
	}
	slices.Sort(times)
	return times[rounds/2]
}
