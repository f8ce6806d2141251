package sampler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/memrecord"
)

// Arm's Statistical Profiling Extension writes its samples into a buffer, from
// which user space reads them when an interrupt says that there are some. No
// program runs at a sample, so that nothing can hold its thread: rdx finds out
// whether the extension works, and samples by other sources. bench/hold says
// what a missing hold costs.

// auxRing is the pair of rings of such an event: records, of which those of
// kind PERF_RECORD_AUX say which part of the other ring is new.
type auxRing struct {
	page []byte // struct perf_event_mmap_page
	data []byte
	aux  []byte // both a power of two long
	buf  []byte
}

// Offsets in struct perf_event_mmap_page.
const (
	pageDataHead, pageDataTail, pageDataOffset, pageDataSize = 1024, 1032, 1040, 1048
	pageAuxHead, pageAuxTail, pageAuxOffset, pageAuxSize     = 1056, 1064, 1072, 1080
)

// Flags of a PERF_RECORD_AUX.
const (
	auxTruncated = 1 // the buffer was full
	auxPartial   = 4
	auxCollision = 8 // samples overtook each other in the processor
)

// auxStats is what was in a ring beside the accesses.
type auxStats struct {
	Records    int // of the decoder, memory accesses or not
	Memory     int
	Truncated  int // times the buffer was full
	Collisions int // times samples were dropped by the processor
	Lost       uint64
	Bad        int // parts that could not be decoded to their end
}

func (r *auxRing) word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&r.page[at])) }

// read hands all new accesses to f and gives their space back. It fails if the
// ring of records is not one.
func (r *auxRing) read(f func(memrecord.Access)) (s auxStats, err error) {
	head, tail := r.word(pageDataHead).Load(), r.word(pageDataTail).Load()
	for tail < head {
		const header = 8
		if head-tail < header {
			return s, fmt.Errorf("read aux ring: %d bytes left, less than a record's header", head-tail)
		}
		h := r.copy(r.data, tail, header)
		kind, size := binary.NativeEndian.Uint32(h), uint64(binary.NativeEndian.Uint16(h[6:]))
		if size < header || size > head-tail {
			return s, fmt.Errorf("read aux ring: record of %d bytes where %d are left", size, head-tail)
		}
		body := r.copy(r.data, tail+header, size-header)
		field := func(i int) uint64 {
			if len(body) < 8*(i+1) {
				return 0
			}
			return binary.NativeEndian.Uint64(body[8*i:])
		}
		switch kind {
		case unix.PERF_RECORD_LOST:
			s.Lost += field(1)
		case unix.PERF_RECORD_LOST_SAMPLES:
			s.Lost += field(0)
		case unix.PERF_RECORD_AUX:
			from, n, flags := field(0), field(1), field(2)
			if flags&(auxTruncated|auxPartial) != 0 {
				s.Truncated++
			}
			if flags&auxCollision != 0 {
				s.Collisions++
			}
			if n > uint64(len(r.aux)) {
				return s, fmt.Errorf("read aux ring: %d new bytes in a buffer of %d", n, len(r.aux))
			}
			s.decode(r.copy(r.aux, from, n), f)
			r.word(pageAuxTail).Store(from + n)
		}
		tail += size
		r.word(pageDataTail).Store(tail)
	}
	return s, nil
}

func (s *auxStats) decode(data []byte, f func(memrecord.Access)) {
	d := memrecord.NewSPE(data)
	for d.Next() {
		s.Records++
		if a, memory := d.Access(); memory {
			s.Memory++
			f(a)
		}
	}
	if d.Err() != nil {
		s.Bad++
	}
}

// copy returns n bytes from offset on, valid until the next call.
func (r *auxRing) copy(ring []byte, offset, n uint64) []byte {
	size := uint64(len(ring))
	at := offset % size
	r.buf = append(r.buf[:0], ring[at:min(at+n, size)]...)
	if at+n > size {
		r.buf = append(r.buf, ring[:at+n-size]...)
	}
	return r.buf
}

const (
	spePeriod   = 4096 // below 2,000 records are dropped
	speDataSize = 1 << 16
	speAuxSize  = 1 << 20
)

// speEvent is the event that samples loads and stores here, or an error.
func (m Machine) speEvent() (*unix.PerfEventAttr, error) {
	i := slices.IndexFunc(devices(m.Sys), func(d string) bool { return strings.HasPrefix(d, "arm_spe_") })
	if i < 0 {
		return nil, errors.New("no SPE: the kernel names no arm_spe_0")
	}
	p, err := ReadPMU(m.Sys, devices(m.Sys)[i])
	if err != nil {
		return nil, err
	}
	// The jitter keeps samples out of step with the program.
	e, err := p.Event("load_filter=1,store_filter=1,jitter=1")
	if err != nil {
		return nil, err
	}
	attr := samplingAttr(e)
	attr.Sample = spePeriod
	return &attr, nil
}

// openAux maps an event's two rings.
func openAux(fd, dataSize, auxSize int) (*auxRing, error) {
	const access = unix.PROT_READ | unix.PROT_WRITE
	pageSize := unix.Getpagesize()
	mem, err := unix.Mmap(fd, 0, pageSize+dataSize, access, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map ring: %w", err)
	}
	r := &auxRing{page: mem[:pageSize], data: mem[pageSize:]}
	r.word(pageAuxOffset).Store(uint64(pageSize + dataSize))
	r.word(pageAuxSize).Store(uint64(auxSize))
	if r.aux, err = unix.Mmap(fd, int64(pageSize+dataSize), auxSize, access, unix.MAP_SHARED); err != nil {
		_ = unix.Munmap(mem)
		return nil, fmt.Errorf("map aux buffer: %w", err)
	}
	return r, nil
}

func (r *auxRing) close() {
	_ = unix.Munmap(r.aux)
	_ = unix.Munmap(r.page[:len(r.page)+len(r.data)])
}

// ProbeSPE samples a loop of known accesses in a thread of rdx itself.
func ProbeSPE(m Machine) (Check, bool) {
	const name = "addresses by SPE"
	attr, err := m.speEvent()
	if err != nil {
		return Check{}, false
	}
	s, right, err := sampleSPE(attr)
	if err != nil {
		return good(name, "no: %v", err), true
	}
	return good(name, "%d records of a known loop, %d accesses, %d of them right; collisions %d, lost %d, damaged %d; not used, because no thread can be held at them",
		s.Records, s.Memory, right, s.Collisions, s.Lost, s.Bad), true
}

func sampleSPE(attr *unix.PerfEventAttr) (s auxStats, right int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, err := perfOpen(attr, 0, -1)
	if err != nil {
		return s, 0, err
	}
	ev := event{fd: fd}
	defer ev.close()
	ring, err := openAux(fd, speDataSize, speAuxSize)
	if err != nil {
		return s, 0, err
	}
	defer ring.close()
	from, to := make([]uint64, countBlock), make([]uint64, countBlock)
	if err := ev.ioctl(unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return s, 0, err
	}
	for range validationRounds {
		countedLoop(from, to, countLoops)
	}
	if err := ev.ioctl(unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		return s, 0, err
	}
	s, err = ring.read(func(a memrecord.Access) {
		if a.Load && within(a.Addr, from) || a.Store && within(a.Addr, to) {
			right++
		}
	})
	return s, right, err
}
