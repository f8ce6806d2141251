package cost

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// Conflicts are what accesses cost that compete for few of a cache's sets, as in steps of a power of two they do: the first
// cache's set is told by the place in a page, and the further ones' in part. Such lines push each other out long
// before the cache is full, and few of their fetches go on at a time (Hill and Smith, Evaluating associativity in CPU caches, IEEE
// TC 38, 1989, call them conflict misses).
type Conflicts struct {
	Room  int // lines a page apart that the second cache holds
	Steps []ConflictStep
}

// ConflictStep is the cost of accesses so many bytes apart, no address of which depends on another, in ns.
type ConflictStep struct {
	Bytes         int64
	Loads, Stores [2]float64 // where lines are in the second cache, and beyond it
}

// valid says whether that can be, or nothing is there where nothing is wanted.
func (c *Conflicts) valid(wanted bool) bool {
	if !wanted {
		return c.Room == 0 && len(c.Steps) == 0
	}
	return c.Room > 0 && c.Room <= most/line && len(c.Steps) == len(conflictSteps) && !slices.ContainsFunc(c.Steps, func(s ConflictStep) bool {
		return !slices.Contains(conflictSteps[:], s.Bytes) || !possible(s.Loads[:]...) || !possible(s.Stores[:]...)
	})
}

// conflictSteps are those that use a 64th of the places in a page, a 32nd, a 16th, and an eighth.
var conflictSteps = [...]int64{4096, 2048, 1024, 512}

// Room is how many lines at one place in a page a cache of so many bytes holds whose sets are chosen by that alone, as first
// caches' are.
func Room(bytes int64) int { return int(bytes / page) }

// MeasureConflicts measures them on a machine whose second cache has so many bytes.
func MeasureConflicts(second int64) (c Conflicts, err error) {
	// Lines at each place in a page that is used: as many as fit if half of the cache's sets tell by more, and as surely don't.
	near, far := max(second/page/2, 32), max(8*second/page, 512)
	far = min(far, most/page)
	memory, err := newMemory(far * page)
	if err != nil {
		return c, fmt.Errorf("measure what conflicts in caches cost: %w", err)
	}
	defer unix.Munmap(memory)
	for _, step := range conflictSteps {
		s := ConflictStep{Bytes: step}
		for i, pages := range []int64{near, far} {
			w := steps{b: memory[:pages*page], step: int(step)}
			w.loads(2 * len(w.b) / w.step)
			s.Loads[i], s.Stores[i] = median(w.loads), median(w.stores)
		}
		c.Steps = append(c.Steps, s)
	}
	// Where they are pushed out in part, some fetches go on at a time with others: what is a quarter of the way is no longer held.
	held := c.Steps[0].Loads[0] * math.Pow(c.Steps[0].Loads[1]/c.Steps[0].Loads[0], 0.25)
	for n := near; n <= far; n *= 2 {
		w := steps{b: memory[:n*page], step: page}
		w.loads(2 * int(n))
		if median(w.loads) > held {
			break
		}
		c.Room = int(float64(n) * math.Sqrt2)
	}
	if c.Room == 0 {
		c.Room = int(near)
	}
	return c, nil
}

// steps go through memory, each time on from where they were.
type steps struct {
	b        []byte
	step, at int
}

func (w *steps) loads(n int) {
	at, sum := w.at, uint64(0)
	for range n {
		sum += uint64(w.b[at])
		if at += w.step; at >= len(w.b) {
			at = 0
		}
	}
	w.at = at
	sink.Add(sum)
}

func (w *steps) stores(n int) {
	at := w.at
	for i := range n {
		w.b[at] = byte(i)
		if at += w.step; at >= len(w.b) {
			at = 0
		}
	}
	w.at = at
}
