package sampler

import (
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/operand"
)

// lookahead is how many instructions without a memory access are read ahead
// of a sample before it is given up.
const lookahead = 4096

// Locator finds the next access of a held thread by interpreting from where
// it stands; the thread itself is not moved. It is for the tracing thread
// only.
type Locator struct {
	machine   *interp.Machine
	regs      interp.Regs
	memory    targetMemory
	accesses  []operand.Access
	layout    interp.XSAVELayout
	xsave     []byte
	accessing map[codeAddress]uint64
}

type codeAddress struct {
	pid int
	ip  uint64
}

// NewLocator returns a Locator, to be used again and again.
func NewLocator() *Locator {
	return &Locator{
		machine:   interp.New(),
		layout:    interp.ReadXSAVELayout(),
		xsave:     make([]byte, 16384), // AMX tile data included
		accessing: make(map[codeAddress]uint64),
	}
}

// Locate finds the next access of the held thread tid of process pid. Of an
// instruction with several, pick(n) chooses one of n. The error is a
// *Declined if the sample is lost for a reason worth counting.
func (l *Locator) Locate(pid, tid int, pick func(n int) int) (Located, error) {
	var pr unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &pr); err != nil {
		return Located{}, &Declined{Reason: "registers not readable"}
	}
	if pr.Cs != userCS {
		return Located{}, &Declined{Reason: "32-bit code"}
	}
	r := &l.regs
	r.GPR = [16]uint64{pr.Rax, pr.Rcx, pr.Rdx, pr.Rbx, pr.Rsp, pr.Rbp, pr.Rsi, pr.Rdi,
		pr.R8, pr.R9, pr.R10, pr.R11, pr.R12, pr.R13, pr.R14, pr.R15}
	r.RIP, r.Flags = pr.Rip, pr.Eflags
	r.FSBase, r.GSBase = pr.Fs_base, pr.Gs_base
	r.LoadVector = func(v *interp.Vector) error { return readVector(tid, l.layout, l.xsave, v) }
	l.memory.pid = pid

	l.machine.Start(r, &l.memory)
	end := l.machine.Run(interp.Limit{Accesses: 1, Instructions: lookahead})
	l.machine.Regs(r)
	if all := l.machine.Accesses(); len(all) > 0 {
		a := all[pick(len(all))]
		return Located{Addr: a.Addr, Size: int(a.Size), Store: a.Store, PC: a.PC, Next: r.RIP}, nil
	}
	if end.Cause == interp.Unsupported {
		return l.operand(end, pick)
	}
	return Located{}, &Declined{Reason: "no access before " + end.Cause.String()}
}

// userCS is the code segment of 64-bit user code.
const userCS = 0x33

// operand decodes an instruction that cannot be interpreted: it need only be
// known what it touches, not what comes of it.
func (l *Locator) operand(end interp.End, pick func(n int) int) (Located, error) {
	r := &l.regs
	code, err := l.memory.code(r.RIP)
	if err != nil {
		return Located{}, &Declined{Reason: "code not readable"}
	}
	in, err := operand.DecodeX86(code)
	if err != nil {
		return Located{}, &Declined{Reason: "instruction not supported", Op: end.Op}
	}
	regs := operand.X86Regs{GPR: r.GPR, RIP: r.RIP, RFLAGS: r.Flags, FSBase: r.FSBase, GSBase: r.GSBase}
	l.accesses, err = in.Accesses(&regs, l.accesses[:0])
	if err != nil || len(l.accesses) == 0 || in.Branch != operand.BranchNone {
		return Located{}, &Declined{Reason: "instruction not supported", Op: end.Op}
	}
	a := l.accesses[pick(len(l.accesses))]
	if a.Approx {
		return Located{}, &Declined{Reason: "masked or gathered access", Op: end.Op}
	}
	return Located{Addr: a.Addr, Size: a.Size, Store: a.Store, PC: r.RIP, Next: r.RIP + uint64(in.Len)}, nil
}

// Accessing is an address inside the instruction that made the access after
// which the trap reported ip: the one that ends there. Where no accessing
// instruction ends (a call or return led there), it is ip.
func (l *Locator) Accessing(pid int, ip uint64) uint64 {
	key := codeAddress{pid, ip}
	if pc, ok := l.accessing[key]; ok {
		return pc
	}
	l.memory.pid = pid
	pc := l.memory.before(ip)
	if len(l.accessing) > maxAccessing {
		clear(l.accessing)
	}
	l.accessing[key] = pc
	return pc
}

const maxAccessing = 1 << 16

// maxInst is the length of the longest x86 instruction.
const maxInst = 15

// ReadPage implements interp.Memory.
func (m *targetMemory) ReadPage(addr uint64, buf *[4096]byte) error {
	n, err := m.read(addr, buf[:])
	if err == nil && n < len(buf) {
		err = errShort
	}
	return err
}

func (m *targetMemory) before(ip uint64) uint64 {
	b := m.buf[:]
	if n, err := m.read(ip-maxInst, b); err != nil || n < maxInst {
		return ip
	}
	for n := 1; n <= maxInst; n++ {
		if in, err := operand.DecodeX86(b[maxInst-n:]); err == nil && int(in.Len) == n && in.Touches() {
			return ip - uint64(n)
		}
	}
	return ip
}
