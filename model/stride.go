package model

import (
	"cmp"
	"math/bits"
	"slices"
)

// Stride is how an instruction walks through memory: docs/explanation/patterns.md has the definitions, which
// all that says a stride follows.
type Stride uint8

const (
	StrideUnknown   Stride = iota // fewer than MinSteps steps were seen
	StrideZero                    // the same address again
	StrideWithin                  // one step, smaller than a cache line
	StrideLine                    // one step, of a cache line
	StrideLarger                  // one step, larger than a cache line
	StrideSeveral                 // a few steps that come again and again
	StrideGather                  // irregular, addresses come from values that were read in order
	StrideChase                   // irregular, addresses come from values that were read at such addresses
	StrideRandom                  // irregular, addresses do not come from values that were read
	StrideIrregular               // one of the last three: where addresses come from is not known
	NumStrides
)

var strideNames = [NumStrides]string{"", "zero", "within_line", "line", "larger", "several", "gather", "chase", "random", "irregular"}

func (s Stride) String() string {
	if s >= NumStrides {
		return "invalid"
	}
	return strideNames[s]
}

// ParseStride is the inverse of Stride.String; ok is false for any other word.
func ParseStride(s string) (c Stride, ok bool) {
	i := slices.Index(strideNames[:], s)
	return Stride(max(i, 0)), i >= 0
}

// Regular says that the steps alone tell the next address.
func (s Stride) Regular() bool { return s >= StrideZero && s <= StrideSeveral }

// ByAddress is the class as it is where no values are known: gather, chase and random are one.
func (s Stride) ByAddress() Stride {
	if s == StrideGather || s == StrideChase || s == StrideRandom {
		return StrideIrregular
	}
	return s
}

const (
	// MinSteps is the least number of steps that tell a class.
	MinSteps = 16
	// KeptShare is the share of steps that must keep to a class's steps.
	KeptShare = 0.75
	// SeveralSteps is how many different steps StrideSeveral may have.
	SeveralSteps = 4
	// MaxPrefetchedStep is the largest step, in bytes, that hardware prefetchers follow: 2 KB is
	// that of the prefetcher by instruction in Intel's optimization manual.
	MaxPrefetchedStep = 2048
)

// Step is a difference of addresses, in bytes, and how many of an instruction's steps were it.
type Step struct {
	Bytes int64
	N     uint64
}

// strideSteps is how many steps are counted at once. What is left out of the count of a step is at
// most a 17th of all steps that have no counter.
const strideSteps = 16

// Strides counts the steps of one instruction: the differences of the addresses of accesses that
// follow each other, of one direction in one thread. The most frequent ones are counted after
// Misra and Gries ("Finding repeated elements", 1982), in bounded memory: a count may be too small
// by what came too seldom, and is never too large. The zero value has seen none.
type Strides struct {
	Steps   uint64 // all of them
	counted int
	steps   [strideSteps]Step
}

// Add counts a step n times.
func (s *Strides) Add(bytes int64, n uint64) {
	s.Steps += n
	s.count(Step{bytes, n})
}

func (s *Strides) count(x Step) {
	for i := range s.steps[:s.counted] {
		if s.steps[i].Bytes == x.Bytes {
			s.steps[i].N += x.N
			if i > 0 && s.steps[i].N > s.steps[i-1].N { // what is frequent is found first
				s.steps[i], s.steps[i-1] = s.steps[i-1], s.steps[i]
			}
			return
		}
	}
	for x.N > 0 {
		if s.counted < strideSteps {
			s.steps[s.counted] = x
			s.counted++
			return
		}
		least := x.N
		for i := range s.steps {
			least = min(least, s.steps[i].N)
		}
		x.N -= least
		kept := s.steps[:0]
		for _, k := range s.steps {
			if k.N -= least; k.N > 0 {
				kept = append(kept, k)
			}
		}
		s.counted = len(kept)
	}
}

// Merge adds the steps that o has counted.
func (s *Strides) Merge(o *Strides) {
	s.Steps += o.Steps
	for _, x := range o.steps[:o.counted] {
		s.count(x)
	}
}

// Frequent is the most frequent steps, at most SeveralSteps, the most frequent one first.
func (s *Strides) Frequent() []Step {
	all := slices.Clone(s.steps[:s.counted])
	slices.SortStableFunc(all, func(a, b Step) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Bytes, b.Bytes))
	})
	return all[:min(len(all), SeveralSteps)]
}

// Kept is those of the Frequent steps that are no chance: two and more, and one in 16 at least.
func (s *Strides) Kept() []Step {
	all := s.Frequent()
	for i, x := range all {
		if x.N < 2 || x.N*MinSteps < s.Steps {
			return all[:i]
		}
	}
	return all
}

