package ahead

import (
	"unsafe"

	"github.com/rdx-profiler/rdx/sampler/interp/a64"
	"github.com/rdx-profiler/rdx/sampler/operand"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

type (
	machine         = a64.Machine
	registers       = a64.Regs
	vectorRegisters = a64.Vector
)

func newMachine() *machine { return a64.New() }

// cpu is what a Locator keeps for arm64.
type cpu struct {
	dczid uint64 // DCZID_EL0 of this machine's CPUs
}

// readDCZID reads DCZID_EL0.
func readDCZID() uint64

func newCPU() cpu { return cpu{dczid: readDCZID()} }

func programCounter(r *registers) uint64 { return r.PC }

// reportedAt is where a trap reports an access to have been: at its instruction.
func (l *Locator) reportedAt(pc uint64) uint64 { return pc }

// userFP is struct user_fpsimd_state of the kernel.
type userFP struct {
	v          [32]a64.Vec
	fpsr, fpcr uint32
	_          [2]uint32
}

const (
	ntPRFPReg  = 2
	ntARMTLS   = 0x401
	pstate32   = 1 << 4 // AArch32
	pstateNZCV = 0xf << 28
)

// loadRegs reads the registers of a held thread. They do not tell whether it stands in
// a system call.
func (l *Locator) loadRegs(tid int) error {
	u, err := ptrace.ReadUserRegs(tid)
	if err != nil {
		return &Declined{Reason: "registers not readable"}
	}
	l.InSyscall = false
	if u.PSTATE&ptrace.Stepping != 0 {
		return &Declined{Reason: "held with its watchpoints off"}
	}
	if u.PSTATE&pstate32 != 0 {
		return &Declined{Reason: "32-bit code"}
	}
	r := &l.regs
	r.X, r.SP, r.PC, r.NZCV, r.DCZID = u.X, u.SP, u.PC, u.PSTATE&pstateNZCV, l.dczid
	if ptrace.ReadRegset(tid, ntARMTLS, unsafe.Pointer(&r.TPIDR), unsafe.Sizeof(r.TPIDR)) != nil {
		return &Declined{Reason: "registers not readable"}
	}
	return nil
}

// readVectorOf reads the vector registers of a held thread.
func (l *Locator) readVectorOf(tid int, v *a64.Vector) error {
	var fp userFP
	if err := ptrace.ReadRegset(tid, ntPRFPReg, unsafe.Pointer(&fp), unsafe.Sizeof(fp)); err != nil {
		return err
	}
	v.V, v.FPSR, v.FPCR = fp.v, fp.fpsr, fp.fpcr
	return nil
}

// decodeOperands decodes the instruction that l.regs stand at, and returns where a
// trap at its access is reported.
func (l *Locator) decodeOperands(op string) (next uint64, err error) {
	r := &l.regs
	code, err := l.memory.code(r.PC)
	if err != nil {
		return 0, &Declined{Reason: "code not readable"}
	}
	unsupported := &Declined{Reason: "instruction not supported", Op: op}
	in, err := operand.DecodeARM64(code)
	if err != nil {
		return 0, unsupported
	}
	regs := operand.ARM64Regs{X: r.X, SP: r.SP, PC: r.PC}
	l.operands, err = in.Accesses(&regs, l.operands[:0])
	if err != nil || len(l.operands) == 0 {
		return 0, unsupported
	}
	for i := range l.operands {
		// The top byte is the program's own (TBI); the kernel wants the address
		// without it.
		a := &l.operands[i].Addr
		*a = uint64(int64(*a<<8) >> 8)
	}
	return r.PC, nil
}

// Reported completes an access of which a source has reported the address and
// the instruction: its size is not in a report.
func (l *Locator) Reported(pid int, pc, addr uint64, store bool) Located {
	l.memory.pid = pid
	l.operands = l.operands[:0]
	if code, err := l.memory.code(pc); err == nil {
		if in, err := operand.DecodeARM64(code); err == nil {
			if in.Stores() && !in.Loads() {
				store = true
			}
			var regs operand.ARM64Regs
			if all, err := in.Accesses(&regs, l.operands); err == nil {
				l.operands = all
			}
		}
	}
	return reported(l.operands, addr, store)
}

// Accessing is ip: here a trap reports the accessing instruction itself.
func (l *Locator) Accessing(pid int, ip uint64, _ *unwind.Snapshot) Accessing {
	l.memory.pid = pid
	a := Accessing{PC: ip}
	if code, err := l.memory.code(ip); err == nil {
		in, err := operand.DecodeARM64(code)
		a.Store = err == nil && in.Stores() && !in.Loads()
	}
	return a
}

// maxInst is the length of an instruction.
const maxInst = 4

// code reads the instruction at pc.
func (m *targetMemory) code(pc uint64) ([]byte, error) {
	n, err := m.read(pc, m.buf[:])
	if err == nil && n < maxInst {
		err = errShort
	}
	return m.buf[:], err
}
