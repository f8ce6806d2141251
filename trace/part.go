package trace

// maxOpen bounds the blocks of a part that are under way: with more threads
// than this, the block of the one that has waited longest is closed early.
const maxOpen = 16

// partWords is the length of a part of an engine's stream: a buffer.
// Longer ones have less to repeat of the segments' descriptions, but more memory is
// under way, and the encoder of the next part waits for more buffers to be filled.
const partWords = bufferBytes / 8

// span is entries of one thread that follow each other in a buffer: those from
// a word on to the end.
type span struct {
	streamKey
	pid      int32
	segments []*segment // those described when it was cut off
	words    []uint64
	from     int
}

// streamKey is a thread in one stream: a number means one segment there. After an exec
// a process has another stream.
type streamKey struct {
	stream int
	thread int32
}

// given is spans, and what is to be done when their words are read no more.
type given struct {
	spans []span
	after func()
}

// part is a stretch of the trace, all threads', that one goroutine encodes
// while others encode those before and after it: blocks need no other block,
// and the numbers of accesses are known when those before have been counted.
type part struct {
	w      *Writer
	given  chan given
	words  int           // given so far
	done   chan struct{} // closed when blocks are complete
	packer *packer

	accesses uint64
	open     map[streamKey]*blockWriter
	order    []*blockWriter // by last use, the longest ago first
	current  *blockWriter
	blocks   []packedBlock
}

// packedBlock is a block ready to be written, numbered as if its part were the
// trace's first.
type packedBlock struct {
	info blockInfo
	buf  []byte // room for the header, and the payload
}

func newPart(w *Writer) (*part, error) {
	p, err := newPacker()
	return &part{w: w, packer: p, open: map[streamKey]*blockWriter{}}, err
}

// start begins a new part in the same memory.
func (p *part) start() {
	p.given, p.done = make(chan given, bufferCount), make(chan struct{})
	p.words, p.accesses, p.blocks = 0, 0, p.blocks[:0]
	go p.encode()
}

// encode encodes what is given. After an error nothing more is kept.
func (p *part) encode() {
	defer close(p.done)
	for g := range p.given {
		for _, s := range g.spans {
			if p.w.Err() != nil {
				break
			}
			if err := p.entries(s); err != nil {
				p.w.fail(err)
			}
		}
		g.after()
	}
	for len(p.order) > 0 {
		p.seal(p.order[0])
	}
}

// entries encodes a span.
func (p *part) entries(s span) error {
	for i := s.from; i < len(s.words); {
		b := p.block(s.streamKey, s.pid)
		b.open(p.accesses)
		before := b.accesses
		next, err := b.enter(s.segments, s.words, i)
		p.accesses += uint64(b.accesses - before)
		p.w.next.Add(uint64(b.accesses - before))
		if err != nil {
			return err
		}
		if b.full() {
			p.seal(b)
		} else if next < len(s.words) {
			return errUndescribed(s.words, next)
		}
		i = next
	}
	return nil
}

// block makes the block of a thread the current one.
func (p *part) block(key streamKey, pid int32) *blockWriter {
	if b := p.current; b != nil && b.streamKey == key {
		return b
	}
	if p.current != nil {
		p.current.close(p.accesses)
	}
	b := p.open[key]
	if b == nil {
		if len(p.order) == maxOpen {
			p.seal(p.order[0])
		}
		select {
		case b = <-p.w.spare:
		default:
			b = newBlockWriter()
		}
		b.reset(key, pid)
		p.open[key] = b
	} else {
		p.forget(b)
	}
	p.order = append(p.order, b)
	p.current = b
	return b
}

func (p *part) forget(b *blockWriter) {
	for i, o := range p.order {
		if o == b {
			p.order = append(p.order[:i], p.order[i+1:]...)
			break
		}
	}
}

// seal packs a block.
func (p *part) seal(b *blockWriter) {
	b.close(p.accesses)
	delete(p.open, b.streamKey)
	p.forget(b)
	if p.current == b {
		p.current = nil
	}
	if p.w.Err() == nil && b.entries > 0 {
		if len(p.blocks) < cap(p.blocks) {
			p.blocks = p.blocks[:len(p.blocks)+1] // whose buffer is used again
		} else {
			p.blocks = append(p.blocks, packedBlock{})
		}
		k := &p.blocks[len(p.blocks)-1]
		k.buf = b.payload(append(k.buf[:0], make([]byte, blockHeaderBytes)...), p.packer)
		k.info = blockInfo{kind: dataBlock, pid: b.pid, thread: b.thread, first: b.first, accesses: uint32(b.accesses)}
	}
	select {
	case p.w.spare <- b:
	default:
	}
}

// recorder gives each process's stream its place in the file.
type recorder struct{ w *Writer }

func (r recorder) open(pid int) (sink, error) {
	r.w.streams++
	return &processRecorder{w: r.w, pid: int32(pid), stream: r.w.streams}, nil
}

func (r recorder) after(f func()) {
	r.w.hand(f)
	if r.w.part != nil && r.w.part.words >= partWords {
		r.w.cut()
	}
}

type processRecorder struct {
	w         *Writer
	pid       int32
	stream    int
	redefined int // segments of the decoder
}

// enter only finds where the entries end, if that is not known. A fault belongs to the entry before
// it.
func (p *processRecorder) enter(d *decoder, w []uint64, i int) (int, error) {
	if err := p.w.Err(); err != nil {
		return 0, err
	}
	if p.redefined != d.redefined {
		p.w.streams++
		p.stream, p.redefined = p.w.streams, d.redefined
	}
	next, last := i, i
	if d.entries {
		next = len(w)
	}
	for next < len(w) {
		h := w[next]
		if isMark(h) && (h != wordFault|1<<32 || next == i) {
			break
		}
		_, n := first(h)
		last = next
		next += n
	}
	if next > len(w) {
		if g, _ := d.at(w, last); g != nil {
			return 0, errEntry(w, last, g.length)
		}
		return 0, errUndescribed(w, last)
	}
	p.w.taken = append(p.w.taken, span{streamKey{p.stream, d.thread}, p.pid, d.segments, w[:next], i})
	return next, nil
}
