package pprofout

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// An inflater unpacks DEFLATE (RFC 1951) from memory to memory that has room for all of it: there is no window to be copied from,
// and a word of the input is taken at once, so that profiles take it about 0.6 of the time that a reader takes. It is for what is
// whole and well-formed, and says only whether that was so.
type inflater struct {
	in     []byte
	at     int    // of the next byte of in
	bits   uint64 // taken from in, the next one lowest
	n      uint   // of bits that count
	out    []byte
	filled int
	lit    [1 << litBits]uint32
	dist   [1 << distBits]uint32
	more   []uint32 // of both, for longer codes
	sizes  [320]uint8
}

// Codes of up to so many bits are found in one step. No code has more than longestCode.
const (
	litBits     = 11
	distBits    = 9
	metaBits    = 7
	longestCode = 15
)

// An entry of a table has the code's length in its lowest byte, and what the code stands for:
//
//	literal:  entryLiteral | value<<16
//	length:   base<<16 | extra bits<<8
//	distance: likewise
//	longer:   entryMore | offset in more<<16 | bits of its index<<8
//
// The end of a block is entryEnd, and 0 what no code is.
const (
	entryLiteral = 1 << 7
	entryMore    = 1 << 6
	entryEnd     = 1 << 5
	entryLength  = entryEnd - 1
)

// gunzip unpacks a gzip of one member (RFC 1952) into out, and says how long it is. It is not ok if it is of another kind, does not
// fit, or is broken in any way.
func gunzip(packed, out []byte) (n int, ok bool) {
	const fixed, tail = 10, 8
	if len(packed) < fixed+tail || packed[0] != 0x1f || packed[1] != 0x8b || packed[2] != 8 || packed[3] != 0 { // no name or the like
		return 0, false
	}
	z := &inflater{in: packed[fixed:], out: out}
	if !z.blocks() {
		return 0, false
	}
	end := z.in[z.at-int(z.n/8):]
	ok = len(end) == tail && binary.LittleEndian.Uint32(end) == crc32.ChecksumIEEE(out[:z.filled]) &&
		binary.LittleEndian.Uint32(end[4:]) == uint32(z.filled)
	return z.filled, ok
}

// refill has at least 56 bits there, or all that are left: behind the end there are none.
func (z *inflater) refill() {
	if z.at+8 <= len(z.in) {
		z.bits |= binary.LittleEndian.Uint64(z.in[z.at:]) << z.n
		z.at += int(63-z.n) / 8
		z.n |= 56
		return
	}
	for z.n < 56 && z.at < len(z.in) {
		z.bits |= uint64(z.in[z.at]) << z.n
		z.at++
		z.n += 8
	}
}

// take takes n bits, of 32 at most; behind the end of the input it is not ok.
func (z *inflater) take(n uint) (v uint32, ok bool) {
	z.refill()
	if z.n < n {
		return 0, false
	}
	v = uint32(z.bits & (1<<n - 1))
	z.bits >>= n
	z.n -= n
	return v, true
}

func (z *inflater) blocks() bool {
	for {
		head, ok := z.take(3)
		if !ok {
			return false
		}
		switch head >> 1 {
		case 0:
			ok = z.stored()
		case 1:
			ok = z.fixedCodes() && z.codes()
		case 2:
			ok = z.readCodes() && z.codes()
		default:
			ok = false
		}
		if !ok || head&1 == 1 {
			return ok
		}
	}
}

// stored copies a block that is not packed.
func (z *inflater) stored() bool {
	z.bits >>= z.n % 8
	z.n -= z.n % 8
	v, ok := z.take(32)
	n := int(v & 0xffff)
	if !ok || uint32(n)^0xffff != v>>16 {
		return false
	}
	z.at -= int(z.n / 8)
	z.bits, z.n = 0, 0
	if n > len(z.in)-z.at || n > len(z.out)-z.filled {
		return false
	}
	z.filled += copy(z.out[z.filled:], z.in[z.at:z.at+n])
	z.at += n
	return true
}

