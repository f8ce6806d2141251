// Package cost measures what an access costs on this machine, by where its data are found: one that the next
// waits for, one of many that go on at a time, and one in a row that prefetchers follow. It takes some tens of milliseconds, and memory of a few
// times the largest cache: a process of its own has that, and is gone before a session begins.
//
// The package is rdx's own and may change.
package cost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"slices"
	"strconv"
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
	line, page = 64, 4096
	// most is how much memory is used: a machine with larger caches tells less of its memory.
	most = 256 << 20
	// Each figure is the median of so many rounds of so many accesses.
	rounds, perRound = 9, 4096
	// step is how many times as large the next data are, within one cache: a large one costs more the more of it is used, as
	// addresses have to be translated, and other cores' parts of it are farther.
	step = 4
)

// Machine is what accesses cost on one with caches of these sizes, and how long a cycle of its cores takes, in ns.
type Machine struct {
	Sizes []int64
	On    []Cost
	Cycle float64
	// Conflicts are measured where there is a second cache.
	Conflicts Conflicts
}

// Arg is the hidden first argument with which rdx measures for another rdx: main must call Run with those that follow.
const Arg = "__costs"

// MeasureApart measures in another process, which is rdx, too: what memory a process had at its most stays in its account, and an allocator that
// has got so much would not give it back at once.
func MeasureApart(ctx context.Context, sizes []int64) (m Machine, err error) {
	fail := func(err error) (Machine, error) { return m, fmt.Errorf("measure what accesses cost: %w", err) }
	self, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	args := []string{Arg}
	for _, s := range sizes {
		args = append(args, strconv.FormatInt(s, 10))
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return fail(fmt.Errorf("%w %s", err, bytes.TrimSpace(said.Bytes())))
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return fail(err)
	}
	return m, nil
}

// Run measures and prints that for MeasureApart. It returns an exit code.
func Run(args []string) int {
	var sizes []int64
	for _, a := range args {
		s, err := strconv.ParseInt(a, 10, 64)
		if err != nil || s <= 0 {
			fmt.Fprintf(os.Stderr, "rdx: %q is no size of a cache\n", a)
			return 2
		}
		sizes = append(sizes, s)
	}
	on, err := Measure(sizes)
	if err == nil {
		m := Machine{Sizes: sizes, On: on, Cycle: Cycle()}
		if len(sizes) > 1 {
			m.Conflicts, err = MeasureConflicts(sizes[1])
		}
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(m)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rdx:", err)
		return 1
	}
	return 0
}

// Valid says whether that can be of a machine with such caches: what was kept may be anybody's.
func (m *Machine) Valid(sizes []int64) bool {
	larger := func(a, b Cost) int { return int(min(max(a.Bytes-b.Bytes, -1), 1)) }
	return slices.Equal(m.Sizes, sizes) && len(m.On) <= 64 && possible(m.Cycle) && m.Conflicts.valid(len(sizes) > 1) && slices.IsSortedFunc(m.On, larger) &&
		!slices.ContainsFunc(m.On, func(c Cost) bool {
			return c.Bytes <= 0 || !possible(c.Waits, c.Streams, c.Apart)
		})
}

// possible says whether an access, or a cycle, can take so long each, in ns.
func possible(ns ...float64) bool {
	return !slices.ContainsFunc(ns, func(x float64) bool { return !(x > 0 && x < 1e5) })
}

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
	memory, err := newMemory(slices.Max(spans))
	if err != nil {
		return nil, fmt.Errorf("measure what accesses cost: %w", err)
	}
	defer unix.Munmap(memory)
	for _, span := range spans {
		w := walk{b: memory[:span], mask: uint64(span/line - 1)}
		w.streams(2 * len(w.b) / line) // into the cache that holds it, if one does
		out = append(out, Cost{span, median(w.waits), median(w.streams), median(w.apart)})
	}
	return out, nil
}

// newMemory is of so many bytes, each page of which is there.
func newMemory(bytes int64) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map memory: %w", err)
	}
	for i := 0; i < len(memory); i += page {
		memory[i] = 1 // else all pages are the one zero page
		memory[i] = 0
	}
	return memory, nil
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
	return timed(func(n int) {
		for range n {
			x *= by
			x *= by
			x *= by
			x *= by
		}
		sink.Add(x)
	})[0] / (4 * multiply) // nothing makes it faster than it is; a host that has other work makes most rounds slower
}

// median of what an access takes in a round, in ns.
func median(f func(n int)) float64 {
	return timed(f)[rounds/2]
}

// timed gives what an access takes in each round, in ns, the fastest first.
func timed(f func(n int)) (times []float64) {
	for range rounds {
		start := time.Now()
		f(perRound)
		times = append(times, float64(time.Since(start).Nanoseconds())/perRound)
	}
	slices.Sort(times)
	return times
}
