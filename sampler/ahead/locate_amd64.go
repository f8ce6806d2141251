package ahead

import (
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/operand"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

type (
	machine         = interp.Machine
	registers       = interp.Regs
	vectorRegisters = interp.Vector
)

// newMachine has all that it needs before a thread is held.
func newMachine() *machine {
	interp.Prepare()
	return interp.New()
}

// cpu is what a Locator keeps for x86-64.
type cpu struct {
	layout    interp.XSAVELayout
	xsave     []byte
	accessing map[codeAddress]Accessing
}

type codeAddress struct {
	pid int
	ip  uint64
}

func newCPU() cpu {
	return cpu{
		layout:    interp.ReadXSAVELayout(),
		xsave:     make([]byte, 16384), // AMX tile data included
		accessing: make(map[codeAddress]Accessing),
	}
}

func programCounter(r *registers) uint64 { return r.RIP }

// reportedAt is where a trap reports an access by the instruction at pc: behind it, 0 where it may jump.
func (l *Locator) reportedAt(pc uint64) uint64 {
	var b [maxInst]byte
	code := b[:min(maxInst, pageSize-pc%pageSize)]
	if len(code) < maxInst || !l.machine.Holds(pc) || !l.machine.Load(pc, code) { // else what was read ahead has it
		var err error
		if code, err = l.memory.code(pc); err != nil {
			return 0
		}
	}
	in, err := operand.DecodeX86(code)
	if err != nil || in.Branch != operand.BranchNone {
		return 0
	}
	return pc + uint64(in.Len)
}

// loadRegs reads the registers of a held thread.
func (l *Locator) loadRegs(tid int) error {
	var pr unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &pr); err != nil {
		return &Declined{Reason: "registers not readable"}
	}
	if pr.Cs != userCS {
		return &Declined{Reason: "32-bit code"}
	}
	l.InSyscall = int64(pr.Orig_rax) >= 0
	r := &l.regs
	r.GPR = [16]uint64{pr.Rax, pr.Rcx, pr.Rdx, pr.Rbx, pr.Rsp, pr.Rbp, pr.Rsi, pr.Rdi,
		pr.R8, pr.R9, pr.R10, pr.R11, pr.R12, pr.R13, pr.R14, pr.R15}
	r.RIP, r.Flags = pr.Rip, pr.Eflags
	r.FSBase, r.GSBase = pr.Fs_base, pr.Gs_base
	return nil
}

// readVectorOf reads the vector registers of a held thread.
func (l *Locator) readVectorOf(tid int, v *interp.Vector) error {
	return readVector(tid, l.layout, l.xsave, v)
}

// userCS is the code segment of 64-bit user code.
const userCS = 0x33

// decodeOperands decodes the instruction that l.regs stand at, and returns where a
// trap at its access is reported.
func (l *Locator) decodeOperands(op string) (next uint64, err error) {
	r := &l.regs
	unsupported := &Declined{Reason: "instruction not supported", Op: op}
	code, err := l.memory.code(r.RIP)
	if err != nil {
		return 0, &Declined{Reason: "code not readable"}
	}
	in, err := operand.DecodeX86(code)
	if err != nil || in.Branch != operand.BranchNone {
		return 0, unsupported
	}
	regs := operand.X86Regs{GPR: r.GPR, RIP: r.RIP, RFLAGS: r.Flags, FSBase: r.FSBase, GSBase: r.GSBase}
	l.operands, err = in.Accesses(&regs, l.operands[:0])
	if err != nil || len(l.operands) == 0 {
		return 0, unsupported
	}
	return r.RIP + uint64(in.Len), nil
}

// Reported completes an access of which a source has reported the address and
// the instruction: its size is not in a report.
func (l *Locator) Reported(pid int, pc, addr uint64, store bool) Located {
	l.memory.pid = pid
	l.operands = l.operands[:0]
	code, err := l.memory.code(pc)
	if err != nil {
		return reported(nil, addr, store)
	}
	if in, err := operand.DecodeX86(code); err == nil {
		if in.Stores() && !in.Loads() {
			store = true
		}
		// Sizes do not depend on the registers.
		var regs operand.X86Regs
		if all, err := in.Accesses(&regs, l.operands); err == nil {
			l.operands = all
		}
	}
	return reported(l.operands, addr, store)
}