func (z *inflater) fixedCodes() bool {
	for i := range 288 {
		switch {
		case i < 144, i >= 280:
			z.sizes[i] = 8
		case i < 256:
			z.sizes[i] = 9
		default:
			z.sizes[i] = 7
		}
	}
	for i := range 32 {
		z.sizes[288+i] = 5
	}
	return z.tables(288, 32)
}

var metaOrder = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readCodes reads the lengths of a block's codes.
func (z *inflater) readCodes() bool {
	v, ok := z.take(14)
	literals, distances, metas := int(v&31)+257, int(v>>5&31)+1, int(v>>10)+4
	if !ok || literals > 286 {
		return false
	}
	var meta [19]uint8
	for _, at := range metaOrder[:metas] {
		size, ok := z.take(3)
		if !ok {
			return false
		}
		meta[at] = uint8(size)
	}
	var table [1 << metaBits]uint32
	if !z.table(table[:], metaBits, meta[:], func(i int) uint32 { return entryLiteral | uint32(i)<<16 }) {
		return false
	}
	for i := 0; i < literals+distances; {
		z.refill()
		e := table[z.bits&(1<<metaBits-1)]
		n := uint(e & entryLength)
		if e == 0 || n > z.n {
			return false
		}
		z.bits >>= n
		z.n -= n
		size, times := uint8(e>>16), 1
		if size >= 16 {
			how := [...]struct {
				bits  uint
				least int
			}{{2, 3}, {3, 3}, {7, 11}}[size-16]
			v, ok := z.take(how.bits)
			if !ok || size == 16 && i == 0 {
				return false
			}
			times = how.least + int(v)
			if size == 16 {
				size = z.sizes[i-1]
			} else {
				size = 0
			}
		}
		if times > literals+distances-i {
			return false
		}
		for range times {
			z.sizes[i] = size
			i++
		}
	}
	return z.tables(literals, distances)
}

// tables makes those of the codes whose lengths are in sizes.
func (z *inflater) tables(literals, distances int) bool {
	z.more = z.more[:0]
	return z.table(z.lit[:], litBits, z.sizes[:literals], literalEntry) && z.table(z.dist[:], distBits, z.sizes[literals:literals+distances], distanceEntry)
}

func literalEntry(i int) uint32 {
	switch {
	case i < 256:
		return entryLiteral | uint32(i)<<16
	case i == 256:
		return entryEnd
	case i < 265:
		return uint32(i-254) << 16
	case i < 285:
		extra := uint32(i-261) / 4
		return (3+(4+uint32(i-265)%4)<<extra)<<16 | extra<<8
	case i == 285:
		return 258 << 16
	}
	return 0
}

func distanceEntry(i int) uint32 {
	switch {
	case i < 4:
		return uint32(i+1) << 16
	case i < 30:
		extra := uint32(i-2) / 2
		return (1+(2+uint32(i)%2)<<extra)<<16 | extra<<8
	}
	return 0
}

// table fills the table of codes with these lengths, which is indexed by so many bits; entry says what each stands for, 0 for what
// nothing may be. Codes may be too few only where there is one or none, as packers make it.
func (z *inflater) table(table []uint32, index uint, sizes []uint8, entry func(i int) uint32) bool {
	var count [longestCode + 1]int
	for _, n := range sizes {
		count[n]++
	}
	var next [longestCode + 2]int
	left := 1
	for n := 1; n <= longestCode; n++ {
		if left = 2*left - count[n]; left < 0 {
			return false
		}
		next[n+1] = (next[n] + count[n]) << 1
	}
	clear(table)
	if used := len(sizes) - count[0]; left > 0 && (used > 1 || used == 1 && count[1] == 0) {
		return false
	}
	for i, size := range sizes {
		if size == 0 {
			continue
		}
		n := uint(size)
		code := uint32(bits.Reverse16(uint16(next[n]))) >> (16 - n)
		next[n]++
		e := entry(i)
		if e == 0 {
			continue // an error once it is met
		}
		if n <= index {
			for k := code; k < uint32(len(table)); k += 1 << n {
				table[k] = e | uint32(n)
			}
			continue
		}
		short := &table[code&(1<<index-1)]
		if *short == 0 {
			*short = entryMore | uint32(len(z.more))<<16 | (longestCode-uint32(index))<<8 | uint32(index)
			z.more = append(z.more, make([]uint32, 1<<(longestCode-index))...)
		}
		more := z.more[*short>>16:][:1<<(longestCode-index)]
		for k := code >> index; k < uint32(len(more)); k += 1 << (n - index) {
			more[k] = e | uint32(n-index)
		}
	}
	return true
}

