package ahead

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/clock"
)

// errUserfault: the page is not there yet, and a thread of the target may have
// to provide it.
var errUserfault = errors.New("page to be provided by the target itself (userfaultfd)")

// userfault tells which reads of a process's memory must not be made while a
// thread of it is held: a page that userfaultfd provides makes the reader wait
// for the thread that provides it, which may itself be waiting to be let go by
// the reader. Pages that are there already, and all pages of processes that
// have no userfaultfd, are read at no risk.
type userfault struct {
	pid     int
	pagemap *os.File // of the address space at the time it was opened
	empty   bool     // the page looked for last was in no pagemap: there is no address space, or it is outside of it
	scan    *fdScan  // of pid
	scans   map[int]*fdScan
	entries [wholeRow * 8]byte
}

// allows says how many of the n bytes at addr, from the first on, may be read.
func (u *userfault) allows(pid int, addr uint64, n int) int {
	u.of(pid)
	if !u.scan.userfault() {
		return n
	}
	for page := addr / pageSize; page <= (addr+uint64(n)-1)/pageSize; page++ {
		if !u.present(page) {
			return int(max(page*pageSize, addr) - addr)
		}
	}
	return n
}

// of turns to another process.
func (u *userfault) of(pid int) {
	if u.scan != nil && u.pid == pid {
		return
	}
	u.close()
	u.pid, u.scan = pid, u.scans[pid]
	if u.scan == nil {
		u.scan = newFDScan(pid)
		if u.scans == nil {
			u.scans = make(map[int]*fdScan)
		}
		u.scans[pid] = u.scan
	}
}

// forget is for a process that has ended.
func (u *userfault) forget(pid int) {
	delete(u.scans, pid)
	if u.pid == pid {
		u.close()
		u.scan = nil
	}
}

func (u *userfault) close() {
	if u.pagemap != nil {
		u.pagemap.Close()
		u.pagemap = nil
	}
}

const (
	pageSize       = 4096
	pagemapPresent = 1 << 63
	pagemapSwapped = 1 << 62
	pagemapThere   = pagemapPresent | pagemapSwapped
)

// wholeRow is how many pages' entries are read at once, of which not all are asked for.
const wholeRow = 1024

// presentOf says how many of the pages, from the first on, the process has in memory as it stands: to read these waits for no disk,
// makes no page, and has no stack grow.
func (u *userfault) presentOf(pid int, addrs []uint64) int {
	u.of(pid)
	least, most := slices.Min(addrs)/pageSize, slices.Max(addrs)/pageSize
	if most-least >= wholeRow {
		for i, addr := range addrs {
			if u.entry(addr/pageSize)&pagemapPresent == 0 {
				return i
			}
		}
		return len(addrs)
	}
	if u.pagemap == nil && u.entry(addrs[0]/pageSize) == 0 { // it opens it
		return 0
	}
	entries := u.entries[:(most-least+1)*8]
	if n, _ := u.pagemap.ReadAt(entries, int64(least*8)); n < len(entries) { // of a program that it runs no more
		u.close()
		return 0
	}
	for i, addr := range addrs {
		if binary.NativeEndian.Uint64(entries[(addr/pageSize-least)*8:])&pagemapPresent == 0 {
			return i
		}
	}
	return len(addrs)
}

// present says whether the page is there, in memory or swapped out.
func (u *userfault) present(page uint64) bool { return u.entry(page)&pagemapThere != 0 }

// entry is the page's in /proc/PID/pagemap, see proc(5), 0 where it has none. A process that
// has executed another program has another pagemap; the old one is empty.
func (u *userfault) entry(page uint64) uint64 {
	u.empty = true
	for range 2 {
		if u.pagemap == nil {
			var err error
			if u.pagemap, err = os.Open(fmt.Sprintf("/proc/%d/pagemap", u.pid)); err != nil {
				u.pagemap = nil
				return 0
			}
		}
		var entry [8]byte
		if n, _ := u.pagemap.ReadAt(entry[:], int64(page*8)); n == len(entry) {
			u.empty = false
			return binary.NativeEndian.Uint64(entry[:])
		}
		u.close()
	}
	return 0
}

