package trace

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"

	"github.com/klauspost/compress/zstd"

	"github.com/rdx-profiler/rdx/model"
)

// Damage is a part of a trace that could not be read.
type Damage struct {
	Offset int64 // of the block, or of the bytes that should have been one
	Reason string
}

func (d Damage) String() string { return fmt.Sprintf("byte %d: %s", d.Offset, d.Reason) }

// Thread is what a trace has of one thread.
type Thread struct {
	ID       int32 // kernel thread id
	PID      int32 // process the stream belongs to, 0 if unknown
	Blocks   int
	Accesses uint64
}

// Reader reads a trace, all threads in the order in which it happened, or one
// thread alone. It holds one unpacked block per thread. Not for concurrent
// use.
type Reader struct {
	in      io.ReaderAt
	size    int64
	header  Header
	summary Summary
	start   int64
	blocks  []blockInfo // by first access
	damage  []Damage
	decoder *zstd.Decoder

	only   *int32
	todo   []blockInfo // not opened yet, by first access
	open   queue
	skip   uint64 // accesses before this one are not wanted
	out    []model.Access
	packed []byte
	spare  [][]byte // payloads to be used again
}

// stream is one block that is read, ordered by its next access.
type stream struct {
	info  blockInfo
	block *blockReader
	buf   []byte
	first uint64 // of the run that comes next or is under way
}

// blockKey is a thread as a block's header names it.
type blockKey struct{ pid, thread int32 }

type queue []*stream

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].first < q[j].first }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*stream)) }
func (q *queue) Pop() any {
	o := *q
	x := o[len(o)-1]
	*q = o[:len(o)-1]
	return x
}

// File is a Reader of a file.
type File struct {
	*Reader
	f *os.File
}

// OpenFile opens a trace. A trace of another version, or a file that is none,
// is an error; damage inside it is not, see Reader.Damage.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("trace: %w", err)
	}
	r, err := NewReader(f, st.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	return &File{r, f}, nil
}

// Close closes the file.
func (f *File) Close() error {
	f.Reader.decoder.Close()
	return f.f.Close()
}

// NewReader reads the header and the index. Without an index it looks through
// the whole file for blocks.
func NewReader(in io.ReaderAt, size int64) (*Reader, error) {
	h, start, err := readFileHeader(in)
	if err != nil {
		return nil, err
	}
	r := &Reader{in: in, size: size, header: h, start: start}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlockBytes))
	if err != nil {
		return nil, err
	}
	r.decoder = d
	if err := r.readIndex(); err != nil {
		r.damage = append(r.damage, Damage{r.size, fmt.Sprintf("no index (%v): the recording did not end in an orderly way", err)})
		r.summary = Summary{Partial: []string{"the recording did not end in an orderly way"}}
		r.scan()
	}
	sort.Slice(r.blocks, func(i, j int) bool { return r.blocks[i].first < r.blocks[j].first })
	r.out = make([]model.Access, 4*maxSites)
	r.Seek(0)
	return r, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Header says what the trace is of.
func (r *Reader) Header() Header { return r.header }

// Summary is what the recorder said at its end.
func (r *Reader) Summary() Summary { return r.summary }

// Mappings is the code that the addresses of instructions lie in; nil if the trace
// does not have it, or is of several processes, whose addresses say nothing
// without knowing whose they are.
func (r *Reader) Mappings() []*model.Mapping {
	for _, b := range r.blocks {
		if b.pid != r.blocks[0].pid {
			return nil
		}
	}
	return r.summary.Mappings
}

// Damage lists what could not be read so far.
func (r *Reader) Damage() []Damage { return r.damage }

// Threads lists the threads by number of accesses, the most first.
func (r *Reader) Threads() []Thread {
	at := map[blockKey]int{}
	var ts []Thread
	for _, b := range r.blocks {
		k := blockKey{b.pid, b.thread}
		i, ok := at[k]
		if !ok {
			i = len(ts)
			at[k] = i
			ts = append(ts, Thread{ID: b.thread, PID: b.pid})
		}
		ts[i].Blocks++
		ts[i].Accesses += uint64(b.accesses)
	}
	sort.SliceStable(ts, func(i, j int) bool { return ts[i].Accesses > ts[j].Accesses })
	return ts
}

func (r *Reader) readIndex() error {
	var t [trailerBytes]byte
	if r.size < r.start+trailerBytes {
		return io.ErrUnexpectedEOF
	}
	if _, err := r.in.ReadAt(t[:], r.size-trailerBytes); err != nil {
		return noEOF(err)
	}
	if string(t[:8]) != trailerMagic {
		return errors.New("the file ends early")
	}
	info, err := r.headerAt(int64(binary.LittleEndian.Uint64(t[8:])))
	if err != nil {
		return err
	}
	if info.kind != indexBlock {
		return errBlock
	}
	j, err := r.payload(info)
	if err != nil {
		return err
	}
	var x index
	if err := json.Unmarshal(j, &x); err != nil {
		return err
	}
	r.summary = x.Summary
	for _, at := range x.Offsets {
		b, err := r.headerAt(at)
		if err == nil && b.kind != dataBlock {
			err = errBlock
		}
		if err != nil {
			r.damage = append(r.damage, Damage{at, err.Error()})
			continue
		}
		r.blocks = append(r.blocks, b)
	}
	return nil
}

func (r *Reader) headerAt(at int64) (blockInfo, error) {
	var b [blockHeaderBytes]byte
	if at < r.start || at > r.size-blockHeaderBytes {
		return blockInfo{}, fmt.Errorf("block at byte %d, outside the file", at)
	}
	if _, err := r.in.ReadAt(b[:], at); err != nil {
		return blockInfo{}, noEOF(err)
	}
	i, err := parseBlockHeader(b[:])
	i.offset = at
	return i, err
}

