package ahead

import (
	"errors"

	"golang.org/x/sys/unix"
)

var (
	errShort = errors.New("short read of the target's memory")
	errPages = errors.New("page budget spent")
)

// Pages a hold may copy, at some three microseconds each: code that jumps about
// in memory is read less far ahead, not held longer. With a quarter of these most
// bursts of an interpreter such as python3 ended by them, after fifty accesses.
const samplePages = 96

// targetMemory reads a process's memory; there is no way to write.
type targetMemory struct {
	pid   int
	pages int // that may still be read
	gone  int // the pid that had no memory any more, 0: none
	buf   [maxInst]byte

	userfault userfault
	vvars     vvars
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

// ReadPage implements interp.Memory.
func (m *targetMemory) ReadPage(addr uint64, buf *[4096]byte) error {
	if m.pages == 0 {
		return errPages
	}
	m.pages--
	n, err := m.read(addr, buf[:])
	if err == nil && n < len(buf) {
		err = errShort
	}
	if err != nil && m.vvars.read(m.pid, addr, buf[:]) == nil {
		return nil
	}
	return err
}
