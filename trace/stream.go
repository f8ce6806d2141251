package trace

import (
	"fmt"
	"slices"
)

// The stream the engine writes, as valgrind/stream.h describes it: words of
// 64 bits. Unless it is a short entry's, a first word's low half is a segment's
// number or one of these, its high half the number of words that follow.
const (
	wordPad          = 0
	wordDefine       = 4
	wordThread       = 8
	wordFault        = 12
	wordExec         = 16
	wordEnd          = 20
	wordSkipped      = 24
	wordTime         = 28
	wordFirstSegment = 64

	// The first word of a short entry: the number of its words, which is never 0
	// as in all others, and is a part of the segment's number; above that is an address.
	shortWords   = 3
	shortNumbers = 1 << shortAddress
	shortAddress = 16

	streamVersion = 4

	// Of each process under Valgrind; with Options.Children it uses a quarter of them. To
	// announce one and give it back costs some 40 us on two virtual processors.
	bufferBytes = 2 << 20
	bufferCount = 16
	// Of them, what a program uses whose accesses are analysed: rdx is always behind, and there is
	// less memory to be made ready.
	fewBuffers = 4
	// Of each thread under QEMU: the order between threads is known no better than this.
	threadBytes   = 1 << 20
	threadBuffers = 8
	// Of each thread whose order is kept: they are not used twice.
	orderedBuffers = 4096
)

// first reads the first word of an entry, or of a mark: the number of the segment or
// the kind, and the number of words in all.
func first(w uint64) (id uint32, length int) {
	if n := int(w % (shortWords + 1)); n != 0 {
		return uint32(w % shortNumbers), n
	}
	return uint32(w), 1 + int(w>>32)
}

// isMark says whether a first word is no entry's.
func isMark(w uint64) bool { return w%(shortWords+1) == 0 && uint32(w) < wordFirstSegment }

// sink takes what a stream says, in order.
type sink interface {
	// enter takes the entries from word i on, up to the next word that is
	// none, and returns its index.
	enter(d *decoder, w []uint64, i int) (next int, err error)
}

// decoder reads the stream of one process.
type decoder struct {
	segments []*segment // by number
	thread   int32
	// redefined is how many segments were described whose numbers others had before
	redefined int
	skipped   func(accesses uint64) // nil if none can be
	entries   bool                  // the buffer is known to hold nothing but entries
	ended     bool                  // wordEnd was seen, and nothing after it
	exec      bool                  // the last word is an exec
}

// at is the entry at word i and the index behind it; nil if there is none.
func (d *decoder) at(w []uint64, i int) (g *segment, next int) {
	if id, _ := first(w[i]); int(id) < len(d.segments) {
		g = d.segments[id]
	}
	if g != nil {
		i += g.length
	}
	return g, i
}

// whole is at for who reads the entry: its length is checked.
func (d *decoder) whole(w []uint64, i int) (g *segment, next int, err error) {
	g, next = d.at(w, i)
	if g != nil {
		if _, n := first(w[i]); i+n != next || next > len(w) {
			return nil, 0, errEntry(w, i, g.length)
		}
	}
	return g, next, nil
}

// reached is how many sites of the entry that ends before word i were: all,
// unless it stopped at a fault.
func (d *decoder) reached(g *segment, w []uint64, i int) int {
	if i+1 < len(w) && uint32(w[i]) == wordFault {
		return g.reached(w[i+1])
	}
	return len(g.sites)
}

// buffer reads one buffer of whole entries. With cut, the last entry is left
// out and returned if nothing follows it: it may not have been completed.
func (d *decoder) buffer(w []uint64, cut bool, to sink) (left *segment, err error) {
	for i := 0; i < len(w); {
		if g, next := d.at(w, i); g != nil {
			if cut {
				// slow, and only for the last buffer: one entry at a time
				if next >= len(w) {
					return g, nil
				}
				end := next
				if uint32(w[next]) == wordFault {
					end = min(next+2, len(w))
				}
				if _, err := to.enter(d, w[:end], i); err != nil {
					return nil, err
				}
				i = next
			} else if i, err = to.enter(d, w, i); err != nil {
				return nil, err
			}
			d.ended, d.exec = false, false
			continue
		}
		if i, err = d.mark(w, i); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// mark reads a word that is no entry, and what belongs to it.
func (d *decoder) mark(w []uint64, i int) (next int, err error) {
	if !isMark(w[i]) {
		return 0, errUndescribed(w, i)
	}
	kind, n := uint32(w[i]), int(w[i]>>32)
	if n > len(w)-i-1 {
		return 0, fmt.Errorf("stream: word %d: %d words of kind %d, the buffer ends after %d", i, n, kind, len(w)-i-1)
	}
	body := w[i+1 : i+1+n]
	if kind != wordTime {
		d.ended, d.exec = kind == wordEnd, kind == wordExec
	}
	switch kind {
	case wordDefine:
		id, g, err := decodeDefinition(body)
		if err != nil {
			return 0, fmt.Errorf("stream: word %d: %w", i, err)
		}
		for int(id) >= len(d.segments) {
			d.segments = append(d.segments, make([]*segment, max(1024, len(d.segments)))...)
		}
		if d.segments[id] != nil {
			d.segments = slices.Clone(d.segments) // others read what they were given
			d.redefined++
		}
		d.segments[id] = g
	case wordThread:
		if n != 1 {
			return 0, fmt.Errorf("stream: word %d: thread of %d words", i, n)
		}
		d.thread = int32(body[0])
	case wordSkipped:
		if n != 1 || d.skipped == nil {
			return 0, fmt.Errorf("stream: word %d: accesses skipped that were not to be", i)
		}
		d.skipped(body[0])
	case wordFault, wordExec, wordEnd, wordPad:
	case wordTime:
		if n != 1 {
			return 0, fmt.Errorf("stream: word %d: time of %d words", i, n)
		}
	default:
		return 0, fmt.Errorf("stream: word %d: unknown kind %d", i, kind)
	}
	return i + 1 + n, nil
}

// errUndescribed is about an entry at word i of a segment that is not known.
func errUndescribed(w []uint64, i int) error {
	id, _ := first(w[i])
	return fmt.Errorf("stream: word %d: segment %d was never described", i, id)
}

// errEntry is about the entry of a segment at word i that is not there whole.
func errEntry(w []uint64, i, length int) error {
	_, n := first(w[i])
	return fmt.Errorf("stream: word %d: an entry of %d words of a segment that has %d, and the buffer ends after %d", i, n, length, len(w)-i)
}
