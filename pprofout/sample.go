package pprofout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/google/pprof/profile"
)

// A labelKey is a label that a reader minds.
type labelKey uint8

const (
	ofKind labelKey = iota
	ofAccess
	ofBelow
	ofExact
	ofData
	ofPair
	ofPairTime
	ofReadAhead
	ofDistinct
	ofHot
	ofReuseTime
	ofCPUTime
	ofTID
	ofEpoch
	ofHold
	ofOpen
	ofGroup
	ofStack
	ofEnd
	ofUsed
	ofWritten
	ofMember
	ofWrittenMember
	ofSource
	ofPattern
	ofStride
	ofWait
	ofNear
	ofChases
	ofApart
	ofStreams
	ofRuns
	ofChases1k
	ofApart1k
	ofStreams1k
	numLabels
)

var labelNames = [numLabels]string{kindLabel, accessLabel, belowLabel, exactLabel, dataLabel, pairLabel, pairTime, readAhead, distinct, hotSet, reuseTime, cpuTime,
	tidLabel, epochLabel, holdLabel, openLabel, groupLabel, stackLabel, endLabel, usedLabel, writeLabel, memberLabel, writtenMemberLabel, sourceLabel, patternLabel, strideLabel, waitLabel,
	nearLabel, chasesLabel, apartLabel, streamsLabel, runsLabel, chases1k, apart1k, streams1k}

// A sample is one of pprof's, as far as a reader minds: of each label the first text and the first number.
type sample struct {
	stack   []*profile.Location
	values  []int64
	texts   [numLabels]string
	numbers [numLabels]int64
	has     [2]uint64 // which texts and numbers may be there, a bit each
}

func (s *sample) reset() {
	s.stack, s.values = s.stack[:0], s.values[:0]
	for has := s.has[0]; has != 0; has &= has - 1 {
		s.texts[bits.TrailingZeros64(has)] = ""
	}
	for has := s.has[1]; has != 0; has &= has - 1 {
		s.numbers[bits.TrailingZeros64(has)] = 0
	}
	s.has = [2]uint64{}
}

func (s *sample) text(k labelKey) string  { return s.texts[k] }
func (s *sample) number(k labelKey) int64 { return s.numbers[k] }

// set takes over a sample that is parsed.
func (s *sample) set(from *profile.Sample) {
	s.reset()
	s.stack, s.values = append(s.stack, from.Location...), append(s.values, from.Value...)
	for k, name := range labelNames {
		s.texts[k], s.numbers[k] = first(from.Label[name]), first(from.NumLabel[name])
	}
	const any = 1<<numLabels - 1
	s.has = [2]uint64{any, any}
}

func first[T any](v []T) (zero T) {
	if len(v) == 0 {
		return zero
	}
	return v[0]
}

// A sampleReader decodes samples one at a time, as pprof's package does. Its form of a sample takes some 3 KB, and the
// exact profile of a large program has millions.
type sampleReader struct {
	in    *profile.Profile // all but the samples
	texts []string
	keys  []labelKey // of each text; numLabels where no label has that name
	byID  []*profile.Location
	more  map[uint64]*profile.Location // those of large numbers
}

// newSampleReader is for the samples of a profile whose other fields are rest.
func newSampleReader(in *profile.Profile, rest []byte) *sampleReader {
	r := &sampleReader{in: in, byID: make([]*profile.Location, len(in.Location)+1), more: map[uint64]*profile.Location{}}
	named := map[string]labelKey{}
	for k, name := range labelNames {
		named[name] = labelKey(k)
	}
	for len(rest) > 0 {
		key, n := binary.Uvarint(rest)
		size := fieldSize(rest)
		if key == textField {
			_, m := binary.Uvarint(rest[n:])
			s := string(rest[n+m : size])
			k, ok := named[s]
			if !ok {
				k = numLabels
			}
			r.texts, r.keys = append(r.texts, s), append(r.keys, k)
		}
		rest = rest[size:]
	}
	for _, l := range in.Location {
		if l.ID < uint64(len(r.byID)) {
			r.byID[l.ID] = l
		} else {
			r.more[l.ID] = l
		}
	}
	return r
}

