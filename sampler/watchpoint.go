package sampler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// ErrNoSlot says that all debug registers of the thread are taken, by rdx or
// by someone else such as a debugger.
var ErrNoSlot = errors.New("no free debug register")

// WordSize is what a debug register watches: an aligned word; some of AMD's also
// a LineSize.
const (
	WordSize     = 8
	LineSize     = 64
	breakpointX  = 4 // HW_BREAKPOINT_X
	breakpointW  = 2 // HW_BREAKPOINT_W
	breakpointRW = 3 // HW_BREAKPOINT_RW; x86 refuses to watch reads alone
)

// Watchpoint is one debug register of one thread, armed or parked.
//
// To open an event and attach its program takes some ten times as long as to move one that is there. One that has come
// to its limit needs more than enabling to trap again, see Watchpoints.Rearms and Revives; and kernels 6.11 to 6.14 ignore
// the limit unless the program returns 1, as on_trap does.
type Watchpoint struct {
	fd     int
	attr   unix.PerfEventAttr
	asked  uint64  // traps that it was armed for altogether
	rearms bool    // Watchpoints.Rearms
	before uint64  // ns that it was armed for before it was moved last
	copies *uint32 // Slot.Copied, which its count has, but not its limit; nil before CountCopies
	copied uint32  // of these, how many there were before
}

// Arm watches the aligned word at addr for the next traps accesses of thread
// tid, which must be held, and hands each to the slot's program. The event
// disables itself after the last.
func (k *Kernel) Arm(tid, slot int, addr uint64, traps int) (*Watchpoint, error) {
	return k.armData(tid, slot, addr, WordSize, traps)
}

func (k *Kernel) armData(tid, slot int, addr uint64, length, traps int) (*Watchpoint, error) {
	w, err := arm(k.obj.programs[trapProgram(slot)], tid, addr, length, breakpointRW, traps, k.copies)
	if err == nil {
		w.rearms = k.rearms
	}
	return w, err
}

// CountCopies tells the watchpoint of a thread's slot where the kernel's own accesses are counted: one that has seen any is not
// moved, for how many traps are left to it is not known.
func (w *Watchpoint) CountCopies(slot *Slot) {
	w.copies, w.copied = &slot.Copied, atomic.LoadUint32(&slot.Copied)
}

// Copied is how often the kernel's own accesses have trapped since CountCopies.
func (w *Watchpoint) Copied() uint32 {
	if w.copies == nil {
		return 0
	}
	return atomic.LoadUint32(w.copies) - w.copied
}

// ArmLine is Arm for the whole cache line that addr is in, where
// Watchpoints.WholeLine.
func (k *Kernel) ArmLine(tid, slot int, addr uint64, traps int) (*Watchpoint, error) {
	return k.armData(tid, slot, addr&^(LineSize-1), LineSize, traps)
}

// ArmStep stops thread tid, which must be held, when it has come to the
// instruction at ip next, by the signal that holds it. Thread.HoldIp then is ip; it
// must be 0 before.
func (k *Kernel) ArmStep(tid int, ip uint64) (*Watchpoint, error) {
	program, err := k.obj.program(stepProgram)
	if err != nil {
		return nil, err
	}
	return arm(program, tid, ip, WordSize, breakpointX, 1, false)
}

// ArmStamp has thread tid, which must be held, trap once before the instruction at
// ip, as if that accessed what the slot watches: as its use, if it waits for one.
func (k *Kernel) ArmStamp(tid, slot int, ip uint64) (*Watchpoint, error) {
	return arm(k.obj.programs[trapProgram(slot)], tid, ip, WordSize, breakpointX, 1, false)
}

// arm opens a watchpoint on thread tid. With copies the kernel's own accesses for it trap, too.
func arm(program *ebpf.Program, tid int, addr uint64, length int, kind uint32, traps int, copies bool) (*Watchpoint, error) {
	if kind != breakpointX && addr%uint64(length) != 0 {
		return nil, fmt.Errorf("arm watchpoint: address %#x is not aligned to %d", addr, length)
	}
	w, err := openBreakpoint(tid, addr, length, kind, copies)
	if errors.Is(err, unix.ENOSPC) {
		return nil, fmt.Errorf("arm watchpoint: %w", ErrNoSlot)
	} else if err != nil {
		return nil, fmt.Errorf("arm watchpoint at %#x in thread %d: %w", addr, tid, err)
	}
	if err = w.ioctl(unix.PERF_EVENT_IOC_SET_BPF, uintptr(program.FD())); err == nil {
		err = w.refresh(traps)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("arm watchpoint at %#x in thread %d: %w", addr, tid, err)
	}
	return w, nil
}

