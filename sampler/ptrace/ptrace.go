package ptrace

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/proc"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// Seize attaches without stopping. A tracer that dies leaves its
// tracees running: PTRACE_O_EXITKILL is never set.
func Seize(tid, options int) error {
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, uintptr(options), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func ptraceListen(tid int) error {
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_LISTEN, uintptr(tid), 0, 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// SentByKernel says of a thread stopped by a signal whether the kernel sent
// it, as it does for BPF programs, and not a process.
func SentByKernel(tid int) bool {
	const siKernel = 0x80
	return signalCode(tid) == siKernel
}

// RestartableArea is the address of a stopped thread's struct rseq, 0 if it has
// registered none, or on a kernel before 5.13, which does not tell.
func RestartableArea(tid int) uint64 {
	const getConfiguration = 0x420f // PTRACE_GET_RSEQ_CONFIGURATION
	var c struct {
		area              uint64
		size, sign, flags uint32
		_                 uint32
	}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, getConfiguration, uintptr(tid), unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)), 0, 0)
	if e != 0 {
		return 0
	}
	return c.area
}

// signalCode is what stopped a thread: si_code in sigaction(2), 0 if it can't be
// read.
func signalCode(tid int) int32 {
	const siCode = 2
	var info [32]int32 // siginfo_t
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETSIGINFO, uintptr(tid), 0, uintptr(unsafe.Pointer(&info)), 0, 0)
	if e != 0 {
		return 0
	}
	return info[siCode]
}

// ignores says whether the signal does nothing in the thread's process: by its
// choice, or because it has made none.
func ignores(tid int, signal unix.Signal) bool {
	in := func(field string) bool {
		hex, err := proc.Status(tid, field)
		mask, parseErr := strconv.ParseUint(hex, 16, 64)
		return err == nil && parseErr == nil && mask>>(signal-1)&1 != 0
	}
	switch signal {
	case unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH:
		return !in("SigCgt")
	default:
		return in("SigIgn")
	}
}

// detach sets a stopped thread free, with the signal if it is not 0.
func detach(tid int, signal unix.Signal) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(signal), 0, 0); e != 0 {
		return e
	}
	return nil
}

func processOf(tid int) (int, error) {
	s, err := proc.Status(tid, "Tgid")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(s)
}

// FindTarget returns the process that id, its number or that of one of its
// threads, means, and an error if rdx can't profile it.
func FindTarget(id int) (pid int, err error) {
	pid, err = processOf(id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return 0, fmt.Errorf("attach to process %d: no such process", id)
	} else if err != nil {
		return 0, fmt.Errorf("attach to process %d: %w", id, err)
	}
	// Without a program file it is no process of users; seizing will say so.
	exe, err := safeopen.NewPatience(time.Second).Open(0, func() (*os.File, error) {
		return safeopen.Link(fmt.Sprintf("/proc/%d/exe", Living(pid)))
	})
	if err != nil {
		return pid, nil
	}
	defer exe.Close()
	var ident [elf.EI_NIDENT]byte
	if _, err := exe.ReadAt(ident[:], 0); err == nil && elf.Class(ident[elf.EI_CLASS]) == elf.ELFCLASS32 {
		return 0, fmt.Errorf("attach to process %d: it is a 32-bit program, and rdx knows 64-bit code only", id)
	}
	return pid, nil
}

// Living is a thread of the process by whose number its memory and files are reached: pid itself, or if the first thread
// has exited and others go on, one of these, for /proc/PID and process_vm_readv(2) are the first thread's, which has given them up.
func Living(pid int) (tid int) {
	if hasMemory(pid) {
		return pid
	}
	tids, err := threadsOf(pid)
	if i := slices.IndexFunc(tids, hasMemory); err == nil && i >= 0 {
		return tids[i]
	}
	return pid
}

// hasMemory says whether a thread has memory: one that exits loses it some time before it is a zombie.
func hasMemory(tid int) bool {
	_, err := proc.Status(tid, "VmSize")
	return err == nil
}

// mayTrace says whether this process has CAP_SYS_PTRACE.
func mayTrace() bool {
	text, err := proc.Status(os.Getpid(), "CapEff")
	caps, e := strconv.ParseUint(text, 16, 64)
	return err == nil && e == nil && caps>>unix.CAP_SYS_PTRACE&1 != 0
}

