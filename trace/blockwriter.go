package trace

import (
	"encoding/binary"
)

// wordState predicts one word of one segment: it moves on by the same stride.
type wordState struct {
	last, stride uint64
}

// none is a segment index that no segment has.
const none = ^uint32(0)

// blockSegment is a segment as a block sees it.
type blockSegment struct {
	states int    // index of its first word's state
	next   uint32 // segment that followed it last time: the prediction
}

// blockWriter encodes the entries of one thread. All numbers are varints. Two
// streams say how long a prediction held and what came instead: one of
// segments, one of words.
type blockWriter struct {
	pid, thread int32
	first       uint64 // access number
	accesses    int
	entries     uint64

	local    []uint32 // segment number of the process -> index in the block + 1
	numbers  []uint32 // of the segments used, by index
	segments []blockSegment
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

const maxVarint = binary.MaxVarintLen64

func (b *buffer) room(n int) {
	if b.n+n > len(b.b) {
		b.b = append(b.b, make([]byte, max(n, len(b.b)))...)
	}
}

func (b *buffer) put(v uint64) {
	n := b.n
	for v >= 0x80 {
		b.b[n] = byte(v) | 0x80
		v >>= 7
		n++
	}
	b.b[n] = byte(v)
	b.n = n + 1
}

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

func (b *blockWriter) reset(pid, thread int32) {
	for _, id := range b.numbers {
		b.local[id] = 0
	}
	*b = blockWriter{
		pid: pid, thread: thread,
		local: b.local, numbers: b.numbers[:0], segments: b.segments[:0], states: b.states[:0],
		defined: b.defined[:0], ids: buffer{b.ids.b, 0}, words: buffer{b.words.b, 0}, runs: b.runs[:0], faults: b.faults[:0],
		previous: none,
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

// define takes a segment into the block's dictionary.
func (b *blockWriter) define(id uint32, g *segment) uint32 {
	if int(id) >= len(b.local) {
		b.local = append(b.local, make([]uint32, max(int(id)+1-len(b.local), len(b.local)))...)
	}
	b.segments = append(b.segments, blockSegment{len(b.states), none})
	b.numbers = append(b.numbers, id)
	for range g.words {
		b.states = append(b.states, wordState{})
	}
	d := binary.AppendUvarint(b.defined, uint64(g.words))
	d = binary.AppendUvarint(d, uint64(len(g.sites)))
	for i := range g.sites {
		s := &g.sites[i]
		d = binary.AppendUvarint(d, zigzag(s.pc-b.lastPC))
		b.lastPC = s.pc
		d = binary.AppendUvarint(d, uint64(s.size)<<3|uint64(s.flags))
		d = binary.AppendUvarint(d, uint64(s.base+1))
		d = binary.AppendUvarint(d, zigzag(s.offset))
	}
	b.defined = d
	n := uint32(len(b.numbers))
	b.local[id] = n
	return n - 1
}

// enter encodes one entry and returns its accesses.
func (b *blockWriter) enter(id uint32, g *segment, words []uint64) int {
	var local uint32
	if int(id) < len(b.local) && b.local[id] != 0 {
		local = b.local[id] - 1
	} else {
		local = b.define(id, g)
	}
	if b.previous != none && b.segments[b.previous].next == local {
		b.idHits++
	} else {
		if b.previous != none {
			b.segments[b.previous].next = local
		}
		b.ids.room(2 * maxVarint)
		b.ids.put(b.idHits)
		b.ids.put(uint64(local))
		b.idHits = 0
	}
	b.previous = local
	b.entries++

	at := b.segments[local].states
	states := b.states[at : at+len(words)]
	b.words.room(len(words) * 2 * maxVarint)
	hits := b.wordHits
	for i, w := range words {
		s := &states[i]
		d := w - s.last
		s.last = w
		if d == s.stride {
			hits++
			continue
		}
		s.stride = d
		b.words.put(hits)
		b.words.put(zigzag(d))
		hits = 0
	}
	b.wordHits = hits
	return g.most
}

// fault says that the entry just encoded went no further than n sites.
func (b *blockWriter) fault(n int) {
	b.faults = binary.AppendUvarint(b.faults, b.entries-b.faultAfter)
	b.faults = binary.AppendUvarint(b.faults, uint64(n))
	b.faultAfter = b.entries
	b.nfaults++
}

func (b *blockWriter) full() bool {
	return b.accesses >= blockAccesses || b.ids.n+b.words.n+len(b.runs)+len(b.defined) >= blockBytes
}

// payload appends the block, unpacked. The run must be closed.
func (b *blockWriter) payload(dst []byte) []byte {
	b.ids.room(maxVarint)
	b.ids.put(b.idHits)
	b.words.room(maxVarint)
	b.words.put(b.wordHits)
	section := func(n uint64, s []byte) {
		dst = binary.AppendUvarint(dst, n)
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	section(uint64(len(b.numbers)), b.defined)
	section(b.nruns, b.runs)
	section(b.nfaults, b.faults)
	section(b.entries, b.ids.b[:b.ids.n])
	section(uint64(len(b.states)), b.words.b[:b.words.n])
	return dst
}
