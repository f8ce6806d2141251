package pipeline

import (
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// registers are a set of what instructions wait for: the general ones, the vector ones, flags, masks and the x87.
type registers uint64

const (
	vectors   = 16 // the first vector register's bit
	numStates = 51

	flags registers = 1 << 48
	masks registers = 1 << 49
	x87   registers = 1 << 50
	rsp   registers = 1 << 4
)

// operation is what the model knows of an instruction.
type operation struct {
	pc      uint64
	next    uint64 // that of the one behind it; 0: not known
	latency uint8  // cycles, that of its accesses aside
	busy    uint8  // cycles for which its unit takes no other
	stalls  uint8  // cycles in which nothing behind it enters
	branch  branchKind
	address registers // that its accesses' addresses are made of
	reads   registers // that its result needs besides
	writes  registers
}

type branchKind uint8

const (
	noBranch branchKind = iota
	direct              // or to where it returns to: foretold
	conditional
	indirect
)

// decode says what is known of the instruction that code begins with. Nothing waits for one that is not known.
func decode(pc uint64, code []byte) *operation {
	o := &operation{pc: pc, latency: simple}
	in, err := x86asm.Decode(code, 64)
	if err != nil || in.Op == 0 {
		return o
	}
	o.next = pc + uint64(in.Len)
	f := formOf(in.Op)
	o.latency, o.busy, o.stalls, o.reads, o.writes = f.latency, f.busy, f.stalls, f.reads, f.writes
	if slices.Contains(in.Prefix[:], x86asm.PrefixLOCK) {
		o.latency = locked
	}
	if f.setsFlags {
		o.writes |= flags
	}
	if f.readsFlags {
		o.reads |= flags
	}
	if f.x87 {
		o.reads, o.writes = o.reads|x87, o.writes|x87
	}
	o.operands(&in, &f)
	switch in.Op { // the stack's pointer is followed where instructions are decoded
	case x86asm.PUSH, x86asm.POP, x86asm.CALL, x86asm.RET:
		o.address &^= rsp
	case x86asm.LEA: // its address is its result
		o.reads, o.address = o.address, 0
	}
	o.branch = branchOf(&in)
	return o
}

// operands adds the registers that are named.
func (o *operation) operands(in *x86asm.Inst, f *form) {
	var sources []x86asm.Reg
	named := 0
	for i, arg := range in.Args {
		switch a := arg.(type) {
		case x86asm.Mem:
			o.address |= setOf(a.Base) | setOf(a.Index)
			named++
		case x86asm.Reg:
			named++
			switch r := setOf(a); {
			case i > 0 || f.noResult:
				o.reads |= r
				sources = append(sources, a)
			default:
				o.writes |= r
				if f.keeps && (in.Op != x86asm.IMUL || in.Args[2] == nil) || a < x86asm.EAX { // of a part the rest stays
					o.reads |= r
					sources = append(sources, a)
				}
			}
		}
	}
	if in.Op == x86asm.IMUL && named == 1 {
		o.reads, o.writes = o.reads|rax, o.writes|rax|rdx
	}
	if f.clears && len(sources) == 2 && sources[0] == sources[1] {
		o.reads = 0
	}
	if in.Op == x86asm.XCHG {
		o.writes |= o.reads
	}
}

func branchOf(in *x86asm.Inst) branchKind {
	switch op := in.Op; {
	case op == x86asm.JMP || op == x86asm.CALL:
		if _, ok := in.Args[0].(x86asm.Rel); !ok {
			return indirect
		}
		return direct
	case op == x86asm.RET:
		return direct
	case strings.HasPrefix(op.String(), "J") || op == x86asm.LOOP || op == x86asm.LOOPE || op == x86asm.LOOPNE:
		return conditional
	}
	return noBranch
}

// setOf is a register's, whatever part of it; none for those that nothing waits for.
func setOf(r x86asm.Reg) registers {
	general := func(n x86asm.Reg) registers { return 1 << (n & 15) }
	vector := func(n x86asm.Reg) registers { return 1 << (vectors + n&31) }
	switch {
	case r >= x86asm.AL && r <= x86asm.BL:
		return general(r - x86asm.AL)
	case r >= x86asm.AH && r <= x86asm.BH:
		return general(r - x86asm.AH)
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return general(r - x86asm.SPB + 4)
	case r >= x86asm.AX && r <= x86asm.R15W:
		return general(r - x86asm.AX)
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return general(r - x86asm.EAX)
	case r >= x86asm.RAX && r <= x86asm.R15:
		return general(r - x86asm.RAX)
	case r >= x86asm.X0 && r <= x86asm.X31:
		return vector(r - x86asm.X0)
	case r >= x86asm.Y0 && r <= x86asm.Y31:
		return vector(r - x86asm.Y0)
	case r >= x86asm.Z0 && r <= x86asm.Z31:
		return vector(r - x86asm.Z0)
	case r >= x86asm.K1 && r <= x86asm.K7: // the first is none
		return masks
	case r >= x86asm.F0 && r <= x86asm.M7:
		return x87
	}
	return 0
}