// openBreakpoint opens the event of a watchpoint of length bytes, disabled.
func openBreakpoint(tid int, addr uint64, length int, kind uint32, copies bool) (*Watchpoint, error) {
	if err := ptrace.SurviveStrayTraps(); err != nil {
		return nil, err
	}
	w := &Watchpoint{attr: unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_BREAKPOINT,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bp_type:     kind,
		Ext1:        addr,
		Ext2:        uint64(length),
		Sample:      1,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED,
		Bits:        unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}}
	if copies {
		w.attr.Bits &^= unix.PerfBitExcludeKernel
	}
	var err error
	w.fd, err = unix.PerfEventOpen(&w.attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, explainRefused(os.NewSyscallError("perf_event_open", err))
	}
	return w, nil
}

func (w *Watchpoint) ioctl(request uint, arg uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), uintptr(request), arg); errno != 0 {
		return errno
	}
	return nil
}

// refresh lets so many more traps come.
func (w *Watchpoint) refresh(traps int) error {
	if err := w.ioctl(unix.PERF_EVENT_IOC_REFRESH, uintptr(traps)); err != nil {
		return err
	}
	w.asked += uint64(traps)
	return nil
}

// read gives how often it has trapped, and for how long of the thread's CPU time it was armed, in nanoseconds.
func (w *Watchpoint) read() (traps, armed uint64, err error) {
	var buf [16]byte
	n, err := unix.Read(w.fd, buf[:])
	if err == nil && n < len(buf) {
		err = ErrNotRunning
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read watchpoint clock: %w", err)
	}
	return binary.NativeEndian.Uint64(buf[:]), binary.NativeEndian.Uint64(buf[8:]), nil
}

// Age is the thread's CPU time since it was armed, or moved last, in nanoseconds.
func (w *Watchpoint) Age() (uint64, error) {
	_, armed, err := w.read()
	return armed - w.before, err
}

// AgeAt is Age when a trap's record gave that clock of CPU time, which goes on when it is moved.
func (w *Watchpoint) AgeAt(clock uint64) uint64 { return clock - w.before }

// Park ends the watch, but keeps the debug register for the next. When it returns no trap comes any more.
func (w *Watchpoint) Park() error {
	if err := w.ioctl(unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		return fmt.Errorf("park watchpoint: %w", err)
	}
	return nil
}

// ErrNotMoved says that a parked watchpoint can't be used again for as many traps as asked: close it, and arm another.
var ErrNotMoved = errors.New("watchpoint has taken all its traps, or more are left than asked for")

// Move has a parked watchpoint, whose thread must be held, watch at addr for the next traps accesses, as many bytes as
// before, aligned. Only where Watchpoints.Moves.
//
// An event's limit can only be raised: what is left of the last one counts. One that has come to it is stopped on kernels
// from 6.16 on, and of a thread that does not run nothing starts it: neither enabling it nor a new period.
func (w *Watchpoint) Move(addr uint64, traps int) error {
	done, armed, err := w.read()
	if err != nil {
		return err
	}
	left := int64(w.asked - done)
	if left < 0 || left > int64(traps) || left == 0 && w.spent() || w.Copied() > 0 {
		return ErrNotMoved
	}
	w.attr.Ext1 = addr &^ (w.attr.Ext2 - 1)
	if err := w.ioctl(unix.PERF_EVENT_IOC_MODIFY_ATTRIBUTES, uintptr(unsafe.Pointer(&w.attr))); err != nil {
		return fmt.Errorf("move watchpoint to %#x: %w", addr, err)
	}
	if more := traps - int(left); more > 0 {
		err = w.refresh(more)
	} else {
		err = w.ioctl(unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		return fmt.Errorf("move watchpoint to %#x: %w", addr, err)
	}
	w.before = armed
	return nil
}

// spent says of one without traps left whether it can't be used again.
func (w *Watchpoint) spent() bool { return w.asked > 0 && !w.rearms }

// Renew gives a watchpoint of thread tid's slot that can be moved instead of one that is parked: that one itself, if it can be.
// The thread may run.
func (k *Kernel) Renew(w *Watchpoint, tid, slot int) (*Watchpoint, error) {
	if done, _, err := w.read(); err == nil && (done < w.asked || !w.spent()) && w.Copied() == 0 {
		return w, nil
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	fresh, err := openBreakpoint(tid, parkedAt, int(w.attr.Ext2), w.attr.Bp_type, k.copies)
	if err != nil {
		return nil, fmt.Errorf("renew watchpoint in thread %d: %w", tid, err)
	}
	fresh.rearms = w.rearms
	if err := fresh.ioctl(unix.PERF_EVENT_IOC_SET_BPF, uintptr(k.obj.programs[trapProgram(slot)].FD())); err != nil {
		fresh.Close()
		return nil, fmt.Errorf("renew watchpoint in thread %d: attach program: %w", tid, err)
	}
	return fresh, nil
}

// Close frees the debug register.
func (w *Watchpoint) Close() error {
	if err := unix.Close(w.fd); err != nil {
		return fmt.Errorf("close watchpoint: %w", err)
	}
	return nil
}
