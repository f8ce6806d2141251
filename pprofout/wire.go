package pprofout

import "encoding/binary"

// Wire types of protocol buffers.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// Keys, in one byte, of two of a profile's fields.
const (
	sampleField = 2<<3 | wireBytes
	textField   = 6<<3 | wireBytes
)

// wireField is what a known field of a message must be: a number, a text, a
// list of numbers, which may be packed, or a message.
type wireField struct {
	text, list bool
	message    map[int]wireField
}

// wireProfile is the schema of profile.proto as far as a reader minds: a field of
// another type than it has here is an error, an unknown one is skipped.
var wireProfile = func() map[int]wireField {
	numbers := func(n int) map[int]wireField {
		m := map[int]wireField{}
		for i := 1; i <= n; i++ {
			m[i] = wireField{}
		}
		return m
	}
	list := wireField{list: true}
	valueType := wireField{message: numbers(2)}
	location := numbers(5)
	location[4] = wireField{message: numbers(3)}
	profile := numbers(15)
	profile[1], profile[11] = valueType, valueType
	profile[2] = wireField{message: map[int]wireField{1: list, 2: list, 3: {message: numbers(4)}}}
	profile[3] = wireField{message: numbers(10)}
	profile[4] = wireField{message: location}
	profile[5] = wireField{message: numbers(5)}
	profile[6] = wireField{text: true}
	profile[13] = list
	return profile
}()

// brokenAt is the offset of the first byte in data, which begins at offset base,
// that is no protocol buffers message of these fields, and what is wrong there;
// "" if nothing is.
func brokenAt(data []byte, base int, fields map[int]wireField) (at int, what string) {
	for pos := 0; pos < len(data); {
		key, n := binary.Uvarint(data[pos:])
		if n <= 0 {
			return base + pos, "a field number is cut off or too long"
		}
		f, known := fields[int(key>>3)]
		start := pos
		pos += n
		typ := key & 7
		if typ != wireVarint && typ != wire64 && typ != wireBytes && typ != wire32 {
			return base + start, "an unknown type of field"
		}
		if known && !f.takes(typ) {
			return base + start, "a field is not of its type"
		}
		switch typ {
		case wireVarint:
			if _, n = binary.Uvarint(data[pos:]); n <= 0 {
				return base + pos, "a number is cut off or too long"
			}
			pos += n
		case wire64, wire32:
			if n = 8; typ == wire32 {
				n = 4
			}
			if len(data)-pos < n {
				return base + pos, "a number is cut off"
			}
			pos += n
		case wireBytes:
			size, n := binary.Uvarint(data[pos:])
			if n <= 0 {
				return base + pos, "a length is cut off or too long"
			}
			if size > uint64(len(data)-pos-n) {
				return base + pos, "a field is longer than what is left"
			}
			pos += n
			inside := data[pos : pos+int(size)]
			switch {
			case f.message != nil:
				if at, what := brokenAt(inside, base+pos, f.message); what != "" {
					return at, what
				}
			case f.list:
				for i := 0; i < len(inside); i += n {
					if _, n = binary.Uvarint(inside[i:]); n <= 0 {
						return base + pos + i, "a number is cut off or too long"
					}
				}
			}
			pos += int(size)
		}
	}
	return 0, ""
}

// takes says whether the field can have a wire type.
func (f wireField) takes(typ uint64) bool {
	if f.text || f.message != nil {
		return typ == wireBytes
	}
	return typ == wireVarint || f.list && typ == wireBytes
}

// parted is an encoded profile, with its samples told from what it has besides.
type parted struct {
	rest    []byte // all but the samples
	samples int
	every   int
	at      []int // where in the profile every so manyth sample is, the first included
	// passed is told of bytes of the profile that were read, and says of how many it takes note; nil: nobody is told.
	passed func(bytes []byte) int
}

// splitSamples tells where the samples, field 2, of an encoded profile are. Samples whose field has a
// number in more bytes than it takes are among the rest, and so is what is broken.
func splitSamples(data []byte, every int) *parted {
	s := &parted{every: every}
	from := 0 // of what is to go to the rest
	for at := 0; at < len(data); {
		n := fieldSize(data[at:])
		if data[at] == sampleField {
			if s.samples%every == 0 {
				s.at = append(s.at, at)
			}
			s.samples++
			s.rest = append(s.rest, data[from:at]...)
			from = at + n
		}
		at += n
	}
	s.rest = append(s.rest, data[from:]...)
	return s
}

// fieldSize is that of the first field of a message, its number included, in
// bytes: all there are if it is broken.
func fieldSize(data []byte) int {
	key, n := binary.Uvarint(data)
	if n <= 0 {
		return len(data)
	}
	value, m := binary.Uvarint(data[n:])
	size := uint64(max(m, 0))
	switch key & 7 {
	case wire64:
		size = 8
	case wire32:
		size = 4
	case wireBytes:
		size += value
	}
	if size == 0 || size > uint64(len(data)-n) || value > uint64(len(data)) && key&7 == wireBytes {
		return len(data)
	}
	return n + int(size)
}
