package sampler

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// opener is perf_event_open for a thread of its own, on any CPU; a test's
// checks the attribute. group is the leader's descriptor, or -1.
type opener func(attr *unix.PerfEventAttr, tid, group int) (fd int, err error)

func perfOpen(attr *unix.PerfEventAttr, tid, group int) (int, error) {
	fd, err := unix.PerfEventOpen(attr, tid, -1, group, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, explainPerf(os.NewSyscallError("perf_event_open", err))
	}
	return fd, nil
}

// event is one perf event that samples one thread.
type event struct {
	fd int
	// Periods are a multiple of align and at least min.
	align, min uint64
	period     uint64
	// throttled is nil where it can't be told.
	throttled *throttling
}

// counted is what an event has counted so far, for how many nanoseconds the
// thread ran since the event was opened, and for how many of them it had a
// counter.
type counted struct{ value, enabled, running uint64 }

// samplingAttr is the attribute common to all sampling events. User mode only:
// a sample must never find the thread in a system call, which the hold would
// interrupt.
func samplingAttr(e Event) unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type:        e.Type,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config:      e.Config,
		Ext1:        e.Config1,
		Ext2:        e.Config2,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		Bits:        unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
}

func (e *event) ioctl(request uint, arg uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(e.fd), uintptr(request), arg); errno != 0 {
		return errno
	}
	return nil
}

// start attaches the program and lets the event count.
func (e *event) start(program int) error {
	if err := e.ioctl(unix.PERF_EVENT_IOC_SET_BPF, uintptr(program)); err != nil {
		return fmt.Errorf("attach program: %w", err)
	}
	return e.ioctl(unix.PERF_EVENT_IOC_ENABLE, 0)
}

// setPeriod begins a new period.
func (e *event) setPeriod(n uint64) error {
	e.period = e.round(n)
	n = e.period
	return e.ioctl(unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(&n)))
}

func (e *event) round(n uint64) uint64 {
	n = max(n, e.min, 1)
	if e.align > 1 {
		n = max(n/e.align, 1) * e.align
	}
	return n
}

// readCounts reads a perf event of samplingAttr's format. It fails with
// ErrNotRunning if the event is in error, as one that was pinned and lost its
// counter: the kernel then reads an end of file, which go-perf's ReadCount takes
// for a count of zero.
func readCounts(fd int) (c counted, err error) {
	var buf [24]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return c, os.NewSyscallError("read", err)
	}
	if n < len(buf) {
		return c, ErrNotRunning
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(buf[8*i:]) }
	return counted{word(0), word(1), word(2)}, nil
}

func (e *event) read() (counted, error) {
	c, err := readCounts(e.fd)
	if err != nil {
		return c, fmt.Errorf("read sampling event: %w", err)
	}
	return c, nil
}

func (e *event) close() error {
	e.throttled.close()
	if err := unix.Close(e.fd); err != nil {
		return fmt.Errorf("close sampling event: %w", err)
	}
	return nil
}
