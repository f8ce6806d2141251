// Needs ptrace, amd64 and Linux.

//go:build linux && amd64

package interp

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is a traced process of this test's own. All its methods must be called
// from the goroutine that started it, which is locked to its OS thread.
type child struct {
	t      testing.TB
	pid    int
	mem    *os.File
	layout XSAVELayout
	xbuf   []byte
	exited bool
}

// start runs a program under ptrace and leaves it at its first instruction.
func start(t testing.TB, env []string, argv ...string) *child {
	t.Helper()
	runtime.LockOSThread()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir:   t.TempDir(),
		Env:   append([]string{"PATH=/usr/bin:/bin", "LC_ALL=C", "PYTHONHASHSEED=0"}, env...),
		Files: []*os.File{null, null, null},
		Sys:   &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		t.Skipf("needs ptrace and %s: %v", argv[0], err)
	}
	c := &child{t: t, pid: p.Pid, layout: ReadXSAVELayout()}
	c.xbuf = make([]byte, c.layout.Total)
	t.Cleanup(c.kill)
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(c.pid, &ws, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.PtraceSetOptions(c.pid, unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatal(err)
	}
	if c.mem, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.pid), os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *child) kill() {
	if c.mem != nil {
		c.mem.Close()
	}
	if !c.exited {
		syscall.Kill(c.pid, syscall.SIGKILL)
		var ws syscall.WaitStatus
		syscall.Wait4(c.pid, &ws, syscall.WALL, nil)
	}
	runtime.UnlockOSThread()
}

func (c *child) regset(req int, b []byte) {
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	const ntX86XState = 0x202
	if _, _, e := syscall.Syscall6(syscall.SYS_PTRACE, uintptr(req), uintptr(c.pid), ntX86XState,
		uintptr(unsafe.Pointer(&iov)), 0, 0); e != 0 {
		c.t.Fatalf("ptrace regset %#x: %v", req, e)
	}
}

func (c *child) vector(v *Vector) {
	c.regset(unix.PTRACE_GETREGSET, c.xbuf)
	if err := c.layout.Decode(v, c.xbuf); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) setVector(v *Vector) {
	c.regset(unix.PTRACE_GETREGSET, c.xbuf)
	b, le := c.xbuf, binary.LittleEndian
	le.PutUint64(b[512:], le.Uint64(b[512:])|c.layout.parts())
	le.PutUint16(b, v.FCW)
	le.PutUint16(b[2:], v.X87.FSW)
	b[4] = v.X87.Valid
	for i := range uint8(8) {
		r := v.X87.R[v.X87.at(i)]
		le.PutUint64(b[32+16*int(i):], r.M)
		le.PutUint64(b[40+16*int(i):], uint64(r.SE))
	}
	le.PutUint32(b[24:], v.MXCSR)
	put := func(at, first, w, n int) {
		if at == 0 {
			return // the CPU has no such registers
		}
		for i := range 16 {
			for j := range n {
				le.PutUint64(b[at+8*(i*n+j):], v.Z[first+i][w+j])
			}
		}
	}
	put(160, 0, 0, 2)
	put(c.layout.YMM, 0, 2, 2)
	put(c.layout.ZMM, 0, 4, 4)
	put(c.layout.Hi16, 16, 0, 8)
	for i := 0; c.layout.Mask != 0 && i < 8; i++ {
		le.PutUint64(b[c.layout.Mask+8*i:], v.K[i])
	}
	c.regset(unix.PTRACE_SETREGSET, b)
}

// clearMissing zeroes the registers and parts of registers that this CPU does not have, as Decode does.
func (l XSAVELayout) clearMissing(v *Vector) {
	for i := range v.Z {
		switch {
		case i >= 16 && l.Hi16 == 0:
			v.Z[i] = Vec{}
		case i < 16 && l.YMM == 0:
			clear(v.Z[i][2:])
		case i < 16 && l.ZMM == 0:
			clear(v.Z[i][4:])
		}
	}
	if l.Mask == 0 {
		v.K = [8]uint64{}
	}
}

