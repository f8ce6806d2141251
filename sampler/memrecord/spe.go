package memrecord

import (
	"encoding/binary"
	"fmt"
)

// SPE reads records of Arm's Statistical Profiling Extension out of an AUX
// buffer (Arm Architecture Reference Manual, D10: packet formats). Use it as
//
//	for r := NewSPE(data); r.Next(); { use(r.Access()) }
//
// and look at Err afterwards.
type SPE struct {
	data   []byte
	at     int
	access Access
	memory bool
	err    error
}

// NewSPE returns a reader of data, which must begin with a packet.
func NewSPE(data []byte) *SPE { return &SPE{data: data} }

// Err is what ended the reading, nil at the end of the data.
func (s *SPE) Err() error { return s.err }

// Access is the record that Next found; memory is false for an operation
// without a memory access, such as a branch.
func (s *SPE) Access() (a Access, memory bool) { return s.access, s.memory }

// Next reads packets up to the end of a record and says whether there was one.
// A record that the data ends in is dropped.
func (s *SPE) Next() bool {
	s.access, s.memory = Access{}, false
	for s.err == nil && s.at < len(s.data) {
		if s.packet() {
			return true
		}
	}
	return false
}

// packet reads one packet and says whether it closes the record.
func (s *SPE) packet() bool {
	start := s.at
	head := s.data[start]
	s.at++
	const pad, end, timestamp = 0x00, 0x01, 0x71
	switch head {
	case pad:
		return false
	case end:
		return true
	}
	extended := head&0xfc == 0x20
	ext := byte(0)
	if extended {
		if s.at == len(s.data) {
			return s.bad(start, "ends inside a header")
		}
		ext, head = head&3, s.data[s.at]
		s.at++
		if head&0xf0 == 0 { // alignment
			n := 1 << (head&15 + 1)
			s.at = min((start/n+1)*n, len(s.data))
			return false
		}
	}
	n := 1 << (head >> 4 & 3)
	if len(s.data)-s.at < n {
		return s.bad(start, "ends inside a packet")
	}
	var b [8]byte
	copy(b[:], s.data[s.at:s.at+n])
	s.at += n
	v := binary.LittleEndian.Uint64(b[:])
	switch {
	case head == timestamp:
		return true
	case head&0xf8 == 0xb0:
		s.address(ext<<3|head&7, v)
	case head&0xf8 == 0x98:
		if ext == 0 && head&7 == 0 {
			s.access.Latency = int(v & 0xffff)
		}
	case extended:
		return s.bad(start, "is of an unknown kind")
	case head&0xcf == 0x42:
		s.events(v)
	case head&0xcf == 0x43: // data source, by maker; the events tell as much
	case head&0xfc == 0x48:
		// Class 1 is memory, of which the lowest bit says store.
		if s.memory = head&3 == 1; s.memory {
			s.access.Store = v&1 == 1
			s.access.Load = !s.access.Store
		}
	case head&0xfc == 0x64: // context
	default:
		return s.bad(start, "is of an unknown kind")
	}
	return false
}

func (s *SPE) bad(at int, what string) bool {
	s.err = fmt.Errorf("decode spe record: packet %#x at byte %d %s", s.data[at], at, what)
	return false
}

func (s *SPE) address(index byte, v uint64) {
	// The top byte holds the exception level, or the pointer's tag; bit 55
	// says which half of the address space it is.
	v = uint64(int64(v<<8) >> 8)
	switch index {
	case 0:
		s.access.PC = v
	case 2:
		s.access.Addr, s.access.HasAddr = v, true
	}
}

// events names the level by what was accessed and missed. A record without
// the first-level event says nothing of it.
func (s *SPE) events(v uint64) {
	bit := func(n int) bool { return v>>n&1 == 1 }
	const l1Access, l1Refill, tlbWalk, lastAccess, lastMiss, remote = 2, 3, 5, 8, 9, 10
	s.access.TLBMiss = bit(tlbWalk)
	switch {
	case bit(lastMiss) && bit(remote):
		s.access.Level = RemoteMemory
	case bit(lastMiss):
		s.access.Level = Memory
	case bit(remote):
		s.access.Level = RemoteCache
	case bit(lastAccess):
		s.access.Level = L3
	case bit(l1Refill):
		s.access.Level = L2
	case bit(l1Access):
		s.access.Level = L1
	}
}
