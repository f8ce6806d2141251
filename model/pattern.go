package model

import "math/bits"

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

// Pattern is how one instruction touches memory, in one direction: see docs/explanation/patterns.md.
type Pattern struct {
	Use      []*Location // leaf first
	Op       Op
	TID      int     // 0: of all threads
	Data     *Data   // nil if that is not known
	Accesses float64 // that it stands for; of the program, not of the sample
	Stride   Stride
	Step     int64   // bytes; the most frequent one, 0 where there is none
	Kept     float64 // share of the steps that keep to the class
	// Prefetched: hardware prefetchers cover it, see Strides.Prefetched.
	Prefetched bool
	// By Profile.Caches, of the lines that this instruction has fetched; nil if not known.
	LineUse []LineUse
	Traffic []Traffic
}
