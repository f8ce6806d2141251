package model

import (
	"fmt"
	"math"
	"slices"
)

// Manner says how the accesses of one instruction follow each other.
type Manner uint8

const (
	// MannerUnknown: too few accesses in a row were seen to tell.
	MannerUnknown Manner = iota
	// MannerStride: a step from the access before that is one of the instruction's frequent ones: Touch.Stride, 0 for the
	// same place.
	MannerStride
	// MannerGather: the address is made of a value that was itself read in order, as in a[b[i]].
	MannerGather
	// MannerChase: the address is made of a value that was itself read out of order, as in p = p->next.
	MannerChase
	// MannerRandom: none of these.
	MannerRandom
	numManners
)

var mannerNames = [numManners]string{"unknown", "stride", "gather", "chase", "random"}

func (p Manner) String() string {
	if p >= numManners {
		return "unknown"
	}
	return mannerNames[p]
}

// ParseManner is the inverse of Manner.String.
func ParseManner(s string) (p Manner, ok bool) {
	for i, n := range mannerNames {
		if n == s {
			return Manner(i), true
		}
	}
	return 0, false
}

// Waits says whether an access like this waits for memory where it misses: no prefetcher
// follows it. A stride within a page is followed.
func (t *Touch) Waits() bool {
	return t.Manner > MannerStride || t.Manner == MannerStride && (t.Stride >= prefetched || t.Stride <= -prefetched)
}

// StrideOf is the class of the accesses of an instruction, or of several together; the most frequent step; and the share that keeps
// to the class. It is what an exact stream's steps would be classed as.
func StrideOf(touches []*Touch) (class Stride, step int64, kept float64) {
	var s Strides
	var from Origins
	for _, t := range touches {
		n := uint64(math.Round(t.Accesses))
		switch t.Manner {
		case MannerUnknown:
			continue
		case MannerStride:
			s.Add(t.Stride, n)
			continue
		case MannerChase:
			from.FromChain += n
			from.FromValue += n
		case MannerGather:
			from.FromValue += n
		}
		from.Known += n
		s.Steps += n
	}
	class, kept = s.Class(from)
	if f := s.Frequent(); len(f) > 0 {
		step = f[0].Bytes
	}
	return class, step, kept
}

// prefetched: strides below half a page are followed by the prefetchers of today's processors, which
// stop at a page's end.
const prefetched = 2048

// Touch is how an instruction touches memory: a sum over what was read ahead, of all accesses of the
// instruction in one pattern to one data object. It is no part of a Record: the records' accesses are these
// very ones.
type Touch struct {
	Use    []*Location // the instruction alone
	Op     Op
	Data   *Data
	Manner Manner
	Stride int64 // bytes from access to access, of MannerStride
	// Windows is in how many holds it was seen, and Accesses how many of the program's accesses that
	// stands for.
	Windows  int64
	Accesses float64
	// Fetches are of these accesses those to a line that had not been touched for as long as was read ahead
	// before them, some thousand accesses: all that can miss in a cache that is not tiny, and none
	// that can't be told.
	Fetches float64
	// Used is how many bytes of the fetched lines were touched as far as was read ahead, added up, and Written
	// how many of the lines were written to.
	Used, Written float64
	// Member says which of a struct's members it touches, as "next of struct node"; "" if that is not known.
	Member string
	// Within is how far into its block one of the accesses is, if Data is one, in bytes. It is not written.
	Within uint64
}

// TouchSum is how several touches, as of a line of the source or of a data object, touch memory together.
type TouchSum struct {
	Accesses, Fetches float64 // as of a Touch
	Windows           int64   // the most of one
	// Used is how many bytes of a fetched line are touched, as far as was read ahead, and Written the share of fetched lines
	// that are written to.
	Used, Written float64
	Waits         bool // no prefetcher follows most fetches
	// Stride, Step and Kept are StrideOf them.
	Stride Stride
	Step   int64
	Kept   float64
	Data   string // that most of it touches
	// Members are those of structs that are touched, each once, in the order in which they come.
	Members []string
}

// SumTouches sums them up. name is what data are called, which may be nil.
func SumTouches(touches []*Touch, name func(*Data) string) (s TouchSum) {
	waiting, data := 0.0, map[string]float64{}
	for _, t := range touches {
		s.Accesses += t.Accesses
		s.Fetches += t.Fetches
		s.Used += t.Used
		s.Written += t.Written
		s.Windows = max(s.Windows, t.Windows)
		if t.Waits() {
			waiting += t.Fetches
		}
		if t.Member != "" && !slices.Contains(s.Members, t.Member) {
			s.Members = append(s.Members, t.Member)
		}
		data[name(t.Data)] += t.Fetches + 1e-6*t.Accesses // accesses tell where nothing is fetched
	}
	if s.Fetches > 0 {
		s.Used, s.Written = s.Used/s.Fetches, s.Written/s.Fetches
		s.Waits = waiting > s.Fetches/2
	}
	best := -1.0
	for name, n := range data {
		if n > best || n == best && name < s.Data {
			s.Data, best = name, n
		}
	}
	s.Stride, s.Step, s.Kept = StrideOf(touches)
	return s
}

