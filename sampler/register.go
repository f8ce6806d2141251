package sampler

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// MaxCPUSlots is how many slots can be watched by registers of CPUs.
const MaxCPUSlots = 2

// ErrSpent says of a register that it has taken all its traps, and that this kernel
// does not let it be used again.
var ErrSpent = errors.New("the register is spent on this kernel")

// Register is a debug register of one CPU, which watches a word in all threads that
// run there, of whatever process, or is parked: then nothing traps.
//
// From Linux 6.2 on one takes a grace period of RCU to have and to give back, 8 to
// 450 ms, for the kernel keeps account of them under a percpu_rw_semaphore
// (kernel/events/hw_breakpoint.c). To move one that is held takes microseconds, on
// another CPU an interrupt. So registers are kept, and move from datum to
// datum. What they watch for, writes or any access, can't change without
// another grace period.
type Register struct {
	cpu    int
	fd     int
	attr   unix.PerfEventAttr
	left   *uint64 // of cpu_traps: as many as the event has
	moved  bool    // at least once
	revive bool
}

// cpuTraps is the programs' table of what is left to the registers.
type cpuTraps struct {
	mem []byte
	of  []uint64 // by NumSlots * CPU + slot
}

func (c *cpuTraps) open(m *ebpf.Map) error {
	var err error
	// The kernel rounds the values of an array up to 8 bytes, which these have.
	c.mem, err = unix.Mmap(m.FD(), 0, int(m.MaxEntries())*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map table of CPUs: %w", err)
	}
	c.of = unsafe.Slice((*uint64)(unsafe.Pointer(&c.mem[0])), m.MaxEntries())
	return nil
}

func (c *cpuTraps) close() error {
	if c.mem == nil {
		return nil
	}
	return unix.Munmap(c.mem)
}

// parkedAt is where a register watches that has not been moved yet, disabled.
const parkedAt = 1 << 12

// OpenRegister takes a debug register of a CPU for a slot below MaxCPUSlots, to watch for
// writes or for any access, and parks it. ErrNoSlot says that a thread of the machine, or the
// CPU, has none free. It may take half a second.
func (k *Kernel) OpenRegister(cpu, slot int, writes bool) (*Register, error) {
	program, err := k.obj.program(cpuProgram(slot))
	if err != nil {
		return nil, err
	}
	i := NumSlots*cpu + slot
	if i >= len(k.cpuTraps.of) {
		return nil, fmt.Errorf("watch CPU %d: more CPUs than the kernel said there may be", cpu)
	}
	r := &Register{cpu: cpu, left: &k.cpuTraps.of[i], revive: k.revives, attr: unix.PerfEventAttr{
		Type:    unix.PERF_TYPE_BREAKPOINT,
		Size:    uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bp_type: breakpointRW,
		Ext1:    parkedAt,
		Ext2:    WordSize,
		Sample:  1,
		Bits:    unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}}
	if writes {
		r.attr.Bp_type = breakpointW
	}
	r.fd, err = unix.PerfEventOpen(&r.attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.ENOSPC) {
		return nil, fmt.Errorf("watch CPU %d: %w", cpu, ErrNoSlot)
	} else if err != nil {
		return nil, fmt.Errorf("watch CPU %d: %w", cpu, explainRefused(err))
	}
	if err := r.ioctl(unix.PERF_EVENT_IOC_SET_BPF, uintptr(program.FD())); err != nil {
		return nil, errors.Join(fmt.Errorf("watch CPU %d: attach program: %w", cpu, err), r.Close())
	}
	atomic.StoreUint64(r.left, 0)
	return r, nil
}

func (r *Register) ioctl(request uint, arg uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(r.fd), uintptr(request), arg); errno != 0 {
		return errno
	}
	return nil
}

// Move has the register, which must be parked, watch the word at addr for that many traps at least, and
// for as many more as were left to it.
//
// The event's limit can be raised alone: what is left of the last one counts towards the
// new one, so that limits don't add up. An event that has come to it is revived by
// PERF_EVENT_IOC_PERIOD, which starts it where enabling does not (from Linux 6.16 on, see
// Watchpoints.Rearms).
func (r *Register) Move(addr uint64, traps int) error {
	fail := func(what string, err error) error {
		return fmt.Errorf("move watchpoint of CPU %d to %#x: %s: %w", r.cpu, addr, what, err)
	}
	r.attr.Ext1 = addr
	if err := r.ioctl(unix.PERF_EVENT_IOC_MODIFY_ATTRIBUTES, uintptr(unsafe.Pointer(&r.attr))); err != nil {
		return fail("modify", err)
	}
	left := atomic.LoadUint64(r.left)
	if left == 0 && r.moved && !r.revive {
		return fail("enable", ErrSpent)
	}
	request, arg := uint(unix.PERF_EVENT_IOC_ENABLE), uintptr(0)
	if more := traps - int(left); more > 0 {
		request, arg = unix.PERF_EVENT_IOC_REFRESH, uintptr(more)
		atomic.StoreUint64(r.left, uint64(traps))
	}
	if err := r.ioctl(request, arg); err != nil {
		return fail("enable", err)
	}
	if left == 0 && r.moved {
		if err := startAgain(r.fd); err != nil {
			return fail("start", err)
		}
	}
	r.moved = true
	return nil
}

// startAgain starts an enabled event that has stopped at its limit.
func startAgain(fd int) error {
	period := uint64(1)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(unix.PERF_EVENT_IOC_PERIOD), uintptr(unsafe.Pointer(&period)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Park ends the watch. When it returns no trap comes any more.
func (r *Register) Park() error {
	if err := r.ioctl(unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		return fmt.Errorf("park watchpoint of CPU %d: %w", r.cpu, err)
	}
	return nil
}

// Close gives the register back. It may take half a second.
func (r *Register) Close() error {
	if err := unix.Close(r.fd); err != nil {
		return fmt.Errorf("give watchpoint of CPU %d back: %w", r.cpu, err)
	}
	return nil
}
