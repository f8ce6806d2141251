package library

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/objfile"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Key tells files apart as /proc/PID/maps does. Inode 0 is the vdso, whose Device is its
// size.
type Key struct{ Device, Inode uint64 }

// VDSO is the key of the code that the kernel maps.
func VDSO(size uint64) Key { return Key{size, 0} }

// Place is where a file is mapped.
type Place struct {
	Via          int // a thread of the process by whose /proc it is reached
	Start, Limit uint64
	Name         string
	In           *Process // whose name it is
}

// File is a mapped file, held once, however many processes map it: a shell script starts
// thousands, of the same few programs and libraries.
type File struct {
	key   Key
	users int // mappings; of the goroutine that calls Hold

	ready chan struct{} // closed when what follows is known
	bytes io.ReaderAt   // nil if there are none
	file  *safeopen.File
	err   error // why there are none
	loads []elf.ProgHeader
	id    string

	// Of the goroutine that unwinds.
	table   *unwind.Table
	noTable error
}

// Hold returns the file that is mapped at a place, for one more mapping, and has it
// opened. nil if too many are open. It does not wait. It is for one goroutine at a time, as is Release.
func (l *Library) Hold(k Key, at Place) *File {
	if f := l.held[k]; f != nil {
		f.users++
		return f
	}
	if len(l.held) >= mostFiles {
		l.refused++
		return nil
	}
	f := &File{key: k, users: 1, ready: make(chan struct{})}
	l.held[k] = f
	l.Do(func() {
		defer close(f.ready)
		if k.Inode == 0 {
			f.bytes, f.err = readMemory(at)
		} else if f.file, f.err = l.open(k, at); f.err == nil {
			f.bytes = f.file
		}
		if f.err == nil {
			f.read()
		}
	})
	return f
}

// Release is for a mapping that is of no more use.
func (l *Library) Release(f *File) {
	if f == nil {
		return
	}
	if f.users--; f.users == 0 && l.held[f.key] == f {
		delete(l.held, f.key)
		l.Do(f.close)
	}
}

func (f *File) close() {
	go func() {
		<-f.ready
		if f.file != nil {
			f.file.Close()
		}
	}()
}

// Ready says whether it is known what the file has.
func (f *File) Ready() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// ReadAt implements io.ReaderAt. It waits until the file is open.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	if <-f.ready; f.err != nil {
		return 0, f.err
	}
	return f.bytes.ReadAt(b, off)
}

// Err says, when it is known, why the file can't be read.
func (f *File) Err() error {
	<-f.ready
	return f.err
}

// Loads are the segments of a program file that is Ready; none of another.
func (f *File) Loads() []elf.ProgHeader { return f.loads }

// BuildID of the file, "" if it has none. It waits until that is known.
func (f *File) BuildID() string {
	<-f.ready
	return f.id
}

// Opened is the open file, nil if it is none or is not Ready.
func (f *File) Opened() *os.File {
	if f.file == nil {
		return nil
	}
	return f.file.File()
}

// UnwindTable is the unwind table of the code, nil if it has none. It waits until the
// file is open, and is for one goroutine at a time.
func (f *File) UnwindTable() *unwind.Table {
	if f.table == nil && f.noTable == nil {
		if f.noTable = f.Err(); f.noTable == nil {
			f.table, f.noTable = unwind.NewTable(f.bytes, sampler.Arch)
		}
	}
	return f.table
}

// read reads what is asked for most.
func (f *File) read() {
	e, err := objfile.Open(f.bytes)
	if err != nil {
		return // code for others, as of an emulator
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD {
			f.loads = append(f.loads, p.ProgHeader)
		}
	}
	f.id, _ = objfile.BuildID(e)
}

// open opens what is mapped at a place, deleted or not, by the link that leads to it. If
// there is none, because the process has ended or links are not ours to follow, it is
// looked for by its name, below the process's root.
func (l *Library) open(k Key, at Place) (*safeopen.File, error) {
	link := fmt.Sprintf("/proc/%d/map_files/%x-%x", at.Via, at.Start, at.Limit)
	f, linkErr := l.patience.Open(k.Device, func() (*os.File, error) { return safeopen.Link(link) })
	if linkErr == nil || errors.Is(linkErr, safeopen.ErrStalled) {
		return f, linkErr
	}
	root := at.In.anyRoot()
	if root == nil {
		return nil, linkErr
	}
	f, err := l.patience.Open(k.Device, func() (*os.File, error) { return root.Open(at.Name, nil) })
	if err == nil && f.Inode != k.Inode {
		f.Close()
		err = fmt.Errorf("%s is not the file any more that was mapped: %w", at.Name, fs.ErrNotExist)
	}
	if errors.Is(err, fs.ErrNotExist) && errors.Is(linkErr, fs.ErrPermission) {
		err = fmt.Errorf("%w (what is mapped can be read by root, or with CAP_CHECKPOINT_RESTORE)", err)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// readMemory is for what no file has. /proc/PID/mem can be opened by few, and so is not.
func readMemory(at Place) (io.ReaderAt, error) {
	const most = 1 << 20
	image := make([]byte, min(at.Limit-at.Start, most))
	local := []unix.Iovec{{Base: &image[0], Len: uint64(len(image))}}
	n, err := unix.ProcessVMReadv(at.Via, local, []unix.RemoteIovec{{Base: uintptr(at.Start), Len: len(image)}}, 0)
	if err != nil {
		return nil, fmt.Errorf("read memory of process %d: %w", at.Via, err)
	}
	return bytes.NewReader(image[:n]), nil
}
