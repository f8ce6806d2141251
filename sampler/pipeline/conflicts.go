package pipeline

import "math"

// Lines in steps of a power of two, as of a column of a matrix, compete for few of a cache's sets: the place in a page chooses that
// of the first cache, and in part that of the second. They push each other out long before a cache is full, and few of their
// fetches go on at a time. How crowded the places in a page are is counted in the stretch; what that costs was measured.

// Degrees are how crowded a place in a page is: as if all lines were at any of them, at an eighth, a 16th, a 32nd, or at one alone.
const Degrees = 5

// Conflicts are what accesses cost whose lines are at few places in a page; the zero value where that is not known.
type Conflicts struct {
	// Rooms are how many lines at one place in a page the first cache and the second hold.
	Rooms [2]int
	// Loads and Stores are how long one takes, in ns, from the second cache and from beyond, by degree.
	Loads, Stores [Degrees][2]float64
}

// Holds is how many lines of such a degree the first cache or the second holds.
func (c *Conflicts) Holds(cache, degree int) int {
	return c.Rooms[cache] * placesUsed(degree)
}

const placesInPage = 64

// placesUsed is how many places in a page lines of a degree are at.
func placesUsed(degree int) int {
	if degree == 0 {
		return placesInPage
	}
	return placesInPage >> (degree + 2)
}

// leastCrowded lines must be at one place in a page to compete: caches hold as many at least.
const leastCrowded = 8

// crowds are the lines at each place in a page.
type crowds struct {
	lines  [placesInPage][]int32 // the last touched at the end
	degree [placesInPage]uint8
}

func (c *crowds) reset() {
	for i := range c.lines {
		c.lines[i] = c.lines[i][:0]
	}
}

// touch says how many other lines at the same place in a page were touched since this one was.
func (c *crowds) touch(addr uint64, line int32, seen bool) (since int) {
	at := &c.lines[addr/lineSize%placesInPage]
	if !seen {
		*at = append(*at, line)
		return 0
	}
	last := len(*at) - 1
	for (*at)[last-since] != line {
		since++
	}
	copy((*at)[last-since:], (*at)[last-since+1:])
	(*at)[last] = line
	return since
}

// weigh finds the degrees. n is how many lines there are.
func (c *crowds) weigh(n int) {
	for i := range c.lines {
		c.degree[i] = 0
		if here := len(c.lines[i]); here >= leastCrowded {
			times := placesInPage * float64(here-1) / float64(n-1) // 1 if the others are anywhere
			c.degree[i] = uint8(max(math.Round(math.Log2(times))-2, 0))
		}
	}
}

// crowd says of the touches, each of an access, how crowded their places are, and at which level their sets leave their lines.
func (m *Model) crowd(accesses []Access, t *Times) {
	m.crowds.reset()
	for i := range m.touches {
		a := &m.touches[i]
		a.since = m.crowds.touch(accesses[i].Addr, a.line, !a.cold)
	}
	m.crowds.weigh(len(m.lines))
	rooms := m.costs.Conflicts.Rooms
	for i := range m.touches {
		a := &m.touches[i]
		a.degree = m.crowds.degree[accesses[i].Addr/lineSize%placesInPage]
		switch {
		case a.degree == 0:
		case a.cold:
			t.Crowded[a.degree]++
		case a.since >= rooms[1]:
			a.found = 2
		case a.since >= rooms[0]:
			a.found = 1
		}
	}
}

// conflictCycles are costs in cycles.
type conflictCycles struct {
	waits [Levels]float64
	least [2][Degrees][2]float64 // of loads and of stores
}

func newConflictCycles(c *Costs) *conflictCycles {
	out := new(conflictCycles)
	for i := range out.waits {
		out.waits[i] = max(c.Waits[i]-c.Waits[0], 0) / c.Cycle
	}
	for d := range Degrees {
		for i := range 2 {
			out.least[0][d][i], out.least[1][d][i] = c.Conflicts.Loads[d][i]/c.Cycle, c.Conflicts.Stores[d][i]/c.Cycle
		}
	}
	return out
}

// compete is when a line is there that competes for its set and comes from such a level, if it is asked for at t.
func (b *board) compete(a *touch, level int, t float64) float64 {
	kind := 0
	if a.store {
		kind = 1
	}
	slot := b.misses % fills
	b.misses++
	t = max(t, b.missing[slot]) + b.costs.waits[level]
	t = max(t, b.crowd+b.costs.least[kind][a.degree][min(level, 2)-1])
	b.missing[slot], b.crowd = t, t
	return t
}
