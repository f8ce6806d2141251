package sampler

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/bpf"
)

// A Stamp is where a thread was at a moment after it was let go: its registers
// before the next instruction, its Clock in nanoseconds of its CPU time since, and
// what had come in between by then (Traps, Spent, Ticks and Holds are those of
// Thread).
type Stamp struct{ bpf.RDXStamp }

// Stamps are the events that stamp one thread.
type Stamps struct {
	k      *Kernel
	index  uint32
	events []*event
}

// Stamps has the held thread tid, of that index, stamped when it has run for so
// long after it is let go, once each; where it is in the kernel then, as much
// later again. What a stamp costs the thread StampCost measures. The clock must be CPU time.
func (k *Kernel) Stamps(index uint32, tid int, after []time.Duration) (*Stamps, error) {
	program, err := k.obj.program(stampProgram)
	if err != nil {
		return nil, err
	}
	s := &Stamps{k: k, index: index}
	k.stamps[index] = nil
	for _, d := range after {
		attr := samplingAttr(Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK})
		attr.Sample = uint64(d)
		fd, err := perfOpen(&attr, tid, -1)
		if err == nil {
			ev := &event{fd: fd}
			s.events = append(s.events, ev)
			err = ev.once(program.FD())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("stamp thread %d: %w", tid, err), s.Close())
		}
	}
	return s, nil
}

// once attaches the program and lets the event tick once.
func (e *event) once(program int) error {
	if err := e.ioctl(unix.PERF_EVENT_IOC_SET_BPF, uintptr(program)); err != nil {
		return fmt.Errorf("attach program: %w", err)
	}
	return e.ioctl(unix.PERF_EVENT_IOC_REFRESH, 1)
}

// Read returns the stamps that have come, in order. They are read with the traps.
func (s *Stamps) Read() []Stamp { return s.k.stamps[s.index] }

// All says whether all have come.
func (s *Stamps) All() bool { return len(s.Read()) >= len(s.events) }

// Close ends the stamping.
func (s *Stamps) Close() error {
	delete(s.k.stamps, s.index)
	var errs []error
	for _, ev := range s.events {
		errs = append(errs, ev.close())
	}
	return errors.Join(errs...)
}

// keepStamp keeps the stamp in a record, if it was asked for.
func (k *Kernel) keepStamp(raw []byte) error {
	if len(raw) < int(unsafe.Sizeof(bpf.RDXStamp{})) {
		return fmt.Errorf("read ring: stamp of %d bytes, want %d", len(raw), unsafe.Sizeof(bpf.RDXStamp{}))
	}
	stamp := Stamp{*(*bpf.RDXStamp)(unsafe.Pointer(&raw[0]))}
	if kept, ok := k.stamps[stamp.Index]; ok {
		k.stamps[stamp.Index] = append(kept, stamp)
	}
	return nil
}
