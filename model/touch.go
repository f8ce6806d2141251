package model

import "math"

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
	// Chases, Apart and Streams are lines fetched in a thousand instructions: each at an address that the one before has
	// to come for; at others that no prefetcher foresees; and in strides that prefetchers follow.
	Chases, Apart, Streams int
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
