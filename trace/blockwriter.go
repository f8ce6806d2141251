package trace

import (
	"encoding/binary"
	"math/bits"
)

// wordState predicts one word of one segment: it moves on by the same stride.
type wordState struct {
	last, stride uint64
}

// writtenSegment is a segment as a block that is written sees it.
type writtenSegment struct {
	number  uint32 // in the process's stream
	next    uint32 // index of the segment that followed it last time: the prediction
	states  int32  // index of its first word's state
	words   int32
	most    int32
	guarded bool
}

// blockWriter encodes the entries of one thread. Two
// streams say how long a prediction held and what came instead: one of
// segments, one of words.
type blockWriter struct {
	pid, thread int32
	first       uint64 // access number
	accesses    int
	entries     uint64

	local    []uint32         // index of a segment by its number, 0 if not used yet
	segments []writtenSegment // the first is none and follows none
	states   []wordState
	defined  []byte // dictionary
	lastPC   uint64

	previous uint32
	idHits   uint64
	wordHits uint64
	ids      buffer
	words    buffer

	runs    []byte
	nruns   uint64
	runEnd  uint64 // access number behind the run that is open
	runFrom uint64 // entries before it
	runOpen bool

	faults     []byte
	nfaults    uint64
	faultAfter uint64 // entries before the last fault
}

// buffer is a byte slice that is written by index: room is asked for once
// per entry.
type buffer struct {
	b []byte
	n int
}

func (b *buffer) room(n int) {
	if b.n+n > len(b.b) {
		b.b = append(b.b, make([]byte, max(n, len(b.b)))...)
	}
}

// put writes how many expectations held and what came instead: a byte with
// the former in the high half (15: a varint of the rest follows) and the
// length of the latter in the low half, then the latter's bytes. No loop, and
// no branch that depends on the value: this is done for every surprise.
func (b *buffer) put(hits, v uint64) {
	n, size := b.n, (bits.Len64(v)+7)>>3
	if hits < 15 {
		b.b[n] = byte(hits<<4) | byte(size)
		n++
	} else {
		b.b[n] = 0xf0 | byte(size)
		n += 1 + binary.PutUvarint(b.b[n+1:], hits-15)
	}
	binary.LittleEndian.PutUint64(b.b[n:n+8], v)
	b.n = n + size
}

// maxPut is the room that put needs.
const maxPut = 1 + binary.MaxVarintLen64 + 8

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

func (b *blockWriter) reset(pid, thread int32) {
	for i := range b.segments {
		if i > 0 {
			b.local[b.segments[i].number] = 0
		}
	}
	*b = blockWriter{
		pid: pid, thread: thread,
		local: b.local, segments: append(b.segments[:0], writtenSegment{}), states: b.states[:0],
		defined: b.defined[:0], ids: buffer{b.ids.b, 0}, words: buffer{b.words.b, 0}, runs: b.runs[:0], faults: b.faults[:0],
	}
}

// open starts a run of entries at an access number.
func (b *blockWriter) open(at uint64) {
	if b.runOpen {
		return
	}
	if b.nruns == 0 {
		b.first = at
		b.runEnd = at
	}
	b.runs = binary.AppendUvarint(b.runs, at-b.runEnd)
	b.runFrom = b.entries
	b.runEnd = at
	b.nruns++
	b.runOpen = true
}

// close ends the run: the accesses that follow are another thread's, or the
// block's are complete.
func (b *blockWriter) close(at uint64) {
	if !b.runOpen {
		return
	}
	b.runs = binary.AppendUvarint(b.runs, b.entries-b.runFrom)
	b.runEnd = at
	b.runOpen = false
}

