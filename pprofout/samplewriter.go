package pprofout

import "encoding/binary"

// A sampleWriter encodes samples one at a time. pprof's package encodes whole
// profiles only, and its form of a sample takes some 3 KB: the exact profile of a
// large program has a million.
type sampleWriter struct {
	index map[string]uint64 // of a text in the profile's table
	texts []byte            // encoded: those that the samples have added to the table
	buf   [3][]byte         // of a sample, a part of it and a label, reused
	known [64]knownText     // some of index: samples that follow each other have the same texts in the same places
}

type knownText struct {
	text string
	at   uint64
	is   bool
}

// newSampleWriter returns one for the samples of a profile of which all else is
// encoded.
func newSampleWriter(rest []byte) *sampleWriter {
	w := &sampleWriter{index: map[string]uint64{}}
	for len(rest) > 0 {
		n := fieldSize(rest)
		if rest[0] == textField {
			_, m := binary.Uvarint(rest[1:])
			w.index[string(rest[1+m:n])] = uint64(len(w.index))
		}
		rest = rest[n:]
	}
	return w
}

// encode gives the sample as a field of the profile, until the next call. Some labels may be encoded already: fixed.
func (w *sampleWriter) encode(g *group, fixed []byte, labels []label) []byte {
	sample, part := w.buf[0][:0], w.buf[1][:0]
	for _, l := range g.stack {
		part = binary.AppendUvarint(part, l.ID)
	}
	sample = appendField(sample, 1, part)
	part = part[:0]
	for _, v := range g.values {
		part = binary.AppendUvarint(part, uint64(v))
	}
	sample = appendField(sample, 2, part)
	w.buf[1] = part
	sample = append(sample, fixed...)
	for i, l := range labels {
		sample = w.appendLabel(sample, l, 3*i)
	}
	field := appendField(w.buf[2][:0], 2, sample)
	w.buf[0], w.buf[2] = sample, field
	return field
}

// appendLabel encodes a label; place is where its texts are, see text.
func (w *sampleWriter) appendLabel(to []byte, l label, place int) []byte {
	part := appendNumber(w.buf[1][:0], 1, w.text(l.key, place))
	part = appendNumber(part, 2, w.text(l.text, place+1))
	part = appendNumber(part, 3, uint64(l.number))
	part = appendNumber(part, 4, w.text(l.unit, place+2))
	w.buf[1] = part
	return appendField(to, 3, part)
}

// text is the index of a text in the table, where it is put if it is new; place is where in the sample it is.
func (w *sampleWriter) text(s string, place int) uint64 {
	k := &w.known[place%len(w.known)]
	if !k.is || k.text != s {
		*k = knownText{s, w.put(s), true}
	}
	return k.at
}

func (w *sampleWriter) put(s string) uint64 {
	i, ok := w.index[s]
	if !ok {
		i = uint64(len(w.index))
		w.index[s] = i
		w.texts = appendField(w.texts, textField>>3, []byte(s))
	}
	return i
}

func appendField(to []byte, number int, inside []byte) []byte {
	to = binary.AppendUvarint(to, uint64(number)<<3|wireBytes)
	to = binary.AppendUvarint(to, uint64(len(inside)))
	return append(to, inside...)
}

// appendNumber leaves out what is 0, as protocol buffers do.
func appendNumber(to []byte, number int, v uint64) []byte {
	if v == 0 {
		return to
	}
	return binary.AppendUvarint(binary.AppendUvarint(to, uint64(number)<<3|wireVarint), v)
}
