//go:build linux && amd64

// Needs: ptrace of a child, hardware watchpoints in it (debug registers through PTRACE_POKEUSER); with objdump it also takes instructions of real programs.

package operand

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
)

const (
	liveCode = 0x1f00_0000 // one page of code, with room behind it for what falls through
	liveData = 0x2000_0000 // below 4 GiB, so that 32-bit addressing reaches it
	liveSize = 1 << 20
	// offsetof(struct user, u_debugreg), asm/user_64.h
	userDebugReg = 848
	ntX86XState  = 0x202
)

// TestX86OnCPU runs instructions one by one in a child process and lets the CPU
// judge the prediction, through four one-byte watchpoints: the first and the last
// byte of a predicted access must fire, the byte next to it must not, and a
// write-only watchpoint on the first byte must fire exactly for stores. The
// registers that changed must be among those predicted, and the instruction
// pointer must be where length, target and condition say.
func TestX86OnCPU(t *testing.T) {
	needs.Watchpoints(t)
	const seed = 24
	t.Logf("seed %d", seed)
	keepOneIn := 16
	if os.Getenv("RDX_LONG") != "" {
		keepOneIn = 1
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var codes [][]byte
	x86Forms(func(code []byte) {
		if rng.IntN(keepOneIn) == 0 {
			codes = append(codes, code)
		}
	})
	patterns := x86BinaryPatterns()
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Logf("SKIPPED: the instructions of real programs: %v", err)
		patterns = nil
	}
	for _, pattern := range patterns {
		for _, path := range glob(pattern) {
			seen := map[string]bool{}
			for _, window := range windows(t, path) {
				objdump(t, func(l disasmLine) {
					if !seen[string(l.code)] {
						seen[string(l.code)] = true
						if rng.IntN(keepOneIn) == 0 {
							codes = append(codes, l.code)
						}
					}
				}, "objdump", append(window, "-d", "-w", "-M", "intel", "--insn-width=15", path)...)
			}
		}
	}
	// Which of several segment prefixes counts: mov eax,[rbx].
	for _, prefixes := range []string{"643e", "3e64", "6564", "6465", "6526"} {
		codes = append(codes, unhex(t, prefixes+"8b03"))
	}
	// The package comment's claims: rcx is a multiple of 64 here, so the shift's
	// count is zero, and rax is not what the memory holds.
	for _, code := range []string{"d323", "48d32b", "0fb10b", "f00fb10b", "0fae3b", "660fae3b", "660fae33"} { // shl, shr by cl; cmpxchg; flushes
		codes = append(codes, unhex(t, code))
	}
	p := startLive(t, rng)
	for _, code := range codes {
		p.try(code)
	}
	p.bad.report(t)
	t.Logf("%d instructions, executed %d, accesses checked %d (stores %d), accesses under an all-zero mask %d, by line flushes %d, not run:%v", len(codes), p.executed, p.checked, p.stores, p.inactive, p.flushes, p.skipped)
	if p.executed == 0 || p.checked == 0 {
		t.Error("no instruction was checked")
	}
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern)
	return paths
}

// live is a stopped child process in which single instructions are run.
type live struct {
	t        *testing.T
	pid      int
	mem      *os.File
	rng      *rand.Rand
	start    syscall.PtraceRegs
	xstate   []byte
	xoffset  [8]uint32 // of the XSAVE components in xstate
	executed int
	checked  int
	stores   int
	flushes  int // watchpoints set off by clflush and its like
	inactive int // accesses under an all-zero mask
	skipped  tally
	bad      *mismatches
}

func startLive(t *testing.T, rng *rand.Rand) *live {
	t.Helper()
	runtime.LockOSThread() // ptrace requests must come from the thread that started the child
	t.Cleanup(runtime.UnlockOSThread)
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Skipf("skipped: no ptrace: %v", err)
	}
	p := &live{t: t, pid: cmd.Process.Pid, rng: rng, skipped: tally{}, bad: newMismatches()}
	t.Cleanup(func() {
		cmd.Process.Kill()
		var status syscall.WaitStatus
		syscall.Wait4(p.pid, &status, 0, nil)
	})
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.pid, &status, 0, nil); err != nil || !status.Stopped() {
		t.Fatalf("wait for the child: %v, status %v", err, status)
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", p.pid), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.mem = mem
	t.Cleanup(func() { mem.Close() })
	if err := syscall.PtraceGetRegs(p.pid, &p.start); err != nil {
		t.Fatal(err)
	}
	entry := p.start.Rip
	p.mmap(entry, liveCode, 1<<16, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC)
	p.mmap(entry, liveData, liveSize, unix.PROT_READ|unix.PROT_WRITE)
	if err := p.poke(7, 0); err != nil {
		t.Skipf("skipped: no debug registers: %v", err)
	}
	for _, component := range []uint64{2, 5, 6, 7} {
		r := p.start
		r.Rip, r.Rax, r.Rcx = liveCode, 0xd, component
		p.step([]byte{0x0f, 0xa2}, &r)
		p.xoffset[component] = uint32(r.Rbx)
		if uint32(r.Rax) == 0 {
			p.xoffset[component] = 0
		}
	}
	p.xstate = make([]byte, 16384)
	p.xstate = p.xstate[:p.regset(unix.PTRACE_GETREGSET)]
	return p
}

