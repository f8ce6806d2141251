package trace

import "encoding/binary"

// wordState predicts one word of one segment: it moves on by the same stride.
type wordState struct {
	last, stride uint64
}

// writtenSegment is a segment as a block that is written sees it. The code in
// encode_amd64.s knows its size.
type writtenSegment struct {
	first  wordState // of its first word
	states uint32    // index of its second word's state
	next   uint32    // the segment that followed it last time: the prediction
	most   uint16    // accesses
	length uint16    // words of an entry
	local  uint16    // its number in the block's dictionary, from 1; 0 if it is not there
	short  uint16    // the same if its entries are short, else 0
}

// blockWriter encodes the entries of one thread, see docs/reference/trace-format.md.
type blockWriter struct {
	streamKey
	pid      int32
	first    uint64 // access number
	accesses int
	entries  int

	table   []writtenSegment // by number in the process's stream; 0 is none
	used    []uint32         // numbers in the dictionary
	states  []wordState
	defined []byte // dictionary
	lastPC  uint64

	previous uint32
	codes    []byte // per entry: anotherSegment, and the size of its first word's difference
	ids      []byte // of the segments that were not expected: 2 bytes, the number in the dictionary
	nids     int
	firsts   []byte // the differences of the first words
	nfirsts  int
	sizes    []byte // per further word the bytes of its difference; 0: as expected
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

	most    int  // accesses of one entry
	guarded bool // not all may happen
	under   entryBatch
}

const (
	batchEntries = 768
	listWords    = shortList + maxSites + 1
	maxLocal     = 1<<16 - 1 // segments in a dictionary
	maxWords     = 4 << 20   // of a block
	valueRoom    = 8         // bytes stored at a time
)

func zigzag(v uint64) uint64   { return v<<1 ^ uint64(int64(v)>>63) }
func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

func newBlockWriter() *blockWriter {
	return &blockWriter{
		table: make([]writtenSegment, 1024),
		under: entryBatch{list: make([]uint64, listWords)},
	}
}

func (b *blockWriter) reset(key streamKey, pid int32) {
	for _, id := range b.used {
		b.table[id] = writtenSegment{}
	}
	b.table[0] = writtenSegment{} // none has number 0, but the first entry comes after it
	*b = blockWriter{
		streamKey: key, pid: pid,
		table: b.table, used: b.used[:0], states: b.states[:0], defined: b.defined[:0],
		codes: b.codes, ids: b.ids, firsts: b.firsts, sizes: b.sizes, values: b.values,
		runs: b.runs[:0], faults: b.faults[:0], under: entryBatch{list: b.under.list},
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
	t := &b.table[id]
	*t = writtenSegment{states: uint32(len(b.states)), most: uint16(g.most), length: uint16(g.length), local: uint16(len(b.used))}
	if g.short {
		t.short = t.local
	}
	b.guarded = b.guarded || g.guarded
	for range g.words - 1 {
		b.states = append(b.states, wordState{})
	}
	b.most = max(b.most, g.most)
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
	return true
}

// room makes room for a batch.
func (b *blockWriter) room() {
	b.codes = grown(b.codes, b.entries+batchEntries)
	b.ids = grown(b.ids, 2*(b.nids+batchEntries))
	b.firsts = grown(b.firsts, b.nfirsts+batchEntries*valueRoom)
	b.sizes = grown(b.sizes, b.nwords+listWords)
	b.values = grown(b.values, b.nvalues+listWords*valueRoom)
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
		before := i
		if i, err = b.batch(segments, w, i); err != nil {
			return 0, err
		}
		if i > before {
			continue
		}
		if i >= len(w) || isMark(w[i]) {
			return i, nil
		}
		id, length := first(w[i])
		if int(id) >= len(b.table) || b.table[id].local == 0 {
			if !b.define(segments, id) {
				return i, nil
			}
		} else if length != segments[id].length || i+length > len(w) {
			return 0, errEntry(w, i, segments[id].length)
		}
	}
	return i, nil
}

