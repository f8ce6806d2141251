package sampler

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/elastic/go-perf"
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

// Watchpoint is one armed debug register of one thread.
//
// Every arming opens a fresh event: kernels from 6.16 on never fire a
// breakpoint event again once its limit was reached (kernel 6.11 to 6.14
// ignore the limit unless the program returns 1, as on_trap does).
type Watchpoint struct {
	event *perf.Event
	fd    int
}

// Arm watches the aligned word at addr for the next traps accesses of thread
// tid, which must be held, and hands each to the slot's program. The event
// disables itself after the last.
func (k *Kernel) Arm(tid, slot int, addr uint64, traps int) (*Watchpoint, error) {
	return arm(k.obj.programs[trapProgram(slot)], tid, addr, WordSize, breakpointRW, traps)
}

// ArmLine is Arm for the whole cache line that addr is in, where
// Watchpoints.WholeLine.
func (k *Kernel) ArmLine(tid, slot int, addr uint64, traps int) (*Watchpoint, error) {
	return arm(k.obj.programs[trapProgram(slot)], tid, addr&^(LineSize-1), LineSize, breakpointRW, traps)
}

// ArmStep stops thread tid, which must be held, when it has come to the
// instruction at ip next, by the signal that holds it. Thread.HoldIp then is ip; it
// must be 0 before.
func (k *Kernel) ArmStep(tid int, ip uint64) (*Watchpoint, error) {
	program, err := k.obj.program(stepProgram)
	if err != nil {
		return nil, err
	}
	return arm(program, tid, ip, WordSize, breakpointX, 1)
}

// ArmStamp has thread tid, which must be held, trap once before the instruction at
// ip, as if that accessed what the slot watches: as its use, if it waits for one.
func (k *Kernel) ArmStamp(tid, slot int, ip uint64) (*Watchpoint, error) {
	return arm(k.obj.programs[trapProgram(slot)], tid, ip, WordSize, breakpointX, 1)
}

// arm opens a watchpoint on thread tid.
func arm(program *ebpf.Program, tid int, addr uint64, length int, kind uint32, traps int) (*Watchpoint, error) {
	if kind != breakpointX && addr%uint64(length) != 0 {
		return nil, fmt.Errorf("arm watchpoint: address %#x is not aligned to %d", addr, length)
	}
	ev, err := openEvent(tid, addr, length, kind)
	if errors.Is(err, unix.ENOSPC) {
		return nil, fmt.Errorf("arm watchpoint: %w", ErrNoSlot)
	} else if err != nil {
		return nil, fmt.Errorf("arm watchpoint at %#x in thread %d: %w", addr, tid, err)
	}
	w := &Watchpoint{event: ev}
	if w.fd, err = ev.FD(); err == nil {
		if err = ev.SetBPF(uint32(program.FD())); err == nil {
			err = ev.Refresh(traps)
		}
	}
	if err != nil {
		ev.Close()
		return nil, fmt.Errorf("arm watchpoint at %#x in thread %d: %w", addr, tid, err)
	}
	return w, nil
}

// openBreakpoint opens the event of a watchpoint of length bytes, disabled.
func openBreakpoint(tid int, addr uint64, length int) (*perf.Event, error) {
	return openEvent(tid, addr, length, breakpointRW)
}

func openEvent(tid int, addr uint64, length int, kind uint32) (*perf.Event, error) {
	if err := ptrace.SurviveStrayTraps(); err != nil {
		return nil, err
	}
	return perf.Open(&perf.Attr{
		Label:          "rdx watchpoint", // spares a look-up
		Type:           perf.BreakpointEvent,
		BreakpointType: kind,
		Config1:        addr,
		Config2:        uint64(length),
		Sample:         1,
		CountFormat:    perf.CountFormat{Enabled: true},
		Options: perf.Options{
			Disabled:          true,
			ExcludeKernel:     true,
			ExcludeHypervisor: true,
		},
	}, tid, perf.AnyCPU, nil)
}

// Age is the thread's CPU time since the arming, in nanoseconds.
func (w *Watchpoint) Age() (uint64, error) {
	c, err := w.event.ReadCount()
	if err != nil {
		return 0, fmt.Errorf("read watchpoint clock: %w", err)
	}
	return uint64(c.Enabled), nil
}

// Close frees the debug register.
func (w *Watchpoint) Close() error { return w.event.Close() }