// index is a segment's place in the block's dictionary, which it is taken
// into if it is not there. It is 0 if the stream has not described it.
func (b *blockWriter) index(d *decoder, id uint32) uint32 {
	if int(id) < len(b.local) && b.local[id] != 0 {
		return b.local[id]
	}
	if int(id) >= len(d.segments) || d.segments[id] == nil {
		return 0
	}
	if int(id) >= len(b.local) {
		b.local = append(b.local, make([]uint32, max(int(id)+1-len(b.local), len(b.local)))...)
	}
	g := d.segments[id]
	n := uint32(len(b.segments))
	b.local[id] = n
	b.segments = append(b.segments, writtenSegment{
		number: id, states: int32(len(b.states)), words: int32(g.words), most: int32(g.most), guarded: g.guarded,
	})
	for range g.words {
		b.states = append(b.states, wordState{})
	}
	t := binary.AppendUvarint(b.defined, uint64(g.words))
	t = binary.AppendUvarint(t, uint64(len(g.sites)))
	for i := range g.sites {
		s := &g.sites[i]
		t = binary.AppendUvarint(t, zigzag(s.pc-b.lastPC))
		b.lastPC = s.pc
		t = binary.AppendUvarint(t, uint64(s.size)<<3|uint64(s.flags))
		t = binary.AppendUvarint(t, uint64(s.base+1))
		t = binary.AppendUvarint(t, zigzag(s.offset))
	}
	b.defined = t
	return n
}

// enter encodes entries from word i on, until the block is full or a word is
// none, and returns the index of that word. This is the path of every access.
func (b *blockWriter) enter(d *decoder, w []uint64, i int) (next int, err error) {
	previous, idHits, wordHits, accesses, entries := b.previous, b.idHits, b.wordHits, b.accesses, b.entries
	segments, states := b.segments, b.states
	for i < len(w) && accesses < blockAccesses && b.words.n < blockBytes {
		id := uint32(w[i])
		at := segments[previous].next
		if segments[at].number == id && id != 0 {
			idHits++
		} else {
			if id < wordFirstSegment {
				break
			}
			if at = b.index(d, id); at == 0 {
				break
			}
			segments, states = b.segments, b.states
			segments[previous].next = at
			b.ids.room(maxPut)
			b.ids.put(idHits, uint64(at-1))
			idHits = 0
		}
		previous = at
		g := &segments[at]
		next := i + 1 + int(g.words)
		if next > len(w) {
			return 0, errShort(int(g.words), i, next, len(w))
		}
		entries++
		own := w[i+1 : next]
		if len(own) > 0 {
			b.words.room(len(own) * maxPut)
			st := states[g.states:][:len(own)]
			for j, v := range own {
				s := &st[j]
				delta := v - s.last
				s.last = v
				if delta == s.stride {
					wordHits++
					continue
				}
				s.stride = delta
				b.words.put(wordHits, zigzag(delta))
				wordHits = 0
			}
		}
		i = next
		if !g.guarded && (i >= len(w) || uint32(w[i]) != wordFault) {
			accesses += int(g.most)
			continue
		}
		whole := d.segments[id]
		reached := d.reached(whole, w, i)
		accesses += whole.count(own, reached)
		if reached < len(whole.sites) {
			b.entries = entries
			b.fault(reached)
		}
	}
	b.previous, b.idHits, b.wordHits, b.accesses, b.entries = previous, idHits, wordHits, accesses, entries
	return i, nil
}

// fault says that the entry just encoded went no further than n sites.
func (b *blockWriter) fault(n int) {
	b.faults = binary.AppendUvarint(b.faults, b.entries-b.faultAfter)
	b.faults = binary.AppendUvarint(b.faults, uint64(n))
	b.faultAfter = b.entries
	b.nfaults++
}

func (b *blockWriter) full() bool {
	return b.accesses >= blockAccesses || b.words.n >= blockBytes || b.ids.n+len(b.runs)+len(b.faults)+len(b.defined) >= blockBytes
}

// payload appends the block, unpacked. The run must be closed.
func (b *blockWriter) payload(dst []byte) []byte {
	b.ids.room(maxPut)
	b.ids.put(b.idHits, 0)
	b.words.room(maxPut)
	b.words.put(b.wordHits, 0)
	section := func(n uint64, s []byte) {
		dst = binary.AppendUvarint(dst, n)
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	section(uint64(len(b.segments)-1), b.defined)
	section(b.nruns, b.runs)
	section(b.nfaults, b.faults)
	section(b.entries, b.ids.b[:b.ids.n])
	section(uint64(len(b.states)), b.words.b[:b.words.n])
	return dst
}
