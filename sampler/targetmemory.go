package sampler

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
	buf   [maxInst]byte

	userfault userfault
}

// read reads as much of len(b) bytes as is mapped, but nothing if part of them must not
// be read.
func (m *targetMemory) read(addr uint64, b []byte) (int, error) {
	if m.userfault.allows(m.pid, addr, len(b)) < len(b) {
		return 0, errUserfault
	}
	return m.copy(addr, b)
}

// readFirst reads as much of len(b) bytes, from the first on, as is mapped and may be
// read.
func (m *targetMemory) readFirst(addr uint64, b []byte) (int, error) {
	if b = b[:m.userfault.allows(m.pid, addr, len(b))]; len(b) == 0 {
		return 0, errUserfault
	}
	return m.copy(addr, b)
}

func (m *targetMemory) copy(addr uint64, b []byte) (int, error) {
	return unix.ProcessVMReadv(m.pid,
		[]unix.Iovec{{Base: &b[0], Len: uint64(len(b))}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
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
	return err
}