// batch encodes some entries, all of segments that are in the dictionary and none
// stopped by a fault but the last, and returns the index of the word behind.
func (b *blockWriter) batch(segments []*segment, w []uint64, i int) (next int, err error) {
	b.room()
	// So many that the block is not longer than it should be by more than one.
	limit := min(batchEntries, max((blockAccesses-b.accesses)/max(b.most, 1), 1))
	x := &b.under
	*x = entryBatch{
		words: w, at: i, table: b.table, previous: b.previous,
		codes: b.codes[b.entries:][:limit], ids: b.ids[2*b.nids:], firsts: b.firsts[b.nfirsts:], list: x.list,
	}
	if encodeEntries(x); x.n == 0 {
		return i, nil
	}
	last := x.at - segments[x.previous].length
	if x.at > len(w) {
		return 0, errEntry(w, last, segments[x.previous].length)
	}
	b.entries += x.n
	b.nids += x.nids
	b.nfirsts += x.nfirsts
	b.previous = x.previous
	b.accesses += x.accesses
	if b.guarded {
		b.absent(segments, w[i:x.at])
	}
	b.nvalues += encodeListed(w, x.list[:x.nlist], b.states, b.sizes[b.nwords:], b.values[b.nvalues:])
	b.nwords += x.nlist
	if next = x.at; next+1 < len(w) && uint32(w[next]) == wordFault {
		b.fault(segments[x.previous], w[last:], w[next+1])
		next += 2
	}
	return next, nil
}

// absent takes out of the count what did not happen.
func (b *blockWriter) absent(segments []*segment, entries []uint64) {
	for i := 0; i < len(entries); {
		id, length := first(entries[i])
		if g := segments[id]; g.guarded {
			b.accesses -= g.most - g.count(entries[i:], len(g.sites))
		}
		i += length
	}
}

// fault says that the last entry went no further than pc.
func (b *blockWriter) fault(g *segment, entry []uint64, pc uint64) {
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
	return b.accesses >= blockAccesses || b.entries+batchEntries > maxBlockAccesses || b.nfirsts+b.nvalues >= blockBytes || b.nwords >= maxWords ||
		len(b.used) == maxLocal || len(b.runs)+len(b.faults)+len(b.defined) >= blockBytes
}

// payload appends the block to dst. The run must be closed.
func (b *blockWriter) payload(dst []byte, p *packer) []byte {
	b.room() // what is packed is rounded up
	codes := packNibbles(b.codes[:(b.entries+7)&^7], b.entries)
	sizes := packNibbles(b.sizes[:(b.nwords+7)&^7], b.nwords)
	p.at, p.block = 0, len(b.defined)+len(b.runs)+len(b.faults)+len(codes)+2*b.nids+b.nfirsts+len(sizes)+b.nvalues
	dst = p.section(dst, len(b.used), b.defined)
	dst = p.section(dst, b.nruns, b.runs)
	dst = p.section(dst, b.nfaults, b.faults)
	dst = p.section(dst, b.entries, codes)
	dst = p.section(dst, b.nids, b.ids[:2*b.nids])
	dst = p.section(dst, b.nfirsts, b.firsts[:b.nfirsts])
	dst = p.section(dst, b.nwords, sizes)
	return p.section(dst, b.nvalues, b.values[:b.nvalues])
}

// packNibbles packs n bytes below 16, in place, the first of two in the low
// half; b has what rounds them up to 8.
func packNibbles(b []byte, n int) []byte {
	clear(b[n:])
	for i := packMost(b); i < len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		x = (x | x>>4) & 0x00ff00ff00ff00ff
		x = (x | x>>8) & 0x0000ffff0000ffff
		binary.LittleEndian.PutUint32(b[i/2:], uint32(x|x>>16))
	}
	return b[:(n+1)/2]
}