// mmap maps memory in the child at a fixed address, by a system call run in it.
func (p *live) mmap(entry, addr, size uint64, prot int) {
	p.t.Helper()
	r := p.start
	r.Rax, r.Rdi, r.Rsi, r.Rdx = unix.SYS_MMAP, addr, size, uint64(prot)
	r.R10, r.R8, r.R9 = unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED, ^uint64(0), 0
	r.Rip = entry
	p.step([]byte{0x0f, 0x05}, &r)
	if r.Rax != addr {
		p.t.Fatalf("mmap in the child: %x", r.Rax)
	}
}

// step writes code to r.Rip, runs one instruction and leaves the registers in r.
func (p *live) step(code []byte, r *syscall.PtraceRegs) syscall.Signal {
	p.t.Helper()
	if _, err := p.mem.WriteAt(code, int64(r.Rip)); err != nil {
		p.t.Fatalf("write code: %v", err)
	}
	if err := syscall.PtraceSetRegs(p.pid, r); err != nil {
		p.t.Fatalf("set registers %+v: %v", r, err)
	}
	if err := syscall.PtraceSingleStep(p.pid); err != nil {
		p.t.Fatalf("single step: %v", err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.pid, &status, 0, nil); err != nil || !status.Stopped() {
		p.t.Fatalf("wait after %x: %v, status %x", code, err, status)
	}
	if err := syscall.PtraceGetRegs(p.pid, r); err != nil {
		p.t.Fatal(err)
	}
	return status.StopSignal()
}

func (p *live) poke(reg int, value uint64) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_POKEUSR, uintptr(p.pid), uintptr(userDebugReg+8*reg), uintptr(value), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (p *live) peek(reg int) uint64 {
	var v uint64
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_PEEKUSR, uintptr(p.pid), uintptr(userDebugReg+8*reg), uintptr(unsafe.Pointer(&v)), 0, 0)
	if errno != 0 {
		p.t.Fatalf("read debug register: %v", errno)
	}
	return v
}

func (p *live) regset(request int) int {
	p.t.Helper()
	iov := unix.Iovec{Base: &p.xstate[0], Len: uint64(len(p.xstate))}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(p.pid), ntX86XState, uintptr(unsafe.Pointer(&iov)), 0, 0)
	if errno != 0 {
		p.t.Fatalf("vector registers: %v", errno)
	}
	return int(iov.Len)
}

// randomVectors fills the vector registers so that gathers stay inside the
// data: by number modulo 3 small 32-bit numbers, small 64-bit numbers, lane masks.
func (p *live) randomVectors() *X86Vectors {
	v := &X86Vectors{}
	for i := range v.K {
		v.K[i] = p.rng.Uint64() >> p.rng.IntN(64)
	}
	for i := range v.Z {
		for lane := range 16 {
			n := uint32(p.rng.IntN(1 << 12))
			switch {
			case i%3 == 1 && lane%2 == 1:
				n = 0
			case i%3 == 2:
				n = p.rng.Uint32()
			}
			binary.LittleEndian.PutUint32(v.Z[i][lane*4:], n)
		}
	}
	x := p.xstate
	copy(x[:24], []byte{0x7f, 3, 0, 0}) // x87 control word, empty stack
	binary.LittleEndian.PutUint32(x[24:], 0x1f80)
	bv := uint64(3)
	for i := range 16 {
		copy(x[160+16*i:], v.Z[i][:16])
	}
	if o := p.xoffset[2]; o != 0 {
		bv |= 4
		for i := range 16 {
			copy(x[int(o)+16*i:], v.Z[i][16:32])
		}
	}
	if o5, o6, o7 := p.xoffset[5], p.xoffset[6], p.xoffset[7]; o5 != 0 && o6 != 0 && o7 != 0 {
		bv |= 7 << 5
		for i, k := range v.K {
			binary.LittleEndian.PutUint64(x[int(o5)+8*i:], k)
		}
		for i := range 16 {
			copy(x[int(o6)+32*i:], v.Z[i][32:])
			copy(x[int(o7)+64*i:], v.Z[16+i][:])
		}
	}
	binary.LittleEndian.PutUint64(x[512:], bv)
	p.regset(unix.PTRACE_SETREGSET)
	return v
}

