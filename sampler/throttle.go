package sampler

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel stops an event that interrupts more often than
// perf_event_max_sample_rate allows, until the next timer tick. It counts nothing
// meanwhile: what it has counted does not tell. The kernel says so in the
// event's ring, which sampling events have for this alone: the samples go to a
// program instead.

// eventRing is the ring of one event.
type eventRing struct {
	page []byte // struct perf_event_mmap_page
	data []byte // a power of two long
	buf  []byte
}

const (
	pageDataHead = unsafe.Offsetof(unix.PerfEventMmapPage{}.Data_head)
	pageDataTail = unsafe.Offsetof(unix.PerfEventMmapPage{}.Data_tail)
)

// openRing maps the event's ring, of dataSize bytes.
func openRing(fd, dataSize int) (eventRing, error) {
	pageSize := unix.Getpagesize()
	mem, err := unix.Mmap(fd, 0, pageSize+dataSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return eventRing{}, fmt.Errorf("map ring: %w", err)
	}
	return eventRing{page: mem[:pageSize], data: mem[pageSize:]}, nil
}

func (r *eventRing) close() {
	if r.page != nil {
		_ = unix.Munmap(r.page[:len(r.page)+len(r.data)])
	}
}

func (r *eventRing) word(at uintptr) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.page[at]))
}

// read hands the records since the last call to f and gives their space back:
// their kinds, and what comes after the header, valid during the call. It fails
// if the ring is not one of records.
func (r *eventRing) read(f func(kind uint32, body []byte) error) error {
	head, tail := r.word(pageDataHead).Load(), r.word(pageDataTail).Load()
	for tail < head {
		const header = 8
		if head-tail < header {
			return fmt.Errorf("read ring: %d bytes left, less than a record's header", head-tail)
		}
		h := r.copy(r.data, tail, header)
		kind, size := binary.NativeEndian.Uint32(h), uint64(binary.NativeEndian.Uint16(h[6:]))
		if size < header || size > head-tail {
			return fmt.Errorf("read ring: record of %d bytes where %d are left", size, head-tail)
		}
		if err := f(kind, r.copy(r.data, tail+header, size-header)); err != nil {
			return err
		}
		tail += size
		r.word(pageDataTail).Store(tail)
	}
	return nil
}

// copy returns n bytes of a ring from offset on, valid until the next call.
func (r *eventRing) copy(ring []byte, offset, n uint64) []byte {
	size := uint64(len(ring))
	at := offset % size
	r.buf = append(r.buf[:0], ring[at:min(at+n, size)]...)
	if at+n > size {
		r.buf = append(r.buf, ring[:at+n-size]...)
	}
	return r.buf
}

// field is a record's i-th word, 0 if it has none.
func field(body []byte, i int) uint64 {
	if len(body) < 8*(i+1) {
		return 0
	}
	return binary.NativeEndian.Uint64(body[8*i:])
}

// throttling adds up how long an event was stopped.
type throttling struct {
	ring    eventRing
	used    *atomic.Int64 // rings, this one included
	since   uint64        // when it was stopped, 0 if it is not
	stopped uint64        // ns
	times   uint64
	lost    uint64 // records that found no room
}

// maxRings bounds the memory that they take, two pages each: of further events
// it can't be told.
const maxRings = 512

// openThrottling maps the event's ring. It is nil where maxRings are in use, or the
// kernel refuses (perf_event_mlock_kb).
func openThrottling(fd int, used *atomic.Int64) *throttling {
	if used == nil || used.Load() >= maxRings {
		return nil
	}
	ring, err := openRing(fd, unix.Getpagesize())
	if err != nil {
		return nil
	}
	used.Add(1)
	return &throttling{ring: ring, used: used}
}

func (t *throttling) close() {
	if t != nil {
		t.ring.close()
		t.used.Add(-1)
	}
}

// longestStop is a timer tick of the slowest kernels, HZ=100. A thread that
// leaves the CPU stopped is started when it comes back, however much later.
const longestStop = 10_000_000

// read takes the records since the last call into account.
func (t *throttling) read() error {
	return t.ring.read(func(kind uint32, body []byte) error {
		switch kind {
		case unix.PERF_RECORD_THROTTLE:
			t.since = field(body, 0)
			t.times++
		case unix.PERF_RECORD_UNTHROTTLE:
			if at := field(body, 0); t.since > 0 && at > t.since {
				t.stopped += min(at-t.since, longestStop)
			}
			t.since = 0
		case unix.PERF_RECORD_LOST:
			t.lost += field(body, 1)
		}
		return nil
	})
}

// sum is how often the event was stopped, and for how many nanoseconds. Records
// that were lost are pairs as long as the others.
func (t *throttling) sum() (times, ns uint64) {
	times, ns = t.times+t.lost/2, t.stopped
	if t.times > 0 {
		ns += uint64(math.Round(float64(t.stopped) / float64(t.times) * float64(t.lost/2)))
	}
	return times, ns
}
