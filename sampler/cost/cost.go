// Package cost measures what an access costs on this machine, by where its data are found: one that the next
// waits for, one of many that go on at a time, and one in a row that prefetchers follow. It takes some tens of milliseconds, and memory of a few
// times the largest cache, which it gives back.
//
// The package is rdx's own and may change.
package cost

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Cost of an access to another line, in ns.
type Cost struct {
	Bytes   int64   // of the data that it was measured on, all of which is used before any is used again
	Waits   float64 // where the next address depends on it
	Streams float64 // where lines are read in order
	Apart   float64 // where no address depends on another, and no prefetcher foresees it
}

const (
	line = 64
	// most is how much memory is used: a machine with larger caches tells less of its memory.
	most = 256 << 20
	// Each figure is the median of so many rounds of so many accesses.
	rounds, perRound = 9, 4096
	// step is how many times as large the next data are, within one cache: a large one costs more the more of it is used, as
	// addresses have to be translated, and other cores' parts of it are farther.
	step = 4
)

// Measure gives the cost of data of several sizes, in each of the caches, whose sizes are given in bytes, and behind the last.
func Measure(sizes []int64) (out []Cost, err error) {
	if len(sizes) == 0 {
		return nil, nil
	}
	var spans []int64
	for i, s := range sizes {
		if i == 0 {
			spans = append(spans, min(powerOfTwo(s/2), most))
			continue
		}
		for span := 2 * powerOfTwo(sizes[i-1]); span < s && span <= most; span *= step {
			spans = append(spans, span)
		}
	}
	spans = append(spans, min(powerOfTwo(2*sizes[len(sizes)-1]), most))
	spans = slices.Compact(spans)
	memory, err := unix.Mmap(-1, 0, int(slices.Max(spans)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("measure what accesses cost: map memory: %w", err)
	}
	defer unix.Munmap(memory)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1 // else all pages are the one zero page
		memory[i] = 0
	}
	for _, span := range spans {
		w := walk{b: memory[:span], mask: uint64(span/line - 1)}
		w.streams(2 * len(w.b) / line) // into the cache that holds it, if one does
		out = append(out, Cost{span, median(w.waits), median(w.streams), median(w.apart)})
	}
	return out, nil
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

// A walk goes through memory, each time on from where it was.
type walk struct {
	b    []byte
	mask uint64 // of the number of a line
	at   uint64
}

// waits has each address depend on what was read before: a full-period congruential generator (Hull and Dobell,
// SIAM Review 4, 1962) in which the zeros that are read are added.
func (w *walk) waits(n int) {
	at := w.at
	for range n {
		at = (at*0x9e3779b1 + 0x3c6ef35f + uint64(w.b[at*line])) & w.mask
	}
	w.at = at
	sink.Add(at)
}

// apart goes to all lines, too. Each address is made of the number of the access alone, so that as many are on the way as the
// processor has room for.
func (w *walk) apart(n int) {
	half := bits.Len64(w.mask) / 2
	at, sum := w.at, uint64(0)
	for range n {
		i := at * 0x9e3779b1 & w.mask
		sum += uint64(w.b[(i^i>>half)*line])
		at++
	}
	w.at = at & w.mask
	sink.Add(sum)
}

// streams reads lines in order.
func (w *walk) streams(n int) {
	at, sum := w.at, uint64(0)
	for range n {
		sum += uint64(w.b[at*line])
		at = (at + 1) & w.mask
	}
	w.at = at
	sink.Add(sum)
}

// Cycle is how long a cycle of the core takes as it runs now, in ns: multiplications that wait for each other take three each on all
// of them.
func Cycle() float64 {
	const multiply = 3
	x, by := uint64(3), sink.Load()|1 // a constant would be multiplied in one go
	return median(func(n int) {
		for range n {
			x *= by
			x *= by
			x *= by
			x *= by
		}
		sink.Add(x)
	}) / (4 * multiply)
}

// median of what an access takes in a round, in ns.
func median(f func(n int)) float64 {
	var times []float64
	for range rounds {
		start := time.Now()
		f(perRound)
		times = append(times, float64(time.Since(start).Nanoseconds())/perRound)
	}
	slices.Sort(times)
	return times[rounds/2]
}
