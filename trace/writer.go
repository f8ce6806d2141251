package trace

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
	"sync/atomic"

	"github.com/rdx-profiler/rdx/model"
)

// maxOpen bounds the blocks under way: with more threads than this, the block
// of the one that has waited longest is closed early.
const maxOpen = 32

// Writer writes a trace. Blocks are packed and written by a goroutine of
// their own. It is not for concurrent use, but Size and Accesses are.
type Writer struct {
	out     io.WriterAt
	maxSize int64
	next    atomic.Uint64 // number of the next access
	size    atomic.Int64  // bytes of the file so far

	open    map[blockKey]*blockWriter
	order   []*blockWriter // by last use, the longest ago first
	current *blockWriter

	jobs    chan *blockWriter // to be packed
	spare   chan *blockWriter // to be used again
	done    chan struct{}
	failed  atomic.Pointer[error]
	start   int64       // of the first block
	live    []blockInfo // in the file, in the order of writing
	at      int64       // where the next block goes
	dropped uint64      // accesses overwritten
	packer  *packer
	// late: what is written waits for the writer, which then does not pack.
	late atomic.Bool

	sites map[site]uint32 // of Write
	plain decoder
	words [2]uint64
}

type blockKey struct{ pid, thread int32 }

// NewWriter writes the file's header. With a maxSize above zero the file
// grows to about that many bytes; from then on the newest block takes the
// place of the oldest ones.
func NewWriter(out io.WriterAt, h Header) (*Writer, error) {
	head, err := appendFileHeader(nil, h)
	if err != nil {
		return nil, fmt.Errorf("trace header: %w", err)
	}
	if len(head) > maxHeader {
		return nil, fmt.Errorf("trace header of %d bytes: at most %d", len(head), maxHeader)
	}
	if least := int64(4 * blockBytes); h.MaxSize > 0 && h.MaxSize < least {
		return nil, fmt.Errorf("trace of at most %d bytes: at least %d are needed", h.MaxSize, least)
	}
	if _, err := out.WriteAt(head, 0); err != nil {
		return nil, err
	}
	p, err := newPacker()
	if err != nil {
		return nil, err
	}
	w := &Writer{
		out: out, maxSize: h.MaxSize, open: map[blockKey]*blockWriter{},
		jobs: make(chan *blockWriter, 2), spare: make(chan *blockWriter, maxOpen), done: make(chan struct{}),
		start: int64(len(head)), at: int64(len(head)), packer: p,
	}
	w.size.Store(w.at)
	go w.pack()
	return w, nil
}

// Accesses is the number written so far.
func (w *Writer) Accesses() uint64 { return w.next.Load() }

// Size is the file's size so far, in bytes; blocks under way not counted.
func (w *Writer) Size() int64 { return w.size.Load() }

