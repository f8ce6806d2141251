package trace

// maxOpen bounds the blocks of a part that are under way: with more threads
// than this, the block of the one that has waited longest is closed early.
const maxOpen = 16

// partWords is the length of a part of an engine's stream: three buffers.
// Longer ones have less to repeat of the segments' descriptions, but the
// encoder of the next part waits for more buffers to be filled.
const partWords = 3 * bufferBytes / 8

// span is entries of one thread that follow each other in a buffer: those from
// a word on to the end.
type span struct {
	pid, thread int32
	segments    []*segment // those described when it was cut off
	words       []uint64
	from        int
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
	open     map[blockKey]*blockWriter
	order    []*blockWriter // by last use, the longest ago first
	current  *blockWriter
	blocks   []packedBlock
}

type blockKey struct{ pid, thread int32 }

// packedBlock is a block ready to be written, numbered as if its part were the
// trace's first.
type packedBlock struct {
	info blockInfo
	buf  []byte // room for the header, and the payload
}

func newPart(w *Writer) (*part, error) {
	p, err := newPacker()
	return &part{w: w, packer: p, open: map[blockKey]*blockWriter{}}, err
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
		b := p.block(s.pid, s.thread)
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
func (p *part) block(pid, thread int32) *blockWriter {
	if b := p.current; b != nil && b.pid == pid && b.thread == thread {
		return b
	}
	if p.current != nil {
		p.current.close(p.accesses)
	}
	key := blockKey{pid, thread}
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
		b.reset(pid, thread)
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
	delete(p.open, blockKey{b.pid, b.thread})
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

func (r recorder) open(pid int) (sink, error) { return processRecorder{r.w, int32(pid)}, nil }

func (r recorder) after(f func()) {
	r.w.hand(f)
	if r.w.part != nil && r.w.part.words >= partWords {
		r.w.cut()
	}
}

type processRecorder struct {
	w   *Writer
	pid int32
}

// enter only finds where the entries end, if that is not known. A fault belongs to the entry before
// it.
func (p processRecorder) enter(d *decoder, w []uint64, i int) (int, error) {
	if err := p.w.Err(); err != nil {
		return 0, err
	}
	next, last := i, i
	if d.entries {
		next = len(w)
	}
	for next < len(w) {
		h := w[next]
		if uint32(h) < wordFirstSegment && (h != wordFault|1<<32 || next == i) {
			break
		}
		last = next
		next += 1 + int(h>>32)
	}
	if next > len(w) {
		if g, _ := d.at(w, last); g != nil {
			return 0, errEntry(w, last, g.words)
		}
		return 0, errUndescribed(w, last)
	}
	p.w.taken = append(p.w.taken, span{p.pid, d.thread, d.segments, w[:next], i})
	return next, nil
}