// fdScan looks now and then whether a process has a userfaultfd: never while a thread of it is held, for it may have very
// many files. Of few the tracing thread looks when it has let the thread go, else a goroutine does: to wake one
// takes several times as long as to look at a few files.
type fdScan struct {
	pid     int
	used    atomic.Bool
	running atomic.Bool
	next    atomic.Int64  // Monotonic
	few     atomic.Bool   // files, the last time
	due     time.Duration // Monotonic: since when tend has been left to look; 0: it need not
	known   chan struct{} // closed when it is
	tell    sync.Once
}

const (
	fdScanInterval = 100 * time.Millisecond
	fewFiles       = 32
)

func newFDScan(pid int) *fdScan {
	s := &fdScan{pid: pid, known: make(chan struct{})}
	s.used.Store(true) // as long as it is not known
	return s
}

func (s *fdScan) userfault() bool {
	if now := clock.Monotonic(); int64(now) >= s.next.Load() {
		switch {
		case s.few.Load() && s.due == 0:
			s.due = now
		case s.few.Load() && now-s.due < fdScanInterval: // the thread is not let go yet
		case s.running.CompareAndSwap(false, true):
			s.due = 0
			go s.run()
		}
	}
	return s.used.Load()
}

// tend looks, if that is due, at few files. It is for the thread that asks userfault, when nobody is held.
func (s *fdScan) tend() {
	if s.due == 0 || !s.running.CompareAndSwap(false, true) {
		return
	}
	s.due = 0
	if !s.lookAt(fewFiles) {
		go s.run()
		return
	}
	s.running.Store(false)
}

func (s *fdScan) run() {
	defer s.running.Store(false)
	s.lookAt(math.MaxInt)
}

// lookAt looks, unless there are more files than most.
func (s *fdScan) lookAt(most int) (all bool) {
	start := clock.Monotonic()
	used, files := s.look(most)
	if s.few.Store(files <= fewFiles); files > most {
		return false
	}
	s.used.Store(used)
	end := clock.Monotonic()
	// A hundredth of one CPU at most.
	s.next.Store(int64(end + max(fdScanInterval, 100*(end-start))))
	s.tell.Do(func() { close(s.known) })
	return true
}

// look says whether one of the files is a userfaultfd, or none can be looked at, and how many it has looked at: one more
// than most if there are more.
func (s *fdScan) look(most int) (used bool, files int) {
	dir, err := unix.Open(fmt.Sprintf("/proc/%d/fd", s.pid), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.EACCES || err == unix.EPERM {
		// Another user's, and no CAP_DAC_READ_SEARCH: its mappings tell as well, but take longer.
		if most < math.MaxInt {
			return false, most + 1
		}
		return usesUserfault(s.pid), most
	}
	if err != nil {
		return true, 0 // exits
	}
	defer unix.Close(dir)
	var entries [4096]byte
	var to [256]byte // enough for that name
	var names []string
	for {
		n, err := unix.ReadDirent(dir, entries[:])
		if err != nil {
			return true, files
		}
		if n <= 0 {
			return false, files
		}
		_, _, names = unix.ParseDirent(entries[:n], -1, names[:0])
		for _, name := range names {
			if files++; files > most {
				return false, files
			}
			if n, err := unix.Readlinkat(dir, name, to[:]); err == nil && bytes.Contains(to[:n], []byte("userfaultfd")) {
				return true, files
			}
		}
	}
}

// usesUserfault says whether pages of a process are provided by userfaultfd, by the flags of its mappings
// (proc_pid_smaps(5)), or whether that can't be told.
func usesUserfault(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return true
	}
	defer f.Close()
	return userfaultIn(f)
}

func userfaultIn(smaps io.Reader) bool {
	in := bufio.NewReaderSize(smaps, 64<<10)
	seen := false
	for {
		line, err := in.ReadSlice('\n')
		if flags, ok := bytes.CutPrefix(line, []byte("VmFlags:")); ok {
			seen = true
			for _, f := range bytes.Fields(flags) {
				if s := string(f); s == "um" || s == "uw" || s == "ui" {
					return true
				}
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return !seen // a kernel that doesn't tell
		}
	}
}