// codes unpacks a block by the tables.
func (z *inflater) codes() bool {
	in, out := z.in, z.out
	at, have, n, filled := z.at, z.bits, z.n, z.filled
	for {
		// A length and a distance with all that belongs to them take 48 bits at most.
		if at+8 <= len(in) {
			have |= binary.LittleEndian.Uint64(in[at:]) << n
			at += int(63-n) / 8
			n |= 56
		} else {
			for n < 56 && at < len(in) {
				have |= uint64(in[at]) << n
				at++
				n += 8
			}
		}
		e := z.lit[have&(1<<litBits-1)]
		if e&entryLiteral != 0 && n >= 48 && len(out)-filled >= 4 {
			// Up to three literals of one step each follow before more bits are needed.
			have >>= e & entryLength
			n -= uint(e & entryLength)
			out[filled] = byte(e >> 16)
			filled++
			if e = z.lit[have&(1<<litBits-1)]; e&entryLiteral != 0 {
				have >>= e & entryLength
				n -= uint(e & entryLength)
				out[filled] = byte(e >> 16)
				filled++
				if e = z.lit[have&(1<<litBits-1)]; e&entryLiteral != 0 {
					have >>= e & entryLength
					n -= uint(e & entryLength)
					out[filled] = byte(e >> 16)
					filled++
				}
			}
			continue
		}
		if e&entryMore != 0 {
			have >>= litBits
			if n < litBits {
				return false
			}
			n -= litBits
			e = z.more[e>>16:][have&(1<<(e>>8&0xff)-1)]
		}
		size := uint(e & entryLength)
		if e == 0 || size > n {
			return false
		}
		have >>= size
		n -= size
		if e&entryLiteral != 0 {
			if filled == len(out) {
				return false
			}
			out[filled] = byte(e >> 16)
			filled++
			continue
		}
		if e&entryEnd != 0 {
			z.at, z.bits, z.n, z.filled = at, have&(1<<n-1), n, filled
			return true
		}
		extra := uint(e >> 8 & 0xff)
		length := int(e>>16) + int(have&(1<<extra-1))
		have >>= extra
		if n < extra {
			return false
		}
		n -= extra
		d := z.dist[have&(1<<distBits-1)]
		if d&entryMore != 0 {
			have >>= distBits
			if n < distBits {
				return false
			}
			n -= distBits
			d = z.more[d>>16:][have&(1<<(d>>8&0xff)-1)]
		}
		size, extra = uint(d&entryLength), uint(d>>8&0xff)
		if d == 0 || size+extra > n {
			return false
		}
		have >>= size
		distance := int(d>>16) + int(have&(1<<extra-1))
		have >>= extra
		n -= size + extra
		if distance > filled || length > len(out)-filled {
			return false
		}
		repeat(out[filled-distance:], distance, length)
		filled += length
	}
}

// repeat copies what out begins with to where the distance is, as far as a length, for which there is room.
func repeat(out []byte, distance, length int) {
	const step = 8
	if distance < step || len(out) < distance+length+step {
		for k := range length {
			out[distance+k] = out[k]
		}
		return
	}
	for k := 0; k < length; k += step { // and some bytes more, which others take the place of
		binary.LittleEndian.PutUint64(out[distance+k:], binary.LittleEndian.Uint64(out[k:]))
	}
}
