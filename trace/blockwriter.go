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
	key     uint64 // its header, 0 if it is not in the dictionary
	states  uint64 // index of its first word's state, from bit 32 on
	next    uint32 // the segment that followed it last time: the prediction
	most    int32  // accesses
	local   uint16 // its number in the block's dictionary, from 1
	guarded uint8  // 1 if it is
}

// blockWriter encodes the entries of one thread, see docs/trace-format.md.
//
// What is expected of real programs fails often and at random, so the path of
// an entry has no branch that depends on it: everything is stored, and the
// ends of the buffers move on by what is to be kept.
type blockWriter struct {
	pid, thread int32
	first       uint64 // access number
	accesses    int
	entries     int

	table   []writtenSegment // by number in the process's stream; 0 is none
	used    []uint32         // numbers in the dictionary
	states  []wordState
	defined []byte // dictionary
	lastPC  uint64

	previous uint32
	misses   []byte // 0 or 1 per entry: the segment was another than expected
	ids      []byte // then, 2 bytes, its number in the dictionary
	nids     int
	sizes    []byte // per word the bytes of its difference; 0: as expected
	nwords   int
	values   []byte // the differences
	nvalues  int

	runs    []byte
	nruns   int
	runEnd  uint64 // access number behind the run that is open
	runFrom int    // entries before it
	runOpen bool

	faults     []byte
	nfaults    int
	faultAfter int // entries before the last fault

	most int // accesses of one entry
	list batchList
}

const (
	batchEntries = 512
	batchWords   = 1024
	listWords    = batchWords + maxSites + 4 // with those of the last entry
	maxLocal     = 1<<16 - 1                 // segments in a dictionary
	maxWords     = 4 << 20                   // of a block
	valueRoom    = 8                         // bytes stored at a time
	nextWord     = 1<<32 + 1                 // from one in the list to the next of its segment
)

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

func newBlockWriter() *blockWriter {
	return &blockWriter{
		table: make([]writtenSegment, 1024),
	}
}

