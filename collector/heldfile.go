package collector

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// heldFiles are the files that the target's processes have mapped, each held open
// once, however many processes map it: a shell script starts thousands, of the
// same few programs and libraries.
type heldFiles map[fileID]*heldFile

type fileID struct{ device, inode uint64 }

type heldFile struct {
	*os.File
	id    fileID
	users int // mappings
	code
}

// hold opens the file that a link of /proc leads to for one more mapping.
func (h heldFiles) hold(link string) (*heldFile, error) {
	f, err := safeopen.Link(link)
	if err != nil {
		return nil, err
	}
	return h.keep(f)
}

// holdNamed opens it by the name that a process has it by.
func (h heldFiles) holdNamed(pid int, name string) (*heldFile, error) {
	root, err := safeopen.Of(pid)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(name, nil)
	if err != nil {
		return nil, err
	}
	return h.keep(f)
}

func (h heldFiles) keep(f *os.File) (*heldFile, error) {
	// What is held open keeps its numbers to itself, also when it is deleted.
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	id := fileID{uint64(st.Dev), st.Ino}
	if held := h[id]; held != nil {
		f.Close()
		held.users++
		return held, nil
	}
	held := &heldFile{File: f, id: id, users: 1, code: code{binary: f}}
	h[id] = held
	return held, nil
}

// release is for a mapping that is of no more use.
func (h heldFiles) release(f *heldFile) {
	if f.users--; f.users == 0 {
		f.Close()
		delete(h, f.id)
	}
}

// code is what is mapped, for the goroutine that unwinds; its file may be closed
// meanwhile.
type code struct {
	binary  io.ReaderAt // nil if there is none
	table   *unwind.Table
	noTable error  // why there is none
	buildID string // "" if not yet looked for, noBuildID if there is none
}

// unwindTable is the unwind table of the code, nil if it has none.
func (c *code) unwindTable() *unwind.Table {
	if c.table == nil && c.noTable == nil {
		if c.binary == nil {
			c.noTable = fs.ErrNotExist
		} else {
			c.table, c.noTable = unwind.NewTable(c.binary, sampler.Arch)
		}
	}
	return c.table
}