// parts is XSTATE_BV with everything in the layout present.
func (l XSAVELayout) parts() uint64 {
	p := uint64(3)
	for part, at := range map[uint]int{2: l.YMM, 5: l.Mask, 6: l.ZMM, 7: l.Hi16} {
		if at != 0 {
			p |= 1 << part
		}
	}
	return p
}

func (c *child) raw() (r syscall.PtraceRegs) {
	if err := syscall.PtraceGetRegs(c.pid, &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// regs reads the general registers; the vector registers are left alone.
func (c *child) regs(r *Regs) {
	p := c.raw()
	r.GPR = [16]uint64{p.Rax, p.Rcx, p.Rdx, p.Rbx, p.Rsp, p.Rbp, p.Rsi, p.Rdi,
		p.R8, p.R9, p.R10, p.R11, p.R12, p.R13, p.R14, p.R15}
	r.RIP, r.Flags, r.FSBase, r.GSBase = p.Rip, p.Eflags, p.Fs_base, p.Gs_base
}

func (c *child) setRegs(r *Regs) {
	p := c.raw()
	for i, d := range []*uint64{&p.Rax, &p.Rcx, &p.Rdx, &p.Rbx, &p.Rsp, &p.Rbp, &p.Rsi, &p.Rdi,
		&p.R8, &p.R9, &p.R10, &p.R11, &p.R12, &p.R13, &p.R14, &p.R15} {
		*d = r.GPR[i]
	}
	p.Rip, p.Eflags, p.Fs_base, p.Gs_base = r.RIP, r.Flags, r.FSBase, r.GSBase
	p.Orig_rax = ^uint64(0)
	if err := syscall.PtraceSetRegs(c.pid, &p); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) ReadPage(addr uint64, buf *[4096]byte) error {
	_, err := c.mem.ReadAt(buf[:], int64(addr))
	return err
}

func (c *child) read(addr uint64, b []byte) {
	if _, err := c.mem.ReadAt(b, int64(addr)); err != nil {
		c.t.Fatalf("read %#x: %v", addr, err)
	}
}

func (c *child) write(addr uint64, b []byte) {
	if _, err := c.mem.WriteAt(b, int64(addr)); err != nil {
		c.t.Fatalf("write %#x: %v", addr, err)
	}
}

// step runs one instruction. The signal is that which stopped it if not the
// step's own; it has not been delivered. ok is false once the child is gone.
func (c *child) step(deliver syscall.Signal) (sig syscall.Signal, ok bool) {
	if _, _, e := syscall.Syscall6(syscall.SYS_PTRACE, syscall.PTRACE_SINGLESTEP, uintptr(c.pid), 0, uintptr(deliver), 0, 0); e != 0 {
		c.t.Fatalf("ptrace step: %v", e)
	}
	return c.wait()
}

func (c *child) wait() (sig syscall.Signal, ok bool) {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(c.pid, &ws, syscall.WALL, nil); err != nil {
		c.t.Fatal(err)
	}
	if ws.Exited() || ws.Signaled() {
		c.exited = true
		return 0, false
	}
	if s := ws.StopSignal(); s != syscall.SIGTRAP {
		return s, true
	}
	return 0, true
}

// call makes the stopped child execute one system call and restores it.
func (c *child) call(nr uint64, args ...uint64) uint64 {
	var old, r Regs
	c.regs(&old)
	r = old
	var code [2]byte
	c.read(old.RIP, code[:])
	c.write(old.RIP, []byte{0x0f, 0x05})
	r.GPR[RAX] = nr
	for i, a := range args {
		r.GPR[[...]int{RDI, RSI, RDX, 10, 8, 9}[i]] = a
	}
	c.setRegs(&r)
	c.step(0)
	c.regs(&r)
	c.write(old.RIP, code[:])
	c.setRegs(&old)
	return r.GPR[RAX]
}