func (b *blockWriter) reset(pid, thread int32) {
	for _, id := range b.used {
		b.table[id] = writtenSegment{}
	}
	b.table[0] = writtenSegment{key: ^uint64(0)} // none has number 0
	*b = blockWriter{
		pid: pid, thread: thread,
		table: b.table, used: b.used[:0], states: b.states[:0], defined: b.defined[:0],
		misses: b.misses, ids: b.ids, sizes: b.sizes, values: b.values,
		runs: b.runs[:0], faults: b.faults[:0],
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
	b.runs = binary.AppendUvarint(b.runs, uint64(b.entries-b.runFrom))
	b.runEnd = at
	b.runOpen = false
}

// define takes a segment into the block's dictionary. It fails if the stream
// has not described it or the dictionary is full.
func (b *blockWriter) define(segments []*segment, id uint32) bool {
	if int(id) >= len(segments) || segments[id] == nil || len(b.used) == maxLocal {
		return false
	}
	if int(id) >= len(b.table) {
		b.table = append(b.table, make([]writtenSegment, max(int(id)+1-len(b.table), len(b.table)))...)
	}
	g := segments[id]
	b.used = append(b.used, id)
	b.table[id] = writtenSegment{
		key: uint64(id) | uint64(g.words)<<32, states: uint64(len(b.states)) << 32,
		most: int32(g.most), local: uint16(len(b.used)),
	}
	if g.guarded {
		b.table[id].guarded = 1
	}
	for range g.words {
		b.states = append(b.states, wordState{})
	}
	b.most = max(b.most, g.most)
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
	return true
}

// room makes room for a batch.
func (b *blockWriter) room() {
	b.misses = grown(b.misses, b.entries+batchEntries)
	b.ids = grown(b.ids, 2*(b.nids+batchEntries))
	b.sizes = grown(b.sizes, b.nwords+listWords)
	b.values = grown(b.values, b.nvalues+(listWords+1)*valueRoom)
}

// grown is s with at least n elements, twice as many if it grows.
func grown(s []byte, n int) []byte {
	if n <= len(s) {
		return s
	}
	return append(s, make([]byte, max(n, 2*len(s))-len(s))...)
}

// enter encodes entries from word i on, until the block is full or a word is
// none, and returns the index of that word.
func (b *blockWriter) enter(segments []*segment, w []uint64, i int) (next int, err error) {
	for !b.full() {
		b.room()
		// So many that the block is not longer than it should be by more than one.
		limit := min(batchEntries, max((blockAccesses-b.accesses)/max(b.most, 1), 1))
		n, words, next := b.list.walk(w, i, b.table, limit)
		if next > len(w) {
			last := b.list.entries[n-1] >> 32
			return 0, errEntry(w, int(last), int(w[last]>>32))
		}
		if n == 0 {
			if i >= len(w) || uint32(w[i]) < wordFirstSegment || !b.define(segments, uint32(w[i])) {
				return i, nil
			}
			if id := uint32(w[i]); b.table[id].key != w[i] {
				return 0, errEntry(w, i, segments[id].words)
			}
			continue
		}
		if b.headers(b.list.entries[:n]) {
			b.absent(segments, w, b.list.entries[:n])
		}
		b.encodeWords(w, words)
		i = next
		if i+1 < len(w) && uint32(w[i]) == wordFault {
			b.fault(segments, w[b.list.entries[n-1]>>32:], w[i+1])
			i += 2
		}
	}
	return i, nil
}

// batchList is a batch of entries: the index of each one's header, and below that
// its segment's number; and their words: the index of each, and above that the
// index of the state that it is compared with.
//
// walk, headers and encodeWords are the path of every access. They are apart so that
// each keeps what it needs in registers.
type batchList struct {
	entries [batchEntries]uint64
	words   [listWords]uint64
}

// walk lists up to limit entries from word i on, until a segment is not known in
// the table. next is the index behind them, beyond w if the last is not whole.
func (l *batchList) walk(w []uint64, i int, table []writtenSegment, limit int) (n, words, next int) {
	entries := l.entries[:limit]
	at := uint64(i)
	for {
		// How many words an entry has cannot be foretold, but most have no more
		// than four: so many are listed always. This loop is left for others.
		var word, k uint64
		for n < len(entries) && at < uint64(len(w)) && words < batchWords {
			h := w[at]
			id := uint64(uint32(h))
			if id >= uint64(len(table)) || table[id].key != h {
				return n, words, int(at)
			}
			// not from the table: the next header is then found without waiting for it
			k = h >> 32
			entries[n] = at<<32 | id
			n++
			word = table[id].states + at + 1
			few := (*[4]uint64)(l.words[words:])
			few[0], few[1], few[2], few[3] = word, word+nextWord, word+2*nextWord, word+3*nextWord
			words += int(k)
			at += 1 + k
			if k > 4 {
				break
			}
		}
		if k <= 4 {
			return n, words, int(at)
		}
		for j := uint64(4); j < k; j++ {
			l.words[words-int(k-j)] = word + j*nextWord
		}
	}
}

// headers encodes which segments are entered, and counts their accesses as if all
// had happened. It tells whether some may not have.
func (b *blockWriter) headers(entries []uint64) bool {
	misses := b.misses[b.entries:][:len(entries)]
	ids := (*[2 * batchEntries]byte)(b.ids[2*b.nids:])
	table, previous := b.table, &b.table[b.previous]
	nids, most, guarded := uint(0), int32(0), uint8(0)
	for n, e := range entries {
		id := uint32(e)
		miss := previous.next ^ id
		miss = (miss | -miss) >> 31
		previous.next = id
		previous = &table[id]
		misses[n] = byte(miss)
		binary.LittleEndian.PutUint16(ids[2*(nids%batchEntries):], previous.local)
		nids += uint(miss)
		most += previous.most
		guarded |= previous.guarded
	}
	b.accesses += int(most)
	b.previous = uint32(entries[len(entries)-1])
	b.entries += len(entries)
	b.nids += int(nids)
	return guarded != 0
}

// absent takes out of the count what did not happen.
func (b *blockWriter) absent(segments []*segment, w []uint64, entries []uint64) {
	for _, e := range entries {
		if g := segments[uint32(e)]; g.guarded {
			b.accesses -= g.most - g.count(w[e>>32:], len(g.sites))
		}
	}
}

// encodeWords encodes the first count words that are listed.
func (b *blockWriter) encodeWords(w []uint64, count int) {
	list, states := b.list.words[:count], b.states
	// as much as room makes
	sizes, values := (*[listWords]byte)(b.sizes[b.nwords:]), (*[(listWords + 1) * valueRoom]byte)(b.values[b.nvalues:])
	n := uint(0)
	for i, at := range list {
		v := w[uint32(at)]
		s := &states[at>>32]
		delta := v - s.last
		other := delta ^ s.stride
		s.last, s.stride = v, delta
		z := zigzag(delta)
		// 1 to 8 bytes, and none if the expectation held
		k := uint(bits.Len64(z|1)+7) >> 3 & uint(int64(other|-other)>>63)
		binary.LittleEndian.PutUint64(values[n:n+valueRoom], z)
		n += k
		sizes[i] = byte(k)
	}
	b.nvalues += int(n)
	b.nwords += count
}

// fault says that the last entry went no further than pc.
func (b *blockWriter) fault(segments []*segment, entry []uint64, pc uint64) {
	g := segments[uint32(entry[0])]
	reached := g.reached(pc)
	if reached == len(g.sites) {
		return
	}
	b.accesses -= g.count(entry, len(g.sites)) - g.count(entry, reached)
	b.faults = binary.AppendUvarint(b.faults, uint64(b.entries-b.faultAfter))
	b.faults = binary.AppendUvarint(b.faults, uint64(reached))
	b.faultAfter = b.entries
	b.nfaults++
}

func (b *blockWriter) full() bool {
	return b.accesses >= blockAccesses || b.entries+batchEntries > maxBlockAccesses || b.nvalues >= blockBytes || b.nwords >= maxWords ||
		len(b.used) == maxLocal || len(b.runs)+len(b.faults)+len(b.defined) >= blockBytes
}

// payload appends the block to dst. The run must be closed.
func (b *blockWriter) payload(dst []byte, p *packer) []byte {
	p.at = 0
	dst = p.section(dst, len(b.used), b.defined)
	b.room() // what is packed below is rounded up
	dst = p.section(dst, b.nruns, b.runs)
	dst = p.section(dst, b.nfaults, b.faults)
	dst = p.section(dst, b.entries, packBits(b.misses[:(b.entries+7)&^7], b.entries))
	dst = p.section(dst, b.nids, b.ids[:2*b.nids])
	dst = p.section(dst, b.nwords, packNibbles(b.sizes[:(b.nwords+7)&^7], b.nwords))
	return p.section(dst, b.nvalues, b.values[:b.nvalues])
}

// packBits packs n bytes that are 0 or 1, in place; b has what rounds them up
// to 8.
func packBits(b []byte, n int) []byte {
	clear(b[n:])
	for i := 0; i < len(b); i += 8 {
		b[i/8] = byte(binary.LittleEndian.Uint64(b[i:]) * 0x0102040810204080 >> 56)
	}
	return b[:(n+7)/8]
}

// packNibbles packs n bytes below 16, in place, the first of two in the low
// half; b has what rounds them up to 8.
func packNibbles(b []byte, n int) []byte {
	clear(b[n:])
	for i := 0; i < len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		x = (x | x>>4) & 0x00ff00ff00ff00ff
		x = (x | x>>8) & 0x0000ffff0000ffff
		binary.LittleEndian.PutUint32(b[i/2:], uint32(x|x>>16))
	}
	return b[:(n+1)/2]
}
