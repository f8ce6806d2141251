package ahead

import (
	"bytes"

	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/operand"
)

// CanStep says whether threads can be stepped on this architecture.
const CanStep = true

// walk decodes the instructions from where the thread stands and enters their
// accesses, as far as these are known by its registers there, at most most
// instructions, and says where that ends. Without a first one it says why.
func (s *Steps) walk(most int) (upTo uint64, cause string) {
	l := s.l
	regs := operand.X86Regs{GPR: l.regs.GPR, RFLAGS: l.regs.Flags, FSBase: l.regs.FSBase, GSBase: l.regs.GSBase}
	var written operand.RegSet
	s.way = s.way[:0]
	for pc := l.regs.RIP; ; {
		first := len(s.way) == 0
		p := passed{pc: pc}
		in, cause := s.decode(&p)
		regs.RIP = pc
		if cause == "" && !first && !known(&in, written) {
			return pc, ""
		}
		var accesses []interp.Access
		if cause == "" {
			accesses, cause = s.accesses(&in, &regs, first)
		}
		var next uint64
		if cause == "" {
			next, cause = s.follow(&in, &regs)
		}
		if cause != "" && first {
			return 0, cause
		}
		wanted := s.wants(accesses)
		if !first && (cause != "" || wanted || s.passes(next)) {
			return pc, ""
		}
		if first && next == pc {
			return 0, endSelf // a breakpoint there would stop it before it
		}
		s.way = append(s.way, p)
		s.note(accesses, wanted)
		written |= in.Writes
		pc = next
		if len(s.way) >= most || len(s.log.all) >= s.burst {
			return pc, ""
		}
	}
}

// decode reads the instruction at p.pc.
func (s *Steps) decode(p *passed) (in operand.X86Inst, cause string) {
	code, err := s.l.memory.code(p.pc)
	if err != nil {
		return in, interp.Unreadable.String()
	}
	if in, err = operand.DecodeX86(code); err != nil {
		if u, ok := err.(*operand.UnsupportedError); ok {
			return in, interp.Unsupported.String() + ": " + u.Name
		}
		return in, interp.Unreadable.String()
	}
	p.size = copy(p.code[:], code[:in.Len])
	return in, ""
}

// known says whether the registers that matter to an instruction are as they
// were where the thread stands. Where memory does, it must stand there.
func known(in *operand.X86Inst, written operand.RegSet) bool {
	switch in.Branch {
	case operand.BranchIndirect, operand.BranchCallInd, operand.BranchReturn:
		return false
	case operand.BranchCond:
		const rcx = 1 << interp.RCX
		if written&(operand.RegFlags|rcx) != 0 {
			return false
		}
	}
	return !in.Rep && (!in.Touches() || in.AddrRegs&written == 0)
}

// accesses are those of one instruction, in order. first says that the thread stands
// there: where its operands don't tell, masks or the data of a string do, and
// the machine knows these.
func (s *Steps) accesses(in *operand.X86Inst, regs *operand.X86Regs, first bool) (out []interp.Access, cause string) {
	switch in.Branch {
	case operand.BranchSyscall:
		return nil, interp.Syscall.String()
	case operand.BranchTrap:
		return nil, interp.Fault.String()
	}
	l := s.l
	var err error
	l.operands, err = in.Accesses(regs, l.operands[:0])
	elements := uint64(1)
	clear := err == nil
	for _, a := range l.operands {
		clear = clear && !a.Approx && a.Size > 0 && (a.Elements == 1 || in.Rep && in.Stores())
		elements = a.Elements
	}
	if !clear {
		if !first {
			return nil, endOperands
		}
		return s.interpreted()
	}
	if elements > 1 && elements > uint64(s.left()) {
		return nil, endString
	}
	const directionFlag = 1 << 10
	for i := range elements {
		for _, a := range l.operands {
			off := i * uint64(a.Size)
			if regs.RFLAGS&directionFlag != 0 {
				off = -off
			}
			out = append(out, interp.Access{PC: regs.RIP, Addr: a.Addr + off, Size: uint16(a.Size), Store: a.Store})
		}
	}
	return out, ""
}

// left is how many accesses the burst is still to have.
func (s *Steps) left() int { return s.burst - len(s.log.all) }

// interpreted are the accesses of the instruction at which the thread stands.
func (s *Steps) interpreted() ([]interp.Access, string) {
	l := s.l
	l.machine.Start(&l.regs, &l.memory)
	end := l.machine.Run(interp.Limit{Accesses: max(s.left(), 1), Instructions: 1})
	switch {
	case end.Instructions == 1:
		return l.machine.Accesses(), ""
	case end.Cause == interp.AccessesDone:
		return nil, endString
	}
	return nil, ending(end)
}

// follow says which instruction comes next. Of an indirect jump the thread stands
// there, and the machine tells.
func (s *Steps) follow(in *operand.X86Inst, regs *operand.X86Regs) (next uint64, cause string) {
	behind := regs.RIP + uint64(in.Len)
	switch in.Branch {
	case operand.BranchJump, operand.BranchCall:
		return in.Target(regs.RIP), ""
	case operand.BranchCond:
		if in.Taken(regs) {
			return in.Target(regs.RIP), ""
		}
	case operand.BranchIndirect, operand.BranchCallInd, operand.BranchReturn:
		l := s.l
		l.machine.Start(&l.regs, &l.memory)
		end := l.machine.Run(interp.Limit{Accesses: 1, Instructions: 1})
		if end.Instructions != 1 {
			return 0, ending(end)
		}
		var after interp.Regs
		l.machine.Regs(&after)
		return after.RIP, ""
	}
	return behind, ""
}

// passes says whether the instruction at pc is one of those on the way: a breakpoint
// there would stop the thread too soon.
func (s *Steps) passes(pc uint64) bool {
	for i := range s.way {
		if s.way[i].pc == pc {
			return true
		}
	}
	return false
}

// unchanged says whether the code on the way is still as it was decoded.
func (s *Steps) unchanged() bool {
	for i := range s.way {
		p := &s.way[i]
		code, err := s.l.memory.code(p.pc)
		if err != nil || len(code) < p.size || !bytes.Equal(code[:p.size], p.code[:p.size]) {
			return false
		}
	}
	return true
}

// afterCall is where the system call returns to that the thread is about to make.
func (s *Steps) afterCall() uint64 { return s.l.regs.RIP + 2 }