// Err is why writing has failed, if it has.
func (w *Writer) Err() error {
	if p := w.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// block makes the block of a thread the current one.
func (w *Writer) block(pid, thread int32) *blockWriter {
	if b := w.current; b != nil && b.pid == pid && b.thread == thread {
		return b
	}
	if w.current != nil {
		w.current.close(w.next.Load())
	}
	key := blockKey{pid, thread}
	b := w.open[key]
	if b == nil {
		if len(w.order) == maxOpen {
			w.seal(w.order[0])
		}
		select {
		case b = <-w.spare:
		default:
			b = newBlockWriter()
		}
		b.reset(pid, thread)
		w.open[key] = b
		w.order = append(w.order, b)
	} else {
		for i, o := range w.order {
			if o == b {
				w.order = append(append(w.order[:i], w.order[i+1:]...), b)
				break
			}
		}
	}
	w.current = b
	return b
}

// seal hands a block on to be packed.
func (w *Writer) seal(b *blockWriter) {
	b.close(w.next.Load())
	delete(w.open, blockKey{b.pid, b.thread})
	for i, o := range w.order {
		if o == b {
			w.order = append(w.order[:i], w.order[i+1:]...)
			break
		}
	}
	if w.current == b {
		w.current = nil
	}
	w.jobs <- b
}

// entries encodes the entries of one thread from word i of a stream, up to a
// word that is none.
func (w *Writer) entries(pid int32, d *decoder, words []uint64, i int) (next int, err error) {
	for {
		b := w.block(pid, d.thread)
		n := w.next.Load()
		b.open(n)
		before := b.accesses
		next, err := b.enter(d, words, i)
		w.next.Store(n + uint64(b.accesses-before))
		if err != nil {
			return 0, err
		}
		if !b.full() {
			return next, nil
		}
		w.seal(b)
		if err := w.Err(); err != nil {
			return 0, err
		}
		if next == i || next == len(words) {
			return next, nil
		}
		i = next
	}
}

// Write writes accesses that come from elsewhere than the engine.
func (w *Writer) Write(accesses []model.Access) error {
	if w.sites == nil {
		w.sites = map[site]uint32{}
	}
	for i := range accesses {
		a := &accesses[i]
		s := site{pc: a.PC, size: max(a.Size, 1), flags: siteLoad}
		if a.Op == model.Store {
			s.flags = siteStore
		}
		id, ok := w.sites[s]
		if !ok {
			id = uint32(len(w.plain.segments))
			if id < wordFirstSegment {
				w.plain.segments = make([]*segment, wordFirstSegment)
				id = wordFirstSegment
			}
			w.plain.segments = append(w.plain.segments, newSegment([]site{s}, 1))
			w.sites[s] = id
		}
		w.words = [2]uint64{uint64(id) | 1<<32, a.Addr}
		w.plain.thread = a.Thread
		if _, err := w.entries(0, &w.plain, w.words[:], 0); err != nil {
			return err
		}
	}
	return nil
}

// pack packs and writes blocks.
func (w *Writer) pack() {
	defer close(w.done)
	var buf []byte
	for b := range w.jobs {
		if w.Err() == nil && b.entries > 0 {
			w.packer.plain = w.late.Load()
			buf = b.payload(append(buf[:0], make([]byte, blockHeaderBytes)...), w.packer)
			info := blockInfo{kind: dataBlock, pid: b.pid, thread: b.thread, first: b.first, accesses: uint32(b.accesses)}
			if err := w.put(buf, info); err != nil {
				w.failed.CompareAndSwap(nil, &err)
			}
		}
		select {
		case w.spare <- b:
		default:
		}
	}
}

// put writes one block where there is room for it; buf has room for the
// header before the payload.
func (w *Writer) put(buf []byte, info blockInfo) error {
	info.size = uint32(len(buf) - blockHeaderBytes)
	info.sum = crc32.Checksum(buf[blockHeaderBytes:], crcTable)
	if info.kind == dataBlock {
		w.makeRoom(int64(len(buf)))
	}
	info.offset = w.at
	info.append(buf[:0])
	if _, err := w.out.WriteAt(buf, w.at); err != nil {
		return fmt.Errorf("writing at byte %d: %w", w.at, err)
	}
	w.at += int64(len(buf))
	w.size.Store(max(w.size.Load(), w.at))
	if info.kind == dataBlock {
		w.live = append(w.live, info)
	}
	return nil
}

// makeRoom goes back to the start when the file is full, and gives up the
// blocks that will be overwritten.
func (w *Writer) makeRoom(n int64) {
	if w.maxSize <= 0 {
		return
	}
	if w.at+n > w.maxSize {
		w.at = w.start
	}
	for len(w.live) > 0 {
		o := w.live[0]
		end := o.offset + blockHeaderBytes + int64(o.size)
		if o.offset >= w.at+n || end <= w.at {
			return
		}
		w.dropped += uint64(o.accesses)
		w.live = w.live[1:]
	}
}

// Close writes what is under way and the index. Of the summary it fills in
// the counts. After an error of the medium it writes what index there is room
// for.
func (w *Writer) Close(s Summary) (Summary, error) {
	for len(w.order) > 0 {
		w.seal(w.order[0])
	}
	close(w.jobs)
	<-w.done
	defer w.packer.close()
	s.Accesses = w.next.Load()
	if err := w.Err(); err != nil {
		s.Partial = append(s.Partial, err.Error())
		s.Accesses = w.dropped
		for _, b := range w.live {
			s.Accesses += uint64(b.accesses)
		}
	}
	s.Dropped = w.dropped
	if w.dropped > 0 {
		s.Partial = append(s.Partial, fmt.Sprintf("the first %d accesses made room for later ones (file of at most %d bytes)", w.dropped, w.maxSize))
		// The index goes behind everything.
		w.at = w.size.Load()
	}
	sort.Slice(w.live, func(i, j int) bool { return w.live[i].first < w.live[j].first })
	x := index{Summary: s, Offsets: make([]int64, len(w.live))}
	for i, b := range w.live {
		x.Offsets[i] = b.offset
	}
	j, err := json.Marshal(x)
	if err != nil {
		return s, fmt.Errorf("trace index: %w", err)
	}
	at := w.at
	if err := w.put(append(make([]byte, blockHeaderBytes), j...), blockInfo{kind: indexBlock, first: s.Accesses}); err != nil {
		return s, fmt.Errorf("trace index: %w", err)
	}
	t := append([]byte(trailerMagic), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint64(t[len(trailerMagic):], uint64(at))
	if _, err := w.out.WriteAt(t, w.at); err != nil {
		return s, fmt.Errorf("trace index: %w", err)
	}
	w.size.Store(w.at + trailerBytes)
	return s, w.Err()
}