// scan finds blocks by their magic number.
func (r *Reader) scan() {
	magic := binary.LittleEndian.AppendUint32(nil, blockMagic)
	buf := make([]byte, 1<<20)
	bad := int64(-1) // where a stretch without blocks began
	for at := r.start; at+blockHeaderBytes <= r.size; {
		info, err := r.headerAt(at)
		if err == nil {
			if bad >= 0 {
				r.damage = append(r.damage, Damage{bad, fmt.Sprintf("%d bytes that are no block", at-bad)})
				bad = -1
			}
			if at+blockHeaderBytes+int64(info.size) > r.size {
				r.damage = append(r.damage, Damage{at, "block cut short by the end of the file"})
				return
			}
			if info.kind == dataBlock {
				r.blocks = append(r.blocks, info)
			}
			at += blockHeaderBytes + int64(info.size)
			continue
		}
		if bad < 0 {
			bad = at
		}
		at++
		n, _ := r.in.ReadAt(buf[:min(int64(len(buf)), r.size-at)], at)
		if i := bytes.Index(buf[:n], magic); i >= 0 {
			at += int64(i)
		} else {
			at += int64(max(n-len(magic)+1, 1))
		}
	}
	if bad >= 0 {
		r.damage = append(r.damage, Damage{bad, fmt.Sprintf("%d bytes that are no block", r.size-bad)})
	}
}

// payload reads and checks a block. It is valid until the next call.
func (r *Reader) payload(info blockInfo) ([]byte, error) {
	if int64(info.size) > r.size-info.offset-blockHeaderBytes {
		return nil, io.ErrUnexpectedEOF
	}
	if cap(r.packed) < int(info.size) {
		r.packed = make([]byte, info.size)
	}
	r.packed = r.packed[:info.size]
	if _, err := r.in.ReadAt(r.packed, info.offset+blockHeaderBytes); err != nil {
		return nil, noEOF(err)
	}
	if crc32.Checksum(r.packed, crcTable) != info.sum {
		return nil, errors.New("wrong checksum")
	}
	return r.packed, nil
}

// Only restricts the reading to one thread, from its first access.
func (r *Reader) Only(thread int32) {
	r.only = &thread
	r.Seek(0)
}

// Seek goes to access number n of the trace, counted over all threads: what
// Next returns then begins with the first access that has this number or a
// higher one. Blocks that end before it are not read.
func (r *Reader) Seek(n uint64) {
	from := map[blockKey]uint64{} // of each thread, the block that n may be in
	for _, b := range r.blocks {
		if b.first <= n {
			from[blockKey{b.pid, b.thread}] = b.first
		}
	}
	r.todo = r.todo[:0]
	for _, b := range r.blocks {
		if b.first >= from[blockKey{b.pid, b.thread}] && (r.only == nil || *r.only == b.thread) {
			r.todo = append(r.todo, b)
		}
	}
	for _, s := range r.open {
		r.spare = append(r.spare, s.buf)
	}
	r.open = r.open[:0]
	r.skip = n
}

// Next returns accesses in the order in which they happened, as many as lie
// at hand, and the number of the first; then io.EOF. The slice is valid until
// the next call. A block that cannot be read is left out and listed in
// Damage: the numbers show the gap.
func (r *Reader) Next() (first uint64, batch []model.Access, err error) {
	for {
		end, n, err := r.advance(func(b *blockReader) (int, error) { return b.next(r.out) })
		if err != nil {
			return 0, nil, err
		}
		if end <= r.skip {
			continue
		}
		from := 0
		if first := end - uint64(n); first < r.skip {
			from = int(r.skip - first)
		}
		return end - uint64(n-from), r.out[from:n], nil
	}
}

// advance lets take decode accesses of the block that is next, and returns how
// many it has decoded, at least one, and the number of the one after them; then
// io.EOF. take returns 0 when the block's run has ended.
func (r *Reader) advance(take func(*blockReader) (int, error)) (end uint64, n int, err error) {
	for {
		for len(r.todo) > 0 && (len(r.open) == 0 || r.todo[0].first <= r.open[0].first) {
			b := r.todo[0]
			r.todo = r.todo[1:]
			if err := r.openStream(b); err != nil {
				r.damage = append(r.damage, Damage{b.offset, fmt.Sprintf("block of %d accesses of thread %d: %v", b.accesses, b.thread, err)})
			}
		}
		if len(r.open) == 0 {
			return 0, 0, io.EOF
		}
		s := r.open[0]
		n, err := take(s.block)
		if err == nil && n > 0 {
			return s.block.at, n, nil
		}
		if err == nil {
			s.first, err = s.block.run()
		}
		if err == nil {
			heap.Fix(&r.open, 0)
			continue
		}
		if err != io.EOF {
			r.damage = append(r.damage, Damage{s.info.offset, fmt.Sprintf("block of thread %d: %d of %d accesses: %v",
				s.info.thread, s.block.limit, s.info.accesses, err)})
		}
		r.spare = append(r.spare, s.buf)
		heap.Pop(&r.open)
	}
}

func (r *Reader) openStream(info blockInfo) error {
	s := &stream{info: info}
	if n := len(r.spare); n > 0 {
		s.buf, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	p, err := r.payload(info)
	if err != nil {
		return err
	}
	var sections [blockSections]section
	if sections, s.buf, err = unpack(r.decoder, p, s.buf); err != nil {
		return err
	}
	if s.block, err = openBlock(info, sections); err != nil {
		return err
	}
	if s.first, err = s.block.run(); err != nil {
		if err == io.EOF {
			return errBlock
		}
		return err
	}
	heap.Push(&r.open, s)
	return nil
}