var liveGPR = []func(*syscall.PtraceRegs) *uint64{
	func(r *syscall.PtraceRegs) *uint64 { return &r.Rax }, func(r *syscall.PtraceRegs) *uint64 { return &r.Rcx },
	func(r *syscall.PtraceRegs) *uint64 { return &r.Rdx }, func(r *syscall.PtraceRegs) *uint64 { return &r.Rbx },
	func(r *syscall.PtraceRegs) *uint64 { return &r.Rsp }, func(r *syscall.PtraceRegs) *uint64 { return &r.Rbp },
	func(r *syscall.PtraceRegs) *uint64 { return &r.Rsi }, func(r *syscall.PtraceRegs) *uint64 { return &r.Rdi },
	func(r *syscall.PtraceRegs) *uint64 { return &r.R8 }, func(r *syscall.PtraceRegs) *uint64 { return &r.R9 },
	func(r *syscall.PtraceRegs) *uint64 { return &r.R10 }, func(r *syscall.PtraceRegs) *uint64 { return &r.R11 },
	func(r *syscall.PtraceRegs) *uint64 { return &r.R12 }, func(r *syscall.PtraceRegs) *uint64 { return &r.R13 },
	func(r *syscall.PtraceRegs) *uint64 { return &r.R14 }, func(r *syscall.PtraceRegs) *uint64 { return &r.R15 },
}

