package ahead

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// files are those that a replay reads: the regular ones that the process had open,
// whose position was taken with the checkpoint, and those that the replay comes to
// open itself. Each is opened once more, to read, when nobody is held any more; nothing is
// written, and nothing of the process changes.
type files struct {
	pid     int
	regular []int // descriptors, as planned
	used    map[int]bool
	taken   []takenFile
	open    map[int]*openFile
	buf     []byte
}

// takenFile is a descriptor as it was at the checkpoint: where it stood, and in
// what file.
type takenFile struct {
	fd   int
	at   int64
	file string
}

type openFile struct {
	*os.File
	at int64
}

const (
	// mostFiles are opened in a hold, at some 20 µs each.
	mostFiles = 4
	// mostRead is how much a call may read for the replay to pass it.
	mostRead = 1 << 20
)

// plan finds the regular files that the process has open to read.
func (f *files) plan(pid int) error {
	f.pid, f.regular, f.used = pid, f.regular[:0], make(map[int]bool)
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return fmt.Errorf("plan checkpoint: %w", err)
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		f.used[fd] = true
		// The mode of the link is how the file is open: logs and lock files are not read.
		var link unix.Stat_t
		if len(f.regular) < mostFiles && unix.Lstat(f.path("fd", fd), &link) == nil && link.Mode&unix.S_IRUSR != 0 && f.isRegular(fd) {
			f.regular = append(f.regular, fd)
		}
	}
	return nil
}

// isRegular does not ask a server: it may never answer.
func (f *files) isRegular(fd int) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, f.path("fd", fd), unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

func (f *files) path(dir string, fd int) string { return fmt.Sprintf("/proc/%d/%s/%d", f.pid, dir, fd) }

// take notes where they stand. It opens none: a thread is held, and a file system
// may take its time.
func (f *files) take() {
	f.close()
	f.taken = f.taken[:0]
	for _, fd := range f.regular {
		file, err := os.Readlink(f.path("fd", fd))
		if err != nil {
			continue // closed meanwhile
		}
		info, err := os.ReadFile(f.path("fdinfo", fd))
		if err != nil {
			continue
		}
		if strings.Contains(string(info), "LEASE") {
			continue // to open it would send the process a signal
		}
		first, _, _ := strings.Cut(string(info), "\n")
		at, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(first, "pos:")), 10, 64)
		if err != nil {
			continue
		}
		f.taken = append(f.taken, takenFile{fd, at, file})
	}
}

// reopen opens those that were taken, but for what the descriptor is not of any more.
func (f *files) reopen() {
	f.open = make(map[int]*openFile)
	for _, t := range f.taken {
		opened, err := safeopen.Link(f.path("fd", t.fd))
		if err != nil {
			continue
		}
		if file, err := os.Readlink(f.path("fd", t.fd)); err != nil || file != t.file {
			opened.Close()
			continue
		}
		f.open[t.fd] = &openFile{opened, t.at}
	}
}

func (f *files) close() {
	for _, o := range f.open {
		o.Close()
	}
	f.open = nil
}

// read does read(fd, addr, size).
func (f *files) read(m *machine, fd int, addr, size uint64) (result uint64, ok bool) {
	o := f.open[fd]
	if o == nil || size > mostRead {
		return 0, false
	}
	if uint64(len(f.buf)) < size {
		f.buf = make([]byte, mostRead)
	}
	n, _ := o.ReadAt(f.buf[:size], o.at)
	o.at += int64(n)
	return uint64(n), m.Store(addr, f.buf[:n])
}

// seek does lseek(fd, offset, whence).
func (f *files) seek(fd int, offset int64, whence int) (result uint64, ok bool) {
	o := f.open[fd]
	if o == nil {
		return 0, false
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += o.at
	default:
		return 0, false
	}
	o.at = offset
	return uint64(offset), offset >= 0
}

// openAt does openat(dir, name, flags), of regular files, to read. A lease on one
// would be broken by the process itself a moment later or before.
func (f *files) openAt(m *machine, dir int, name uint64, flags int) (result uint64, ok bool) {
	const harmless = unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK | unix.O_LARGEFILE | unix.O_NOFOLLOW
	if flags&^harmless != unix.O_RDONLY {
		return 0, false
	}
	root, path, known := f.named(m, dir, name)
	if !known {
		return 0, false
	}
	defer root.Close()
	opened, err := root.Open(path, nil)
	if err != nil {
		return 0, false
	}
	fd := 0
	for f.used[fd] {
		fd++
	}
	f.used[fd], f.open[fd] = true, &openFile{opened, 0}
	return uint64(fd), true
}

// named is where a file is that the process names: below which of its directories.
func (f *files) named(m *machine, dir int, name uint64) (root *safeopen.Root, path string, ok bool) {
	var b [256]byte
	if !m.Load(name, b[:]) {
		return nil, "", false
	}
	s, _, terminated := strings.Cut(string(b[:]), "\x00")
	var err error
	switch {
	case !terminated || s == "":
		return nil, "", false
	case strings.HasPrefix(s, "/"):
		root, err = safeopen.Of(f.pid)
	case dir == unix.AT_FDCWD:
		root, err = safeopen.Working(f.pid)
	default:
		return nil, "", false
	}
	return root, s, err == nil
}

// closeFile does close(fd).
func (f *files) closeFile(fd int) (ok bool) {
	o := f.open[fd]
	if o == nil {
		return false
	}
	o.Close()
	delete(f.open, fd)
	delete(f.used, fd)
	return true
}

// stat does fstat(fd, addr).
func (f *files) stat(m *machine, fd int, addr uint64) (ok bool) {
	var st unix.Stat_t
	if o := f.open[fd]; o != nil {
		if unix.Fstat(int(o.Fd()), &st) != nil {
			return false
		}
	} else if !f.used[fd] || unix.Stat(f.path("fd", fd), &st) != nil {
		return false
	}
	return storeStat(m, addr, &st)
}

// statAt does newfstatat(dir, name, addr, flags): of a descriptor, or of a name as
// openAt's.
func (f *files) statAt(m *machine, dir int, name, addr uint64, flags int) (ok bool) {
	var first [1]byte
	if flags == unix.AT_EMPTY_PATH && m.Load(name, first[:]) && first[0] == 0 {
		return f.stat(m, dir, addr)
	}
	if flags != 0 {
		return false
	}
	root, path, known := f.named(m, dir, name)
	if !known {
		return false
	}
	defer root.Close()
	st, err := root.Stat(path)
	return err == nil && storeStat(m, addr, &st)
}

func storeStat(m *machine, addr uint64, st *unix.Stat_t) (ok bool) {
	return m.Store(addr, unsafe.Slice((*byte)(unsafe.Pointer(st)), unsafe.Sizeof(*st)))
}