// Accessing is the instruction that made the access after
// which the trap reported ip, with the thread as in after, nil if that is not known: the
// one that ends there, if it goes on there. At the entry of a function it is the call,
// behind a call the return to it, whose own place is not known: PC is the call's for both.
// Where another jump led there, it is ip.
//
// It stores if that is all it does: of one that loads, too, the load comes first.
func (l *Locator) Accessing(pid int, ip uint64, after *unwind.Snapshot) Accessing {
	l.memory.pid = pid
	if after != nil {
		if to, ok := after.Stack.Load(after.Stack.Base); ok {
			if n, target := l.memory.call(to); n > 0 && target == ip {
				return Accessing{PC: to - n, Store: true, Called: true}
			}
		}
	}
	key := codeAddress{pid, ip}
	if a, ok := l.accessing[key]; ok {
		return a
	}
	a := l.memory.before(ip)
	if len(l.accessing) > maxAccessing {
		clear(l.accessing)
	}
	l.accessing[key] = a
	return a
}

const maxAccessing = 1 << 16

// maxInst is the length of the longest x86 instruction.
const maxInst = 15

// code reads as much of the instruction at ip as is mapped.
func (m *targetMemory) code(ip uint64) ([]byte, error) {
	n, err := m.read(ip, m.buf[:])
	if n > 0 {
		return m.buf[:n], nil
	}
	// The page after it may be missing.
	if room := 4096 - ip%4096; room < maxInst {
		n, err = m.read(ip, m.buf[:room])
	}
	if n > 0 {
		return m.buf[:n], nil
	}
	return nil, err
}

// sweep is how far before an instruction's end its beginning is looked for: where
// instructions begin is not known, but whoever decodes from a wrong place on comes upon
// the right ones after a few.
const sweep = 96

// before is the access that has led to ip, if that does not stand at a function's entry.
func (m *targetMemory) before(ip uint64) Accessing {
	var b [sweep]byte
	n, err := m.read(ip-sweep, b[:])
	if err != nil || n < sweep { // the page before it may be missing
		if n, err = m.read(ip-maxInst, b[sweep-maxInst:]); err != nil || n < maxInst {
			return Accessing{PC: ip}
		}
		n = maxInst
	}
	// Of every place, by its distance from ip, what the last instruction is of those that are
	// decoded from there on: its distance, 0 if they do not end at ip. The most begin at the right one.
	var last [sweep + 1]int
	var votes [maxInst + 1]int
	var found [maxInst + 1]Accessing
	for at := 1; at <= n; at++ {
		in, err := operand.DecodeX86(b[sweep-at:])
		switch rest := at - int(in.Len); {
		case err != nil || rest < 0:
			continue
		case rest > 0:
			last[at] = last[rest]
		case !in.Touches():
			continue
		case in.Branch == operand.BranchNone:
			last[at], found[at] = at, Accessing{PC: ip - uint64(at), Store: in.Stores() && !in.Loads()}
		case in.Branch == operand.BranchCall || in.Branch == operand.BranchCallInd:
			last[at], found[at] = at, Accessing{PC: ip - uint64(at)}
			// Any other branch does not go on behind it: that code belongs to something else.
		}
		votes[last[at]]++
	}
	best := 0
	for at := 1; at <= maxInst; at++ {
		if votes[at] > 0 && (best == 0 || votes[at] > votes[best]) {
			best = at
		}
	}
	if best == 0 {
		return Accessing{PC: ip}
	}
	return found[best]
}

// call decodes the direct call that ends at ip: its length and target, 0 if there is none.
func (m *targetMemory) call(ip uint64) (n, target uint64) {
	const length = 5
	var b [length]byte
	if n, err := m.read(ip-length, b[:]); err != nil || n < length {
		return 0, 0
	}
	in, err := operand.DecodeX86(b[:])
	if err != nil || in.Branch != operand.BranchCall || in.Len != length {
		return 0, 0
	}
	return length, in.Target(ip - length)
}
