package interp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// stubs is the memory of a Machine in which its native instructions lie, one
// after another. It is never writable and executable at once; the Machine that
// owns it is the only one to run there.
type stubs struct {
	code  []byte
	used  int
	epoch uint32 // counts how often code was filled anew
	known map[[16]byte]uintptr
	frame *nativeFrame
	err   error // why nothing runs natively
}

const stubsSize = 16 * pageSize

// newStubs maps the memory: a page with the frame, which stays writable, and code.
func newStubs() *stubs {
	s := &stubs{known: map[[16]byte]uintptr{}}
	if s.err = catchIllegal(); s.err != nil {
		s.frame = new(nativeFrame)
		return s
	}
	b, err := unix.Mmap(-1, 0, pageSize+stubsSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		s.err, s.frame = os.NewSyscallError("mmap", err), new(nativeFrame)
		return s
	}
	s.frame, s.code = (*nativeFrame)(unsafe.Pointer(&b[0])), b[pageSize:]
	if err := unix.Mprotect(s.code, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		s.err = fmt.Errorf("make memory executable: %w", os.NewSyscallError("mprotect", err))
	}
	runtime.AddCleanup(s, func(b []byte) { unix.Munmap(b) }, b)
	return s
}

// add puts an instruction into the memory, unless it lies there.
func (s *stubs) add(n *native) error {
	if at, ok := s.known[n.code]; ok {
		n.at, n.epoch = at, s.epoch
		return nil
	}
	if s.used == len(s.code) {
		clear(s.known)
		s.used = 0
		s.epoch++
	}
	page := s.code[s.used&^pageMask:][:pageSize]
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return os.NewSyscallError("mprotect", err)
	}
	copy(s.code[s.used:], n.code[:])
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return os.NewSyscallError("mprotect", err)
	}
	n.at, n.epoch = uintptr(unsafe.Pointer(&s.code[s.used])), s.epoch
	s.known[n.code] = n.at
	s.used += len(n.code)
	return nil
}

// frame is where the operands of a native instruction are put.
func (m *Machine) frame() *nativeFrame {
	if m.stubs == nil {
		m.stubs = newStubs()
	}
	if m.stubs.err != nil {
		panic(Halt{Cause: Unsupported, Err: m.stubs.err})
	}
	return m.stubs.frame
}

// nativeOK says whether instructions can be run natively.
func (m *Machine) nativeOK() bool {
	if m.stubs == nil {
		m.stubs = newStubs()
	}
	return m.stubs.err == nil
}

func (f *nativeFrame) address() uint64 { return uint64(uintptr(unsafe.Pointer(&f.mem))) }

// runNative runs one instruction on the registers of the frame and returns the
// exceptions that it has raised.
func (m *Machine) runNative(n *native, f *nativeFrame) (raised uint32) {
	const masked, modes, flags, underflowMask, flushToZero = 0x1f80, 0xe040, 0x3f, 1 << 11, 1 << 15
	if n.at == 0 || n.epoch != m.stubs.epoch {
		if m.stubs.err = m.stubs.add(n); m.stubs.err != nil {
			panic(Halt{Cause: Unsupported, Err: m.stubs.err})
		}
	}
	f.mxcsr = m.vec.MXCSR&modes | masked
	switch {
	case m.vec.MXCSR&underflowMask != 0:
	case n.sae:
		f.mxcsr &^= underflowMask // it is not raised, but whether it is masked makes a difference
	case n.reduces:
		f.mxcsr &^= flushToZero // which is done only where underflow is masked
	default:
		f.mxcsr |= flushToZero // then a tiny result raises underflow even if it is exact, as it does where that is not masked
	}
	f.code, f.ill = n.at, 0
	switch {
	case n.unit == unitSSE:
		callSSE(f)
	case n.unit == unitAVX && cpu.X86.HasAVX:
		callAVX(f)
	case n.unit == unitAVX512 && cpu.X86.HasAVX512BW:
		callAVX512(f)
	case n.unit == unitX87:
		callX87(f)
	default:
		f.ill = 1
	}
	if f.ill != 0 {
		panic(Halt{Cause: Fault, Err: errIllegal})
	}
	return f.mxcsr & flags
}

//go:noescape
func callSSE(f *nativeFrame)

//go:noescape
func callAVX(f *nativeFrame)

//go:noescape
func callAVX512(f *nativeFrame)

//go:noescape
func callX87(f *nativeFrame)

// onIllegal handles SIGILL: a native instruction that the processor does not have
// is left by way of skipIllegal, anything else is the Go runtime's.
//
//lint:ignore U1000 the assembly uses it
func onIllegal()

//lint:ignore U1000 the assembly uses it
func skipIllegal()

// illegalHandler is onIllegal's address.
func illegalHandler() uintptr

// nextIllegal is the handler that onIllegal stands in front of.
//
//lint:ignore U1000 the assembly uses it
var nextIllegal uintptr

// catchIllegal puts onIllegal in front of the Go runtime's handler.
var catchIllegal = sync.OnceValue(func() error {
	var act struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	const maskSize = 8
	at := uintptr(unsafe.Pointer(&act))
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGILL), 0, at, maskSize, 0, 0); e != 0 {
		return os.NewSyscallError("rt_sigaction", e)
	}
	if act.handler <= 1 { // default and ignored
		return errors.New("run instructions natively: SIGILL is not handled")
	}
	nextIllegal, act.handler = act.handler, illegalHandler()
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGILL), at, 0, maskSize, 0, 0); e != 0 {
		return os.NewSyscallError("rt_sigaction", e)
	}
	return nil
})
