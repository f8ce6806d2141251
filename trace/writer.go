package trace

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sort"
	"sync/atomic"
)

// Writer writes a trace. What it is given is cut into parts, which are encoded
// at the same time, and written by a goroutine of its own. It is not for
// concurrent use, but Size and Accesses are.
type Writer struct {
	out     io.WriterAt
	maxSize int64
	next    atomic.Uint64 // accesses encoded
	size    atomic.Int64  // bytes of the file so far

	taken   []span // to be handed to a part
	streams int    // so far, but for that of Write
	part    *part  // under way; nil between two
	free    chan *part
	queue   chan *part        // in the order of the trace
	spare   chan *blockWriter // of blocks that are packed
	done    chan struct{}

	failed  atomic.Pointer[error]
	start   int64       // of the first block
	live    []blockInfo // in the file, in the order of writing
	at      int64       // where the next block goes
	dropped uint64      // accesses overwritten

	written written
}

// maxParts bounds the processors that encode: an engine does not keep more
// of them busy.
const maxParts = 8

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
	parts := min(runtime.GOMAXPROCS(0)+2, maxParts)
	w := &Writer{
		out: out, maxSize: h.MaxSize,
		free: make(chan *part, parts), queue: make(chan *part, parts), spare: make(chan *blockWriter, parts*maxOpen), done: make(chan struct{}),
		start: int64(len(head)), at: int64(len(head)),
	}
	w.size.Store(w.at)
	for range parts {
		p, err := newPart(w)
		if err != nil {
			return nil, err
		}
		w.free <- p
	}
	go w.write()
	return w, nil
}

// Accesses is the number encoded so far.
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

func (w *Writer) fail(err error) { w.failed.CompareAndSwap(nil, &err) }

// hand gives the spans taken so far to the part under way, which calls after
// when it reads their words no more. It waits while all parts are busy.
func (w *Writer) hand(after func()) {
	if len(w.taken) == 0 {
		after()
		return
	}
	if w.part == nil {
		w.part = <-w.free
		w.part.start()
		w.queue <- w.part
	}
	w.part.given <- given{w.taken, after}
	for i := range w.taken {
		w.part.words += len(w.taken[i].words) - w.taken[i].from
	}
	w.taken = nil
}

// cut ends the part under way.
func (w *Writer) cut() {
	if w.part != nil {
		close(w.part.given)
		w.part = nil
	}
}

// write writes the parts in their order.
func (w *Writer) write() {
	defer close(w.done)
	var first uint64
	for p := range w.queue {
		<-p.done
		for i := range p.blocks {
			b := &p.blocks[i]
			b.info.first += first
			if w.Err() == nil {
				if err := w.put(b.buf, b.info); err != nil {
					w.fail(err)
				}
			}
		}
		first += p.accesses
		w.free <- p
	}
}

// put writes one block of data where there is room for it; buf has room for the
// header before the payload.
func (w *Writer) put(buf []byte, info blockInfo) error {
	w.makeRoom(int64(len(buf)))
	info.offset = w.at
	info.seal(buf)
	if _, err := w.out.WriteAt(buf, w.at); err != nil {
		return fmt.Errorf("writing at byte %d: %w", w.at, err)
	}
	w.at += int64(len(buf))
	w.size.Store(max(w.size.Load(), w.at))
	w.live = append(w.live, info)
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
// the counts. After an error of the medium the index is of what was written
// before: it goes where the block that failed began. Where it has no room there,
// the file's last block gives way, and another one until it has, if the medium can be truncated.
func (w *Writer) Close(s Summary) (Summary, error) {
	w.flush()
	w.hand(func() {})
	w.cut()
	close(w.queue)
	<-w.done
	for range cap(w.free) {
		(<-w.free).packer.close()
	}
	sort.Slice(w.live, func(i, j int) bool { return w.live[i].first < w.live[j].first })
	if w.Err() != nil {
		w.truncate(w.size.Load()) // if that fails, so does the index, or the file is read without it
	}
	whole, err := w.putIndex(s)
	for err != nil {
		w.fail(fmt.Errorf("trace index: %w", err))
		if !w.giveUp() {
			return whole, fmt.Errorf("trace index: %w", err)
		}
		whole, err = w.putIndex(s)
	}
	return whole, w.Err()
}

// giveUp gives up the last block of the file.
func (w *Writer) giveUp() bool {
	if len(w.live) == 0 {
		return false
	}
	last := 0
	for i, b := range w.live {
		if b.offset > w.live[last].offset {
			last = i
		}
	}
	at := w.live[last].offset
	if !w.truncate(at) {
		return false
	}
	w.size.Store(at)
	w.at = min(w.at, at)
	if last == len(w.live)-1 {
		w.live = w.live[:last]
		return true
	}
	// The newest blocks are at the start of the file: what is left is without a gap.
	for _, b := range w.live[:last+1] {
		w.dropped += uint64(b.accesses)
	}
	w.live = w.live[last+1:]
	return true
}

// truncate says whether the file ends there now, which not all media can.
func (w *Writer) truncate(size int64) bool {
	t, ok := w.out.(interface{ Truncate(int64) error })
	return ok && t.Truncate(size) == nil
}

// putIndex writes the index and the trailer behind the blocks.
func (w *Writer) putIndex(s Summary) (Summary, error) {
	s.Partial = slices.Clone(s.Partial)
	s.Accesses = w.next.Load()
	if err := w.Err(); err != nil {
		s.Partial = append(s.Partial, err.Error())
		s.Accesses = w.dropped
		for _, b := range w.live {
			s.Accesses += uint64(b.accesses)
		}
	}
	s.Dropped = w.dropped
	at := w.at
	if w.dropped > 0 {
		s.Partial = append(s.Partial, fmt.Sprintf("the first %d accesses made room for later ones (file of at most %d bytes)", w.dropped, w.maxSize))
		at = w.size.Load() // behind everything
	}
	x := index{Summary: s, Offsets: make([]int64, len(w.live))}
	for i, b := range w.live {
		x.Offsets[i] = b.offset
	}
	j, err := json.Marshal(x)
	if err != nil {
		return s, err
	}
	buf := append(make([]byte, blockHeaderBytes), j...)
	info := blockInfo{kind: indexBlock, first: s.Accesses, offset: at}
	info.seal(buf)
	buf = append(buf, trailerMagic...)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(at))
	if _, err := w.out.WriteAt(buf, at); err != nil {
		return s, fmt.Errorf("writing at byte %d: %w", at, err)
	}
	w.size.Store(at + int64(len(buf)))
	return s, nil
}
