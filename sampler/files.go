package sampler

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// files lets a replay pass two kinds of system calls, so that it comes further in
// programs that read and write all the time: reads of regular files, whose content
// and position were taken with the checkpoint, and writes, which are taken to
// write all. Nothing is written, and nothing of the process changes: its files
// are opened once more. Where the kernel did anything else, the replay does not come
// to where the thread was, and is not used.
type files struct {
	pid     int
	regular []int // descriptors, as planned
	open    map[int]*openFile
	buf     []byte
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
	f.pid, f.regular = pid, f.regular[:0]
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return fmt.Errorf("plan checkpoint: %w", err)
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(f.path("fd", fd), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			f.regular = append(f.regular, fd)
		}
		if len(f.regular) == mostFiles {
			break
		}
	}
	return nil
}

func (f *files) path(dir string, fd int) string { return fmt.Sprintf("/proc/%d/%s/%d", f.pid, dir, fd) }

// take opens them and notes where they stand.
func (f *files) take() {
	f.close()
	f.open = make(map[int]*openFile)
	for _, fd := range f.regular {
		info, err := os.ReadFile(f.path("fdinfo", fd))
		if err != nil {
			continue // closed meanwhile
		}
		if strings.Contains(string(info), "LEASE") {
			continue // to open it would send the process a signal
		}
		first, _, _ := strings.Cut(string(info), "\n")
		at, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(first, "pos:")), 10, 64)
		if err != nil {
			continue
		}
		if opened, err := os.OpenFile(f.path("fd", fd), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOATIME, 0); err == nil {
			f.open[fd] = &openFile{opened, at}
		}
	}
}

func (f *files) close() {
	for _, o := range f.open {
		o.Close()
	}
	f.open = nil
}

// call does the system call that the machine stands at, and says whether it could.
func (f *files) call(m *machine) bool {
	number, args := m.Called()
	fd, addr, size := int(int32(args[0])), args[1], args[2]
	switch number {
	case unix.SYS_WRITE:
		m.Return(size)
		return true
	case unix.SYS_READ:
		o := f.open[fd]
		if o == nil || size > mostRead {
			return false
		}
		if uint64(len(f.buf)) < size {
			f.buf = make([]byte, mostRead)
		}
		n, _ := o.ReadAt(f.buf[:size], o.at)
		if !m.Store(addr, f.buf[:n]) {
			return false
		}
		o.at += int64(n)
		m.Return(uint64(n))
		return true
	}
	return false
}