// try runs one instruction where that can be arranged.
func (p *live) try(code []byte) {
	in, err := DecodeX86(code)
	if errors.Is(err, ErrUnsupported) {
		p.skipped["declined"]++
		return
	}
	if err != nil {
		p.skipped["truncated"]++
		return
	}
	if in.Branch == BranchTrap || in.Branch == BranchSyscall {
		p.skipped["trap"]++
		return
	}
	code = code[:in.Len]

	regs := &X86Regs{RIP: liveCode + 64*uint64(p.rng.IntN(64)), RFLAGS: p.rng.Uint64()&0xcd5 | 0x202}
	for i := range regs.GPR {
		regs.GPR[i] = liveData + liveSize/4 + uint64(p.rng.IntN(liveSize/2))&^63
	}
	if in.seg != 0 {
		regs.FSBase, regs.GSBase = 0x1000, 0x2000
	}
	if in.bitReg != noReg && in.shape == shapeBit {
		regs.GPR[in.bitReg] = uint64(p.rng.IntN(4096) - 2048)
	}
	if in.shape == shapeXlat {
		regs.GPR[rax] = uint64(p.rng.IntN(256)) | p.rng.Uint64()<<8
	}
	// Put the memory operand somewhere in the data, 64-byte aligned for the moves that insist.
	if in.base < ripBase {
		target := liveData + liveSize/4 + uint64(p.rng.IntN(liveSize/2))&^63
		if in.index != noReg && in.shape != shapeGather && in.index != in.base && in.index != in.bitReg {
			regs.GPR[in.index] = uint64(p.rng.IntN(1 << 12))
		}
		if in.base != in.bitReg {
			offset := uint64(in.disp)
			if in.shape != shapeGather && in.index == in.base {
				p.skipped["base is index"]++
				return
			}
			if in.shape != shapeGather && in.index != noReg {
				offset += regs.GPR[in.index] << in.scale
			}
			regs.GPR[in.base] = target - offset - regs.FSBase*b2u(in.seg == 1) - regs.GSBase*b2u(in.seg == 2)
			if in.addr32 {
				regs.GPR[in.base] = uint64(uint32(regs.GPR[in.base])) | p.rng.Uint64()<<32
			}
		}
	}
	regs.Vec = p.randomVectors()
	want, err := in.Accesses(regs, nil)
	if err != nil {
		p.bad.add("accesses", "%x: %v", code, err)
		return
	}
	for _, a := range want {
		if a.Addr < liveData+4096 || a.Addr > liveData+liveSize-4096 {
			p.skipped["address outside the data"]++
			return
		}
	}
	probe := Access{}
	switch {
	case len(want) > 0:
		probe = want[p.rng.IntN(len(want))]
	case in.base < ripBase && in.shape != shapeGather: // lea, nop, prefetch, a masked-off move: nothing may fire
		probe = Access{Addr: in.address(regs), Size: 1}
	}
	p.run(code, &in, regs, want, probe)
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// run executes code with watchpoints around probe and compares.
func (p *live) run(code []byte, in *X86Inst, regs *X86Regs, want []Access, probe Access) {
	r := p.start
	for i, reg := range liveGPR {
		*reg(&r) = regs.GPR[i]
	}
	r.Rip, r.Eflags, r.Fs_base, r.Gs_base = regs.RIP, regs.RFLAGS, regs.FSBase, regs.GSBase
	r.Orig_rax = ^uint64(0)
	before := r

	outside := probe.Addr - 1
	if p.rng.IntN(2) == 0 {
		outside = probe.Addr + uint64(probe.Size)
	}
	last := probe.Addr + uint64(max(probe.Size, 1)-1)
	const (
		onWrite = 1
		onAny   = 3
	)
	kinds := [4]uint64{onAny, onAny, onAny, onWrite}
	dr7 := uint64(0)
	if probe.Size > 0 {
		for i, a := range [4]uint64{probe.Addr, last, outside, probe.Addr} {
			if err := p.poke(i, a); err != nil {
				p.t.Fatalf("set watchpoint %d at %x: %v", i, a, err)
			}
			dr7 |= 1<<(2*i) | kinds[i]<<(16+4*i)
		}
	}
	if err := p.poke(7, dr7); err != nil {
		p.t.Fatalf("arm watchpoints: %v", err)
	}
	p.poke(6, 0)
	sig := p.step(code, &r)
	hits := p.peek(6) & 15
	p.poke(7, 0)
	if sig != syscall.SIGTRAP {
		p.skipped[sig.String()]++
		return
	}
	p.executed++
	name := fmt.Sprintf("%x", code)

	// Registers, flags and flow.
	var changed RegSet
	for i, reg := range liveGPR {
		if *reg(&r) != *reg(&before) {
			changed |= 1 << i
		}
	}
	if (r.Eflags^before.Eflags)&0xcd5 != 0 {
		changed |= RegFlags
	}
	if extra := changed &^ in.Writes; extra != 0 {
		p.bad.add("registers", "%s: %x changed, predicted %x", name, uint64(changed), uint64(in.Writes))
	}
	next := regs.RIP + uint64(in.Len)
	switch in.Branch {
	case BranchNone:
	case BranchJump, BranchCall:
		next = in.Target(regs.RIP)
	case BranchCond:
		if in.Taken(regs) {
			next = in.Target(regs.RIP)
		}
	default:
		next = r.Rip
	}
	// REP strings and gathers can be interrupted between elements, by the watchpoint too.
	if r.Rip != next && !((in.Rep || in.shape == shapeGather) && r.Rip == regs.RIP) {
		p.bad.add("flow "+name[:6], "%s: at %x, predicted %x, flags %x rcx %x", name, r.Rip, next, regs.RFLAGS, regs.GPR[rcx])
	}

	if probe.Size == 0 {
		return
	}
	if len(want) == 0 {
		switch {
		case hits != 0 && (in.opMask != 0 || in.vecMask != noReg):
			p.inactive++ // architecturally no access, but this CPU makes one
		case hits != 0 && (formName(code) == "0f ae /7" || formName(code) == "0f ae /6"):
			// clflush, clflushopt, clwb: checked like a load of one byte (SDM), and Zen 4
			// lets them fire a watchpoint; they move no data and are no access here.
			p.flushes++
		case hits != 0:
			p.bad.add("unpredicted access", "%s: watchpoints %x", name, hits)
		}
		return
	}
	// What other accesses of the same instruction cover is no surprise.
	touched := func(a uint64, storesOnly bool) bool {
		for _, w := range want {
			if a >= w.Addr && a < w.Addr+uint64(w.Size) && (w.Store || !storesOnly) {
				return true
			}
		}
		return false
	}
	expect := b2u(touched(probe.Addr, false)) | b2u(touched(last, false))<<1 | b2u(touched(outside, false))<<2 | b2u(touched(probe.Addr, true))<<3
	if in.shape == shapeMaskMov && probe.Approx && in.vecMask == noReg {
		p.skipped["mask in an MMX register"]++
		return
	}
	if probe.Approx { // only the first byte is promised
		hits &^= 6
		expect &^= 6
	}
	p.checked++
	if probe.Store {
		p.stores++
	}
	if probe.Elements > 1 { // further elements may lie anywhere
		hits &^= 4
		expect &^= 4
	}
	if hits != expect {
		p.bad.add("access: "+formName(code), "%s: watchpoints %04b fired, predicted %04b for %+v of %+v", name, hits, expect, probe, want)
	}
}
