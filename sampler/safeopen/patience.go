package safeopen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStalled: the file system has not answered in time. It is not asked again.
var ErrStalled = errors.New("its file system does not answer")

// Patience bounds how long files may take: what is not done by then is given up, and
// goes on by itself, in a goroutine that nobody waits for. It is for many files, and
// goroutines: each file system is waited for once.
type Patience struct {
	each time.Duration

	mu      sync.Mutex
	stalled map[uint64]bool // devices
}

// NewPatience waits so long for each answer of a file system.
func NewPatience(each time.Duration) *Patience {
	return &Patience{each: each, stalled: make(map[uint64]bool)}
}

func (p *Patience) isStalled(device uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled[device]
}

func (p *Patience) stall(device uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled[device] = true
}

// within does f in a goroutine of its own; false if that has not come back in time.
func (p *Patience) within(f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	t := time.NewTimer(p.each)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// Do does f, which opens files, in time; what it opens later is its own to close.
func (p *Patience) Do(f func()) error {
	if !p.within(f) {
		return ErrStalled
	}
	return nil
}

// Open opens a file by one of this package's functions, in time. known is the device it
// is on, as far as that is known before, else 0.
func (p *Patience) Open(known uint64, open func() (*os.File, error)) (*File, error) {
	if p.isStalled(known) {
		return nil, ErrStalled
	}
	opened := make(chan *File, 1)
	failed := make(chan error, 1)
	var late atomic.Bool
	ok := p.within(func() {
		f, err := open()
		var id identity
		if err == nil {
			if id, err = identify(f); err != nil {
				f.Close()
			}
		}
		switch {
		case err != nil:
			failed <- err
		case late.Load():
			f.Close()
		default:
			opened <- &File{patience: p, file: f, Device: id.device, Inode: id.inode, Size: id.size}
		}
	})
	if !ok {
		late.Store(true)
		select {
		case f := <-opened: // just now
			return f, nil
		default:
		}
		if known != 0 {
			p.stall(known)
		}
		return nil, ErrStalled
	}
	select {
	case f := <-opened:
		return f, nil
	case err := <-failed:
		return nil, err
	}
}

// File is an open file each reading of which comes back in time. It may be used by
// several goroutines.
type File struct {
	Device, Inode uint64
	Size          int64 // when it was opened

	patience *Patience
	file     *os.File

	mu     sync.Mutex
	window []byte // of windowSize, or what there is, at windowAt
	at     int64
	spare  []byte // of pieceSize, or nil while a reading has it
}

const (
	windowSize = 64 << 10
	pieceSize  = 1 << 20
)

// Name is what the file was opened by.
func (f *File) Name() string { return f.file.Name() }

// File is the open file itself; to read it may take forever.
func (f *File) File() *os.File { return f.file }

// Close closes the file, without waiting for that: a server is told of it, too, and readings that
// were given up may be under way.
func (f *File) Close() { go f.file.Close() }

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s: negative offset", f.Name())
	}
	for n < len(b) && err == nil {
		var m int
		if piece := b[n:min(len(b), n+pieceSize)]; len(piece) < windowSize/4 {
			m, err = f.byWindow(piece, off+int64(n))
		} else {
			m, err = f.readInto(piece, off+int64(n))
		}
		n += m
	}
	return n, err
}

// byWindow keeps a piece of the file around what was read last: many readings are of
// some bytes.
func (f *File) byWindow(b []byte, off int64) (int, error) {
	f.mu.Lock()
	window, at := f.window, f.at
	f.mu.Unlock()
	if off < at || off+int64(len(b)) > at+int64(len(window)) {
		at = off / (windowSize / 4) * (windowSize / 4)
		var err error
		if window, err = f.read(make([]byte, windowSize), at); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if len(window) == windowSize { // the end may move
			f.mu.Lock()
			f.window, f.at = window, at
			f.mu.Unlock()
		}
	}
	if off-at >= int64(len(window)) {
		return 0, io.EOF
	}
	n := copy(b, window[off-at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *File) readInto(b []byte, off int64) (int, error) {
	f.mu.Lock()
	piece := f.spare
	f.spare = nil
	f.mu.Unlock()
	if piece == nil {
		piece = make([]byte, pieceSize)
	}
	got, err := f.read(piece[:len(b)], off)
	n := copy(b, got)
	if !errors.Is(err, ErrStalled) { // else it may yet be written to
		f.mu.Lock()
		f.spare = piece
		f.mu.Unlock()
	}
	return n, err
}

// read reads into a buffer which a reading that comes too late may still write.
func (f *File) read(b []byte, off int64) ([]byte, error) {
	if f.patience.isStalled(f.Device) {
		return nil, fmt.Errorf("read %s: %w", f.Name(), ErrStalled)
	}
	type result struct {
		b   []byte
		err error
	}
	came := make(chan result, 1)
	if !f.patience.within(func() {
		n, err := f.file.ReadAt(b, off)
		came <- result{b[:n], err}
	}) {
		f.patience.stall(f.Device)
		return nil, fmt.Errorf("read %s: %w", f.Name(), ErrStalled)
	}
	r := <-came
	return r.b, r.err
}
