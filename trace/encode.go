package trace

import (
	"encoding/binary"
	"math/bits"
)

// entryBatch is a stretch of entries that is encoded at once: first which segments
// were entered and the first word of each, then, from a list, the further words.
//
// What is expected of real programs fails often and at random, so the path of
// an entry has no branch that depends on it: everything is stored, and the
// ends of the buffers move on by what is to be kept.
type entryBatch struct {
	words    []uint64
	at       int // word of the next entry
	table    []writtenSegment
	previous uint32 // segment

	// To be filled. There is a byte of codes for each entry that may be taken, and
	// of the others what they can need, with all that is stored at a time.
	codes  []byte
	ids    []byte
	firsts []byte
	// The index of each further word, and above that the index of the state that it is compared with.
	list []uint64

	n, nids, nfirsts, nlist int // of what was filled: entries, numbers of 2 bytes, bytes, words
	accesses                int // as if all of them had happened
}

// A code's low three bits say how many bytes a first word's difference has: 0 if it is as expected,
// longDifference if it has eight. Seven bytes are stored as eight, too.
const (
	anotherSegment = 8 // than was expected
	longDifference = 7
	nextWord       = 1<<32 + 1                       // from one in the list to the next of its segment
	shortList      = (shortWords - 1) * batchEntries // room that is kept for short entries
)

// enter encodes that a segment is entered and its first word, which is 0 if it has
// none; t is its place in the table.
func (x *entryBatch) enter(id uint32, t *writtenSegment, word uint64) {
	p := &x.table[x.previous]
	miss := p.next ^ id
	miss = (miss | -miss) >> 31
	p.next, x.previous = id, id
	binary.LittleEndian.PutUint16(x.ids[2*x.nids:], t.local)
	x.nids += int(miss)
	x.accesses += int(t.most)
	z, k := t.first.next(word)
	binary.LittleEndian.PutUint64(x.firsts[x.nfirsts:], z)
	k = min(k, longDifference)
	x.nfirsts += k + (k+1)>>3
	x.codes[x.n] = byte(k) | byte(miss)*anotherSegment
	x.n++
}

// next is the zigzag difference of a word from the one before, and how many bytes of
// it are to be kept: none if the expectation held, else 1 to 8.
func (s *wordState) next(v uint64) (z uint64, bytes int) {
	delta := v - s.last
	other := delta ^ s.stride
	s.last, s.stride = v, delta
	z = zigzag(delta)
	return z, int(uint(bits.Len64(z|1)+7) >> 3 & uint(int64(other|-other)>>63))
}

// entries encodes entries of segments that are in the table, up to a word that is not
// the first of one, and of so many words as entries may be taken: none has less than one.
func (x *entryBatch) entries() {
	for end := min(x.at+len(x.codes), len(x.words)); x.at < end; {
		h := x.words[x.at]
		if id := h % shortNumbers; id < uint64(len(x.table)) && x.table[id].short != 0 {
			t := &x.table[id]
			x.enter(uint32(id), t, uint64(int64(h)>>shortAddress))
			word := uint64(t.states)<<32 | uint64(x.at+1)
			few := (*[shortWords - 1]uint64)(x.list[x.nlist:])
			few[0], few[1] = word, word+nextWord
			length := int(h % (shortWords + 1))
			x.nlist += length - 1
			x.at += length
			continue
		}
		id, length := first(h)
		if h%(shortWords+1) != 0 || int(id) >= len(x.table) || x.table[id].local == 0 || length != int(x.table[id].length) ||
			x.at+length > len(x.words) || x.nlist+length > len(x.list)-shortList {
			return
		}
		t := &x.table[id]
		word := uint64(0)
		if length > 1 {
			word = x.words[x.at+1]
		}
		for k := range length - 2 {
			x.list[x.nlist] = uint64(t.states)<<32 + uint64(x.at+2) + uint64(k)*nextWord
			x.nlist++
		}
		x.enter(id, t, word)
		x.at += length
	}
}

// listed encodes the words that are listed: the size of each one's difference, a
// byte, and that. It returns the bytes of the differences.
func listed(words, list []uint64, states []wordState, sizes, values []byte) int {
	n := 0
	sizes = sizes[:len(list)]
	for i, at := range list {
		z, k := states[at>>32].next(words[uint32(at)])
		binary.LittleEndian.PutUint64(values[n:n+valueRoom], z)
		sizes[i] = byte(k)
		n += k
	}
	return n
}
