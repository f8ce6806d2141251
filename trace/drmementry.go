package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// The records of a drmemtrace trace, trace_entry_t of DynamoRIO's
// clients/drcachesim/common/trace_entry.h: 12 bytes, little-endian, of a type,
// a size and an address.
const (
	drEntryBytes = 12

	drRead         = 0
	drWrite        = 1
	drPrefetch     = 2 // to drPrefetchLast
	drPrefetchLast = 9
	drInstr        = 10 // to drInstrLast: an instruction fetch, of any kind
	drInstrLast    = 16
	drBundle       = 17 // further instructions, whose lengths are in the address
	drFlush        = 18 // to drFlushLast
	drFlushLast    = 21
	drThread       = 22 // what follows is of the thread in the address
	drThreadExit   = 23
	drPid          = 24
	drHeader       = 25 // version in the address
	drFooter       = 26
	drHWPrefetch   = 27
	drMarker       = 28 // the kind in the size, a value in the address
	drNoFetch      = 29 // an instruction without a fetch: a later round of a REP string
	drMaybeFetch   = 30 // of online traces
	drSysenter     = 31
	drPrefetchMore = 32 // to drPrefetchMost
	drPrefetchMost = 46
	drEncoding     = 47
	drTakenJump    = 48
	drUntakenJump  = 49

	drMarkTimestamp    = 2
	drMarkFiletype     = 9
	drMarkVersion      = 12
	drMarkSyscallTrace = 27 // a system call's kernel accesses begin
	drMarkSyscallEnd   = 28
	drMarkSwitchTrace  = 34 // a context switch's
	drMarkSwitchEnd    = 35

	// Bits of the filetype marker's value.
	drFiltered        = 0x1 | 0x100 | 0x2000 // not all data accesses are there
	drInstructionOnly = 0x4                  // none are
	drBits32          = 0x10 | 0x20          // traced on a 32-bit processor
	drWholeSystem     = 0x40000              // the kernel's own accesses are not marked

	drVersionLast = 7 // the newest this was written for
)

// drStream reads the entries of one file.
type drStream struct {
	name string
	r    *bufio.Reader
	n    int // entries read
	buf  [drEntryBytes]byte

	thread int32
	pc     uint64
	next   uint64 // address after the instruction at pc
	kernel bool   // between marks of a kernel trace
	ended  bool   // a footer came last
	time   uint64 // the last timestamp

	filetype uint64
	version  uint64
	counts   drCounts
}

// drCounts is what was left out.
type drCounts struct {
	prefetches, kernel, zeroSize uint64
}

var errDrNoTrace = errors.New("not a drmemtrace trace")

func newDrStream(r io.Reader, name string) *drStream {
	return &drStream{name: name, r: bufio.NewReaderSize(r, 1<<16)}
}

// looksLikeDrmemtrace tells by a file's first entry, with entries of 64 or of
// 32 bits.
func looksLikeDrmemtrace(head []byte) bool {
	return len(head) >= drEntryBytes && binary.LittleEndian.Uint16(head) == drHeader && binary.LittleEndian.Uint16(head[2:]) == 0 &&
		head[4] > 0 && head[4] < 64 && head[5]|head[6]|head[7] == 0
}

// read reads up to the next access of the program or, with isTime, the next
// timestamp. It returns io.EOF at the end of a whole file.
func (s *drStream) read(a *model.Access) (isTime bool, err error) {
	for {
		if _, err := io.ReadFull(s.r, s.buf[:]); err != nil {
			switch {
			case err == io.EOF && s.ended:
				return false, io.EOF
			case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
				return false, fmt.Errorf("%s: after %d entries: %w (the file is truncated: a trace ends in a footer)", s.name, s.n, io.ErrUnexpectedEOF)
			}
			return false, fmt.Errorf("%s: after %d entries: %w", s.name, s.n, err)
		}
		if s.n == 0 && !looksLikeDrmemtrace(s.buf[:]) {
			return false, fmt.Errorf("%s: %w: it does not begin with a header entry", s.name, errDrNoTrace)
		}
		s.n++
		kind, size := binary.LittleEndian.Uint16(s.buf[:]), binary.LittleEndian.Uint16(s.buf[2:])
		addr := binary.LittleEndian.Uint64(s.buf[4:])
		if s.n == 1 && uint64(uint32(addr)) != addr {
			return false, fmt.Errorf("%s: a trace of a 32-bit program, whose entries have 8 bytes: only 64-bit traces are read", s.name)
		}
		s.ended = kind == drFooter
		switch {
		case kind == drRead || kind == drWrite:
			if s.kernel {
				s.counts.kernel++
				continue
			}
			if size == 0 {
				s.counts.zeroSize++
			}
			*a = model.Access{Addr: addr, PC: s.pc, Thread: s.thread, Size: uint32(size), Op: model.Load}
			if kind == drWrite {
				a.Op = model.Store
			}
			if a.Wraps() {
				return false, s.bad("an access of %d bytes at %#x, which goes past the end of the address space", size, addr)
			}
			return false, nil
		case kind >= drInstr && kind <= drInstrLast, kind == drNoFetch, kind == drMaybeFetch, kind == drSysenter, kind == drTakenJump, kind == drUntakenJump:
			s.pc, s.next = addr, addr+uint64(size)
		case kind == drBundle:
			if size > 8 {
				return false, s.bad("a bundle of %d instructions", size)
			}
			for _, length := range s.buf[4 : 4+size] {
				s.pc, s.next = s.next, s.next+uint64(length)
			}
		case kind == drThread:
			s.thread = int32(addr)
		case kind == drMarker:
			switch size {
			case drMarkTimestamp:
				s.time = max(s.time, addr) // never back: the merge could not end
				return true, nil
			case drMarkFiletype:
				s.filetype |= addr
				if addr&drBits32 != 0 {
					return false, fmt.Errorf("%s: a trace of a 32-bit program: only 64-bit traces are read", s.name)
				}
				if addr&drInstructionOnly != 0 {
					return false, fmt.Errorf("%s: the trace has instructions only, no data accesses", s.name)
				}
			case drMarkVersion:
				s.version = addr
			case drMarkSyscallTrace, drMarkSwitchTrace:
				s.kernel = true
			case drMarkSyscallEnd, drMarkSwitchEnd:
				s.kernel = false
			}
		case kind == drHeader:
			s.version = max(s.version, addr)
		case kind >= drPrefetch && kind <= drPrefetchLast, kind == drHWPrefetch, kind >= drPrefetchMore && kind <= drPrefetchMost:
			s.counts.prefetches++
		case kind >= drFlush && kind <= drFlushLast, kind == drThreadExit, kind == drPid, kind == drFooter, kind == drEncoding:
		default:
			return false, s.bad("unknown type %d", kind)
		}
	}
}

func (s *drStream) bad(format string, args ...any) error {
	return fmt.Errorf("%s: entry %d: %s (the file is damaged, or newer than version %d of the format)", s.name, s.n, fmt.Sprintf(format, args...), drVersionLast)
}
