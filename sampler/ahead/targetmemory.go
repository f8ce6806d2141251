package ahead

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/clock"
)

var (
	errShort = errors.New("short read of the target's memory")
	errPages = errors.New("page budget spent")
)

// Pages a hold may copy, at some three microseconds each: code that jumps about
// in memory is read less far ahead, not held longer. With a quarter of these most
// bursts of an interpreter such as python3 ended by them, after fifty accesses.
const samplePages = 96

// A page may take pageTime on average, and all of a hold leastTime at least: where memory is slow, as where it is new to the
// machine or its processors are lent to others, a hold would else last ten times as long as it should.
const pageTime, leastTime = 5 * time.Microsecond, 2 * time.Millisecond

// targetMemory reads a process's memory; there is no way to write.
type targetMemory struct {
	pid   int
	pages int           // that may still be read
	most  time.Duration // that it may take
	gone  int           // the pid that had no memory any more, 0: none
	buf   [maxInst]byte

	// Of a batch:
	local  []unix.Iovec
	remote []unix.RemoteIovec
	// stack is to be filled by the next batch, too, from stackAt on; stackRead of it were.
	stack     []byte
	stackAt   uint64
	stackRead int

	spent     time.Duration // for pages one by one, so far
	calls     int           // of that
	userfault userfault
	vvars     vvars
}

// begin is for so many pages of a process.
func (m *targetMemory) begin(pid, pages int) {
	m.pid, m.pages, m.spent, m.calls = pid, pages, 0, 0
	m.most = max(time.Duration(pages)*pageTime, leastTime)
}

// read reads as much of len(b) bytes as is mapped, but nothing if part of them must not
// be read.
func (m *targetMemory) read(addr uint64, b []byte) (int, error) {
	if m.allows(addr, len(b)) < len(b) {
		return 0, errUserfault
	}
	return m.copy(addr, b)
}

// readFirst reads as much of len(b) bytes, from the first on, as is mapped and may be
// read.
func (m *targetMemory) readFirst(addr uint64, b []byte) (int, error) {
	if b = b[:m.allows(addr, len(b))]; len(b) == 0 {
		return 0, errUserfault
	}
	return m.copy(addr, b)
}

// allows says how many of the n bytes at addr may be read.
func (m *targetMemory) allows(addr uint64, n int) int {
	allowed := m.userfault.allows(m.pid, addr, n)
	if allowed < n && m.userfault.empty {
		m.gone = m.pid
	}
	return allowed
}

func (m *targetMemory) copy(addr uint64, b []byte) (int, error) {
	n, err := unix.ProcessVMReadv(m.pid,
		[]unix.Iovec{{Base: &b[0], Len: uint64(len(b))}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
	if err == unix.ESRCH {
		m.gone = m.pid
	}
	return n, err
}

// due says whether a page may be read.
func (m *targetMemory) due() bool { return m.pages > 0 && m.spent <= m.most }

// ReadPage implements interp.Memory.
func (m *targetMemory) ReadPage(addr uint64, buf *[4096]byte) error {
	if !m.due() {
		return errPages
	}
	m.pages--
	start := clock.Monotonic()
	defer func() {
		m.spent += clock.Monotonic() - start
		m.calls++
	}()
	n, err := m.read(addr, buf[:])
	if err == nil && n < len(buf) {
		err = errShort
	}
	if err != nil && m.vvars.read(m.pid, addr, buf[:]) == nil {
		return nil
	}
	return err
}

// ReadStepped implements interp.SteppedMemory: of pages here and there each takes half of what one takes by a call of its own, and
// counts as so many. The thread may not come to them: only what is in memory is read.
func (m *targetMemory) ReadStepped(addrs []uint64, bufs []*[4096]byte) int {
	if !m.due() {
		return 0
	}
	start := clock.Monotonic()
	addrs = addrs[:min(len(addrs), 2*m.pages)]
	n := m.userfault.presentOf(m.pid, addrs)
	if n > 0 {
		n = m.ReadPages(addrs[:n], bufs)
	}
	m.pages -= (n + 1) / 2
	m.spent += clock.Monotonic() - start
	m.calls++
	return n
}

// ReadPages implements interp.BatchMemory: all in one call, and the stack as well if that was asked for. They do not count among the
// pages that may be read: each takes a tenth of what one takes by a call of its own. Of a process with a
// userfaultfd it reads none, for it would have to ask of each whether it is there.
func (m *targetMemory) ReadPages(addrs []uint64, bufs []*[4096]byte) int {
	m.userfault.of(m.pid)
	if m.userfault.scan.userfault() {
		return 0
	}
	m.local, m.remote = m.local[:0], m.remote[:0]
	for i, addr := range addrs {
		m.local = append(m.local, unix.Iovec{Base: &bufs[i][0], Len: pageSize})
		if last := len(m.remote) - 1; last >= 0 && uint64(m.remote[last].Base)+uint64(m.remote[last].Len) == addr {
			m.remote[last].Len += pageSize // looked up at once
			continue
		}
		m.remote = append(m.remote, unix.RemoteIovec{Base: uintptr(addr), Len: pageSize})
	}
	if len(m.stack) > 0 {
		m.local = append(m.local, unix.Iovec{Base: &m.stack[0], Len: uint64(len(m.stack))})
		m.remote = append(m.remote, unix.RemoteIovec{Base: uintptr(m.stackAt), Len: len(m.stack)})
	}
	n, err := unix.ProcessVMReadv(m.pid, m.local, m.remote, 0)
	if err == unix.ESRCH {
		m.gone = m.pid
	}
	n = max(n, 0)
	pages := min(n/pageSize, len(addrs))
	if rest := n - pages*pageSize; pages == len(addrs) && rest > 0 {
		m.stackRead, m.stack = rest, nil
	}
	return pages
}
