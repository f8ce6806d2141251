package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
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
	eventRing
	aux []byte // a power of two long
}

const (
	pageAuxHead   = unsafe.Offsetof(unix.PerfEventMmapPage{}.Aux_head)
	pageAuxTail   = unsafe.Offsetof(unix.PerfEventMmapPage{}.Aux_tail)
	pageAuxOffset = unsafe.Offsetof(unix.PerfEventMmapPage{}.Aux_offset)
	pageAuxSize   = unsafe.Offsetof(unix.PerfEventMmapPage{}.Aux_size)
)

// Flags of a PERF_RECORD_AUX.
const (
	auxTruncated = unix.PERF_AUX_FLAG_TRUNCATED // the buffer was full
	auxPartial   = unix.PERF_AUX_FLAG_PARTIAL
	auxCollision = unix.PERF_AUX_FLAG_COLLISION // samples overtook each other in the processor
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

// read hands all new accesses to f and gives their space back. It fails if the
// ring of records is not one.
func (r *auxRing) read(f func(memrecord.Access)) (s auxStats, err error) {
	err = r.eventRing.read(func(kind uint32, body []byte) error {
		switch kind {
		case unix.PERF_RECORD_LOST:
			s.Lost += field(body, 1)
		case unix.PERF_RECORD_LOST_SAMPLES:
			s.Lost += field(body, 0)
		case unix.PERF_RECORD_AUX:
			from, n, flags := field(body, 0), field(body, 1), field(body, 2)
			if flags&(auxTruncated|auxPartial) != 0 {
				s.Truncated++
			}
			if flags&auxCollision != 0 {
				s.Collisions++
			}
			if n > uint64(len(r.aux)) {
				return fmt.Errorf("read ring: %d new bytes in a buffer of %d", n, len(r.aux))
			}
			s.decode(r.copy(r.aux, from, n), f)
			r.word(pageAuxTail).Store(from + n)
		}
		return nil
	})
	return s, err
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
	ring, err := openRing(fd, dataSize)
	if err != nil {
		return nil, err
	}
	r := &auxRing{eventRing: ring}
	at := len(r.page) + dataSize
	r.word(pageAuxOffset).Store(uint64(at))
	r.word(pageAuxSize).Store(uint64(auxSize))
	if r.aux, err = unix.Mmap(fd, int64(at), auxSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		ring.close()
		return nil, fmt.Errorf("map aux buffer: %w", err)
	}
	return r, nil
}

func (r *auxRing) close() {
	_ = unix.Munmap(r.aux)
	r.eventRing.close()
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
