package coverage

import (
	"math"
	"sort"
)

// kind is what an access costs: of which code it is, and which cache has its line.
type kind uint8

const (
	levelBits  = 2 // 0: the first cache, 3: memory
	codeKinds  = 1 << 4
	overlapped = 1 << 2
)

// kindOf is that of code, by chance but always the same: 512 bytes are alike, as record.CodeBlockSize.
func kindOf(pc uint64) kind {
	h := (pc / 512) * 0x9e3779b97f4a7c15 >> 58
	return kind(h << levelBits)
}

func (k kind) from(level int) kind { return k&^(1<<levelBits-1) | kind(level) }
func (k kind) level() int          { return int(k) & (1<<levelBits - 1) }

// plain is how long an access of the kind takes that waits for nothing, in ns: 0.1 to 0.6.
func (k kind) plain() float64 {
	return 0.1 * math.Pow(6, float64(k>>levelBits%codeKinds)/(codeKinds-1))
}

// waits are how long one takes more whose line is in the second cache, the third, or memory.
var waits = [4]float64{0, 2.5, 12, 80}

// alone is which part of that the kind's code waits: the rest goes on beside other work.
func (k kind) alone() float64 {
	return float64(1+k>>levelBits/codeKinds%overlapped) / overlapped
}

// meanAlone is what of the waits code waits on average.
const meanAlone = (1 + overlapped) / 2.0 / overlapped

// Clocking says what sessions go by.
type Clocking int

const (
	// ByAccesses: a counter of accesses draws the holds and times the reuses.
	ByAccesses Clocking = iota
	// ByTime: a timer, which finds slow code too often.
	ByTime
)

func (c Clocking) String() string { return [...]string{"accesses", "time"}[c] }

// costs are what an access of each kind takes in the clock's unit.
func costs(c Clocking) (out [256]float64) {
	for i := range out {
		k := kind(i)
		if out[i] = 1; c == ByTime {
			out[i] = k.plain() + waits[k.level()]*k.alone()
		}
	}
	return out
}

// clock is when each touch of a stream begins.
type clock struct {
	kinds []kind
	each  [256]float64
	upTo  []float64 // each clockStep touches
	lap   float64
}

const clockStep = 512

func newClock(kinds []kind, each [256]float64) clock {
	c := clock{kinds: kinds, each: each}
	for i, k := range kinds {
		if i%clockStep == 0 {
			c.upTo = append(c.upTo, c.lap)
		}
		c.lap += each[k]
	}
	return c
}

// at is when touch p of an endless run begins.
func (c *clock) at(p int) float64 {
	lap, i := p/len(c.kinds), p%len(c.kinds)
	t := float64(lap)*c.lap + c.upTo[i/clockStep]
	for _, k := range c.kinds[i-i%clockStep : i] {
		t += c.each[k]
	}
	return t
}

// find is the touch that begins next after a time.
func (c *clock) find(t float64) int {
	lap := math.Floor(t / c.lap)
	t -= lap * c.lap
	i := sort.Search(len(c.upTo), func(i int) bool { return c.upTo[i] > t }) - 1
	at, p := c.upTo[i], i*clockStep
	for p < len(c.kinds) && at < t {
		at += c.each[c.kinds[p]]
		p++
	}
	return int(lap)*len(c.kinds) + p
}