// Wait says what a thread did at a random moment.
type Wait uint8

const (
	WaitUnknown Wait = iota
	WaitNo           // no instruction right behind it fetches a line
	WaitMemory       // one does
	numWaits
)

var waitNames = [numWaits]string{"unknown", "no", "memory"}

func (w Wait) String() string {
	if w >= numWaits {
		return "unknown"
	}
	return waitNames[w]
}

// ParseWait is the inverse of Wait.String.
func ParseWait(s string) (w Wait, ok bool) {
	for i, n := range waitNames {
		if n == s {
			return Wait(i), true
		}
	}
	return 0, false
}

// MomentRates say what is fetched around a moment. All are rounded, so that like moments are one.
type MomentRates struct {
	// Near is how many times as often, in percent, such an instruction has fetches right behind it as a random one of
	// those around: 100 if that is not known. A fetch counts by how long it is waited for.
	Near int
	// Chases, Apart and Streams are lines fetched in ten thousand instructions: each at an address that the one before has
	// to come for; at others that no prefetcher foresees; and in strides that prefetchers follow.
	Chases, Apart, Streams int
	// Runs is how many ns a thousand instructions take if all lines are in the first cache, by a model of the processor: 0 if
	// that is not known.
	Runs int
}

// Moment is a sum over samples of CPU time: threads held at random moments of it.
type Moment struct {
	// Stack is where they were held, leaf first: the leaf is the access that is waited for, if there is one.
	Stack []*Location
	TID   int
	Wait  Wait
	// Op, Data, Manner and Stride are those of the access that is waited for.
	Op     Op
	Data   *Data
	Manner Manner
	Stride int64
	MomentRates

	Samples     int64
	Nanoseconds float64 // of CPU time that they stand for
}

// Cost is what an access costs that finds its data at one place, in ns.
type Cost struct {
	Bytes   int64   // of the data that it was measured on, all used before any is used again; 0: a whole level's
	Waits   float64 // where the next address depends on it
	Streams float64 // where lines are read in order
	Apart   float64 // where no address depends on another, and no prefetcher foresees it; 0: not measured
	// Within is, of a level, how many bytes of data a program can go through and still find them there; 0: as many as it has.
	Within int64
}

// CostsByLevel are those in each cache and behind the last, each the geometric mean of what was measured there; nil where nothing
// was. Of the last cache that is up to where it is nearer to its fastest than to memory, by factors: its far slices may not be, and
// a virtual machine may have a part of it only.
func CostsByLevel(on []Cost, caches []Cache) (out []Cost) {
	if len(on) == 0 || len(caches) == 0 {
		return nil
	}
	from := int64(0)
	for i := range len(caches) + 1 {
		to := int64(math.MaxInt64)
		if i < len(caches) {
			to = caches[i].Size
		}
		var sum Cost
		n, within := 0.0, int64(0)
		last := on[0] // for a level on whose sizes nothing was measured: of the nearest below
		for _, c := range on {
			if c.Bytes < from {
				last = c
			}
			if c.Bytes < from || c.Bytes >= to {
				continue
			}
			if far := on[len(on)-1].Waits; i == len(caches)-1 && n > 0 && c.Waits*c.Waits > math.Exp(sum.Waits/n)*far {
				within = halfWay(last.Bytes, c.Bytes)
				break
			}
			last = c
			sum.Waits += math.Log(c.Waits)
			sum.Streams += math.Log(c.Streams)
			sum.Apart += math.Log(c.Apart)
			n++
		}
		if n > 0 {
			last = Cost{Waits: math.Exp(sum.Waits / n), Streams: math.Exp(sum.Streams / n), Apart: math.Exp(sum.Apart / n)}
		}
		last.Bytes, last.Within = 0, within
		out = append(out, last)
		from = to
	}
	return out
}

// halfWay is between two sizes, by factors.
func halfWay(a, b int64) int64 { return int64(math.Sqrt(float64(a) * float64(b))) }

// CostSteps are caches, real ones and steps of them, between which data cost what was measured: one cost for each, and one
// behind the last.
func (p *Profile) CostSteps() (steps []Cache, costs []Cost) {
	if len(p.CostsOn) == 0 || len(p.Caches) == 0 {
		return p.Caches, p.Costs
	}
	levels := CostsByLevel(p.CostsOn, p.Caches)
	from := int64(0)
	for i, cache := range p.Caches {
		var within []Cost
		for _, c := range p.CostsOn {
			if c.Bytes >= from && c.Bytes < cache.Size {
				within = append(within, c)
			}
		}
		if len(within) == 0 {
			within = levels[i : i+1]
		}
		for k, c := range within {
			step := cache
			if k+1 < len(within) {
				step = Cache{Level: fmt.Sprintf("%s/%d", cache.Level, k+1), Size: halfWay(c.Bytes, within[k+1].Bytes), Line: cache.Line}
			}
			steps, costs = append(steps, step), append(costs, c)
		}
		from = cache.Size
	}
	return steps, append(costs, levels[len(levels)-1])
}
