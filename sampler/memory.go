package sampler

import (
	"errors"

	"golang.org/x/sys/unix"
)

var errShort = errors.New("short read of the target's memory")

// targetMemory reads a process's memory; there is no way to write.
type targetMemory struct {
	pid int
	buf [maxInst]byte
}

func (m *targetMemory) read(addr uint64, b []byte) (int, error) {
	return unix.ProcessVMReadv(m.pid,
		[]unix.Iovec{{Base: &b[0], Len: uint64(len(b))}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
}

// code reads as much of the instruction at ip as is mapped.
func (m *targetMemory) code(ip uint64) ([]byte, error) {
	n, err := m.read(ip, m.buf[:])
	if n > 0 {
		return m.buf[:n], nil
	}
	// The page after it may be missing.
	if room := 4096 - ip%4096; room < maxInst {
		n, err = m.read(ip, m.buf[:room])
	}
	if n > 0 {
		return m.buf[:n], nil
	}
	return nil, err
}