// Origins says of how many accesses of an instruction it is known where their addresses come from:
// FromValue of them from a value that was loaded before, and FromChain of those from a value that
// was itself loaded at an address that came from a loaded value.
type Origins struct{ Known, FromValue, FromChain uint64 }

// Class is the class of the steps, and the share of them that keeps to it: of one step, of the
// few ones, or of an irregular class what the others have left. Steps go before origins: a list
// that lies in memory in its order is a stride, which a prefetcher follows.
func (s *Strides) Class(from Origins) (class Stride, share float64) {
	if s.Steps < MinSteps {
		return StrideUnknown, 0
	}
	frequent := s.Frequent()
	kept := uint64(0)
	for i, f := range frequent {
		kept += f.N
		if share = float64(kept) / float64(s.Steps); share < KeptShare {
			continue
		}
		if i > 0 {
			return StrideSeveral, share
		}
		return constantStride(f.Bytes), share
	}
	return irregular(from), 1 - share
}

func constantStride(step int64) Stride {
	switch {
	case step == 0:
		return StrideZero
	case step > -LineBytes && step < LineBytes:
		return StrideWithin
	case step == -LineBytes || step == LineBytes:
		return StrideLine
	}
	return StrideLarger
}

func irregular(from Origins) Stride {
	known := float64(from.Known)
	switch {
	case from.Known == 0:
		return StrideIrregular
	case float64(from.FromChain) >= known/2:
		return StrideChase
	case float64(from.FromValue) >= known/2:
		return StrideGather
	}
	return StrideRandom
}

// Prefetched says whether hardware prefetchers cover the accesses: at least KeptShare of the steps
// are frequent ones and not larger than MaxPrefetchedStep.
func (s *Strides) Prefetched() bool {
	if s.Steps < MinSteps {
		return false
	}
	near := uint64(0)
	for _, f := range s.Frequent() {
		if f.Bytes >= -MaxPrefetchedStep && f.Bytes <= MaxPrefetchedStep {
			near += f.N
		}
	}
	return float64(near) >= KeptShare*float64(s.Steps)
}

// LineStay is what happens to a line while it is in a cache: from the touch that fetches it to
// the fetch after it has gone.
type LineStay struct {
	Touched uint64 // a bit for each byte of the line
	Stored  bool   // it has to be written back
}

// Touch notes what an access does to the line of that number. The access overlaps the line.
func (s *LineStay) Touch(line uint64, a *Access) {
	s.Touched |= LineMask(line, a.Addr, a.Size)
	s.Stored = s.Stored || a.Op == Store
}

// Bytes is how many bytes of the line were touched, 1 to LineBytes.
func (s *LineStay) Bytes() int { return bits.OnesCount64(s.Touched) }

// LineMask has a bit for each byte of the line of that number that size bytes at addr cover; a size of 0 is taken as 1.
func LineMask(line, addr uint64, size uint32) uint64 {
	start := line * LineBytes
	end := addr + uint64(max(size, 1)) - 1 // the last byte
	if end < addr {
		end = ^uint64(0)
	}
	from, to := uint64(0), uint64(LineBytes-1)
	if addr > start {
		from = addr - start
	}
	if end-start < LineBytes {
		to = end - start
	}
	return ^uint64(0) << from & (^uint64(0) >> (LineBytes - 1 - to))
}

// LineUse is how much of fetched lines is used before they go.
type LineUse struct {
	Stays float64
	Bytes float64 // touched, summed over stays
}

// Mean is the mean number of bytes touched of a line; ok is false where none was fetched.
func (u LineUse) Mean() (bytes float64, ok bool) {
	if !(u.Stays > 0) {
		return 0, false
	}
	return u.Bytes / u.Stays, true
}

// Add adds another's stays.
func (u *LineUse) Add(o LineUse) { u.Stays += o.Stays; u.Bytes += o.Bytes }

// Traffic is what goes over the border between a cache and what lies behind it, in lines. The
// cache is fully associative, LRU, fetches what is stored to and writes it back when it goes.
type Traffic struct {
	Fills      float64 // lines fetched: misses
	WriteBacks float64 // lines that were stored to and have gone
}

// Bytes is the traffic in both directions.
func (t Traffic) Bytes() float64 { return (t.Fills + t.WriteBacks) * LineBytes }

// Add adds other traffic.
func (t *Traffic) Add(o Traffic) { t.Fills += o.Fills; t.WriteBacks += o.WriteBacks }