// read decodes a sample's field of the profile.
func (r *sampleReader) read(data []byte, s *sample) error {
	s.reset()
	_, _, data, _, ok := wireNext(data)
	for ok && len(data) > 0 {
		var key, value uint64
		var inside []byte
		key, value, inside, data, ok = wireNext(data)
		field, packed := key>>3, key&7 == wireBytes
		switch {
		case !ok:
		case field == 3:
			if ok = packed; ok {
				if err := r.label(inside, s); err != nil {
					return err
				}
			}
		case field != 1 && field != 2: // not known
		case packed:
			for ok && len(inside) > 0 {
				value, inside, ok = varint(inside)
				r.add(s, field, value)
			}
		default:
			ok = key&7 == wireVarint
			r.add(s, field, value)
		}
	}
	switch {
	case !ok:
		return errBroken
	case len(s.values) != len(r.in.SampleType):
		return fmt.Errorf("%d values, and %d types of them", len(s.values), len(r.in.SampleType))
	case slices.Contains(s.stack, nil):
		return errors.New("a location that is not there")
	}
	return nil
}

// errBroken is of bytes that are no message: brokenAt says where.
var errBroken = errors.New("it is broken")

func (r *sampleReader) add(s *sample, field, value uint64) {
	switch {
	case field == 2:
		s.values = append(s.values, int64(value))
	case value < uint64(len(r.byID)):
		s.stack = append(s.stack, r.byID[value])
	default:
		s.stack = append(s.stack, r.more[value])
	}
}

func (r *sampleReader) label(data []byte, s *sample) error {
	var fields [5]uint64 // key, text, number and unit by their numbers
	for len(data) > 0 {
		if key := data[0]; key&7 == wireVarint && 0 < key>>3 && int(key>>3) < len(fields) { // as nearly all are
			value, left, ok := varint(data[1:])
			if !ok {
				return errBroken
			}
			fields[key>>3], data = value, left
			continue
		}
		key, value, _, left, ok := wireNext(data)
		n := key >> 3
		known := n > 0 && n < uint64(len(fields))
		if !ok || known && key&7 != wireVarint {
			return errBroken
		}
		if known {
			fields[n] = value
		}
		data = left
	}
	for _, at := range [...]uint64{fields[1], fields[2], fields[4]} {
		if at >= uint64(len(r.texts)) {
			return fmt.Errorf("a label with text %d, and there are %d", at, len(r.texts))
		}
	}
	k := r.keys[fields[1]]
	bit := uint64(1) << k
	switch {
	case k == numLabels:
	case fields[2] != 0:
		if s.has[0]&bit == 0 {
			s.has[0] |= bit
			s.texts[k] = r.texts[fields[2]]
		}
	case fields[3] != 0 || fields[4] != 0:
		if s.has[1]&bit == 0 {
			s.has[1] |= bit
			s.numbers[k] = int64(fields[3])
		}
	}
	return nil
}

// varint takes a number from the beginning of data.
func varint(data []byte) (v uint64, left []byte, ok bool) {
	if len(data) > 0 && data[0] < 0x80 {
		return uint64(data[0]), data[1:], true
	}
	return longVarint(data)
}

// longVarint is varint of any length, by itself so that varint is inlined.
func longVarint(data []byte) (v uint64, left []byte, ok bool) {
	v, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, false
	}
	return v, data[n:], true
}

// wireNext takes a field from the beginning of a message: a number, or what is inside.
func wireNext(data []byte) (key, value uint64, inside, left []byte, ok bool) {
	if key, data, ok = varint(data); !ok {
		return 0, 0, nil, nil, false
	}
	size := uint64(0)
	switch key & 7 {
	case wireVarint:
		value, data, ok = varint(data)
	case wire64:
		size = 8
	case wire32:
		size = 4
	case wireBytes:
		size, data, ok = varint(data)
	default:
		ok = false
	}
	if !ok || size > uint64(len(data)) {
		return 0, 0, nil, nil, false
	}
	return key, value, data[:size], data[size:], true
}