// explainSeize says why a thread can't be traced, and what to do.
func explainSeize(tid int, err error) error {
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	state, gone := proc.Status(tid, "State")
	if gone != nil || strings.HasPrefix(state, "X") { // a zombie, which can't be traced, and its parent has taken note meanwhile
		return unix.ESRCH
	}
	if strings.HasPrefix(state, "Z") {
		return errors.New("it has ended already and is a zombie until its parent takes note")
	}
	if tracer, e := proc.Status(tid, "TracerPid"); e == nil && tracer != "0" {
		// Known by the thread that traces.
		if n, e := strconv.Atoi(tracer); e == nil {
			if pid, e := processOf(n); e == nil {
				tracer = strconv.Itoa(pid)
			}
		}
		return fmt.Errorf("it is already traced by process %s (end that debugger or tracer first)", tracer)
	}
	if _, e := proc.Status(tid, "VmSize"); e != nil {
		return errors.New("it is a kernel thread, which has no memory accesses of its own to sample")
	}
	if mayTrace() {
		return fmt.Errorf("%w (rdx has CAP_SYS_PTRACE, and the kernel refuses all the same: it protects this process, as it may process 1, those of another user namespace, and by ptrace_scope 3 of /proc/sys/kernel/yama or a security module others)", err)
	}
	return fmt.Errorf("%w (run as root, or with CAP_SYS_PTRACE; see also /proc/sys/kernel/yama/ptrace_scope)", err)
}

// wakeSignal interrupts the tracing thread's wait4.
const wakeSignal = unix.SIGUSR2

// waker interrupts wait4 in one thread. Go installs its handlers with
// SA_RESTART, with which wait4 would sleep on; the waker takes that flag off
// the wake signal's handler and leaves the handler itself in place. That does nothing, for nobody
// has asked to be notified: no goroutine is woken.
type waker struct {
	tid          int
	ticks, alarm timer // of every and once
}

func newWaker(tid int) (*waker, error) {
	const saRestart, saNoStops = 0x10000000, 1 // SA_RESTART, SA_NOCLDSTOP
	err := changeAction(wakeSignal, func(a *sigaction) error {
		// Go's runtime has one from the start, but it is not bound to.
		const none = 1 // SIG_DFL, SIG_IGN
		if a.handler <= none {
			return errors.New("it has no handler")
		}
		a.flags &^= saRestart
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("prepare wake-up signal: %w", err)
	}
	// At each stop of a thread the kernel would send one, too, whose handler runs while the thread waits: some 25 µs.
	if err := changeAction(unix.SIGCHLD, func(a *sigaction) error { a.flags |= saNoStops; return nil }); err != nil {
		return nil, fmt.Errorf("turn off SIGCHLD at stops: %w", err)
	}
	return &waker{tid: tid}, nil
}

// sigaction is the kernel's struct of that name.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// changeAction changes what this process does at a signal.
func changeAction(signal unix.Signal, change func(*sigaction) error) error {
	var act sigaction
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), 0, uintptr(unsafe.Pointer(&act)), 8, 0, 0); e != 0 {
		return e
	}
	if err := change(&act); err != nil {
		return err
	}
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0); e != 0 {
		return e
	}
	return nil
}

func (w *waker) wake() { _ = unix.Tgkill(os.Getpid(), w.tid, wakeSignal) }

// every has the kernel wake the thread each d, without any of Go's own having to run for it: see timer_create(2).
func (w *waker) every(d time.Duration) error { return w.set(&w.ticks, d, d) }

// once has it woken after d. What it was to be woken for so before is forgotten.
func (w *waker) once(d time.Duration) error { return w.set(&w.alarm, d, 0) }

// timer of the kernel; made is whether there is one.
type timer struct {
	id   uintptr
	made bool
}

func (w *waker) set(t *timer, first, each time.Duration) error {
	if !t.made {
		const sigevThreadID = 4
		event := struct { // struct sigevent
			value         uint64
			signo, notify int32
			tid           int32
			_             [11]int32
		}{signo: int32(wakeSignal), notify: sigevThreadID, tid: int32(w.tid)}
		var id int32
		if _, _, e := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&id))); e != 0 {
			return os.NewSyscallError("timer_create", e)
		}
		*t = timer{uintptr(id), true}
	}
	period := [2]unix.Timespec{unix.NsecToTimespec(each.Nanoseconds()), unix.NsecToTimespec(first.Nanoseconds())} // struct itimerspec
	if _, _, e := unix.Syscall6(unix.SYS_TIMER_SETTIME, t.id, 0, uintptr(unsafe.Pointer(&period)), 0, 0, 0); e != 0 {
		return os.NewSyscallError("timer_settime", e)
	}
	return nil
}

// close ends what every and once began.
func (w *waker) close() {
	for _, t := range []timer{w.ticks, w.alarm} {
		if t.made {
			_, _, _ = unix.Syscall(unix.SYS_TIMER_DELETE, t.id, 0, 0)
		}
	}
}
