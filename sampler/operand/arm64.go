package operand

import (
	"encoding/binary"
	"fmt"
)

// ARM64Inst is a decoded A64 instruction, independent of register contents.
type ARM64Inst struct {
	Branch   Branch // how it can leave straight-line flow
	Writes   RegSet // registers it may write
	AddrRegs RegSet // registers its address depends on

	load, store bool
	literal     bool
	zero        bool  // dc zva
	signed      bool  // the base carries a signature (ldraa, ldrab)
	post        bool  // the offset is added after the access
	base, index uint8 // 31 is SP as base; noReg: none
	extend      uint8 // of the index: 2 uxtw, 3 lsl, 6 sxtw, 7 sxtx
	shift       uint8
	size        uint16
	cond        uint8 // a condition, or cond... below
	reg         uint8 // compare-and-branch
	bit         uint8
	disp        int64
	rel         int64
}

// A64 branches on a register follow the sixteen conditions.
const (
	condCBZ = 16 + iota
	condCBNZ
	condTBZ
	condTBNZ
)

const a64SP = 31

// Touches reports whether the instruction accesses memory.
func (in *ARM64Inst) Touches() bool { return in.load || in.store }

// Loads reports whether it has a load.
func (in *ARM64Inst) Loads() bool { return in.load }

// Stores reports whether it has a store.
func (in *ARM64Inst) Stores() bool { return in.store }

// Target is the address a direct branch at pc goes to when taken.
func (in *ARM64Inst) Target(pc uint64) uint64 { return pc + uint64(in.rel) }

// DecodeARM64 decodes the A64 instruction in the first four bytes of code. The
// error is ErrTruncated or an *UnsupportedError. SVE, SME, memory tagging,
// memory copy instructions, 64-byte and 128-bit atomics are declined.
// Among instructions that access no memory some unallocated encodings decode.
func DecodeARM64(code []byte) (ARM64Inst, error) {
	if len(code) < 4 {
		return ARM64Inst{}, ErrTruncated
	}
	w := a64Word(binary.LittleEndian.Uint32(code))
	in := ARM64Inst{base: noReg, index: noReg}
	why := ""
	switch op0 := w.bits(28, 25); {
	case op0&0b1110 == 0b1000:
		why = in.dataImmediate(w)
	case op0&0b1110 == 0b1010:
		why = in.branchSystem(w)
	case op0&0b0101 == 0b0100:
		why = in.loadStore(w)
	case op0&0b0111 == 0b0101:
		why = in.dataRegister(w)
	case op0&0b0111 == 0b0111:
		why = in.dataVector(w)
	case op0 == 0b0010:
		why = "sve"
	case w>>16 == 0:
		in.Branch = BranchTrap // udf
	default:
		why = "reserved or sme"
	}
	if why != "" {
		// bits 31:21 pick the instruction in nearly every class
		return ARM64Inst{}, &UnsupportedError{fmt.Sprintf("a64 %s %03x", why, uint32(w)>>21), "not in the tables"}
	}
	if in.zero {
		in.AddrRegs = general(in.base)
	} else if in.Touches() && !in.literal {
		in.AddrRegs = 1 << in.base
		if in.index != noReg && !in.post && in.index != 31 {
			in.AddrRegs |= 1 << in.index
		}
	}
	return in, nil
}

type a64Word uint32

func (w a64Word) bits(high, low int) uint32 { return uint32(w) >> low & (1<<(high-low+1) - 1) }
func (w a64Word) bit(n int) uint32          { return uint32(w) >> n & 1 }

// signed is a bit field as a signed number.
func (w a64Word) signed(high, low int) int64 { return int64(int32(w)<<(31-high)) >> (31 - high + low) }

func (w a64Word) rd() uint8 { return uint8(w & 31) }
func (w a64Word) rn() uint8 { return uint8(w >> 5 & 31) }
func (w a64Word) rm() uint8 { return uint8(w >> 16 & 31) }

// general is the set of one register where 31 is the zero register.
func general(n uint8) RegSet {
	if n == 31 {
		return 0
	}
	return 1 << n
}

func (in *ARM64Inst) dataImmediate(w a64Word) string {
	rd := w.rd()
	in.Writes = general(rd)
	setsFlags := false
	switch w.bits(25, 23) {
	case 0b010:
		setsFlags = w.bit(29) == 1
	case 0b011:
		// Only addg and subg; other encodings here are newer.
		if w.bit(31) != 1 || w.bit(29) != 0 || w.bit(22) != 0 {
			return "immediate"
		}
	case 0b100:
		setsFlags = w.bits(30, 29) == 3
	default:
		return ""
	}
	if setsFlags {
		in.Writes |= RegFlags
	} else {
		in.Writes = 1 << rd
	}
	return ""
}

func (in *ARM64Inst) dataRegister(w a64Word) string {
	rd := general(w.rd())
	in.Writes = rd
	switch w.bits(28, 24) {
	case 0b01010:
		if w.bits(30, 29) == 3 {
			in.Writes |= RegFlags
		}
	case 0b01011:
		if w.bit(29) == 1 {
			in.Writes |= RegFlags
		} else if w.bit(21) == 1 {
			in.Writes = 1 << w.rd()
		}
	case 0b11010:
		switch w.bits(23, 21) {
		case 0b000:
			switch {
			case w.bits(15, 10) == 0:
				if w.bit(29) == 1 {
					in.Writes |= RegFlags
				}
			case w.bits(14, 10) == 1, w.bits(13, 10) == 2:
				in.Writes = RegFlags // rmif, setf8, setf16
			default:
				return "register"
			}
		case 0b010:
			in.Writes = RegFlags
		case 0b100:
		case 0b110:
			switch {
			case w.bits(30, 29) == 1 && w.bits(15, 10) == 0:
				in.Writes |= RegFlags // subps
			case w.bits(30, 29) == 0 && w.bits(15, 10) == 4:
				in.Writes = 1 << w.rd() // irg
			}
		default:
			return "register"
		}
	case 0b11011:
	default:
		return "register"
	}
	return ""
}

func (in *ARM64Inst) dataVector(w a64Word) string {
	in.Writes = RegVector
	rd := general(w.rd())
	switch {
	case w.bits(30, 24) == 0b0011110: // scalar floating point
		if w.bit(21) == 0 { // to and from fixed point
			if w.bits(18, 16) < 2 {
				in.Writes = rd
			}
			return ""
		}
		switch {
		case w.bits(11, 10) == 0b01: // fccmp
			in.Writes = RegFlags
		case w.bits(13, 10) == 0b1000: // fcmp
			in.Writes = RegFlags
		case w.bits(15, 10) == 0:
			switch op := w.bits(18, 16); {
			case w.bits(20, 16) == 0b11110 && w.bits(23, 22) == 1: // fjcvtzs
				in.Writes = rd | RegFlags
			case op == 0b010, op == 0b011, op == 0b111:
			default:
				in.Writes = rd
			}
		}
	case w.bit(31) == 0 && w.bits(29, 21) == 0b001110000 && w.bit(15) == 0 && (w.bits(14, 10) == 0b01011 || w.bits(14, 10) == 0b01111):
		in.Writes = rd // smov, umov
	case w.bit(31) == 1 && w.bits(30, 24) != 0b0011110 && w.bits(30, 24) != 0b0011111 && w.bits(31, 24) != 0b11001110:
		return "vector"
	}
	return ""
}

func (in *ARM64Inst) branchSystem(w a64Word) string {
	const lr = 30
	switch {
	case w.bits(30, 26) == 0b00101:
		in.rel = w.signed(25, 0) * 4
		in.Branch = BranchJump
		if w.bit(31) == 1 {
			in.Branch, in.Writes = BranchCall, 1<<lr
		}
	case w.bits(30, 25) == 0b011010:
		in.rel = w.signed(23, 5) * 4
		in.Branch, in.reg, in.cond = BranchCond, w.rd(), condCBZ+uint8(w.bit(24))
		in.bit = uint8(w.bit(31)) // 64 bits wide
	case w.bits(30, 25) == 0b011011:
		in.rel = w.signed(18, 5) * 4
		in.Branch, in.reg, in.cond = BranchCond, w.rd(), condTBZ+uint8(w.bit(24))
		in.bit = uint8(w.bit(31)<<5 | w.bits(23, 19))
	case w.bits(31, 24) == 0b01010100:
		in.rel = w.signed(23, 5) * 4
		in.Branch, in.cond = BranchCond, uint8(w&15)
	case w.bits(31, 24) == 0b11010100:
		if w.bits(23, 21) == 0 && w.bits(4, 0) == 1 {
			in.Branch, in.Writes = BranchSyscall, 1 // svc: Linux returns in x0 and keeps the rest
		} else {
			in.Branch = BranchTrap
		}
	case w.bits(31, 22) == 0b1101010100:
		return in.system(w)
	case w.bits(31, 25) == 0b1101011:
		switch w.bits(24, 21) {
		case 0b0000, 0b1000:
			in.Branch = BranchIndirect
		case 0b0001, 0b1001:
			in.Branch, in.Writes = BranchCallInd, 1<<lr
		case 0b0010:
			in.Branch = BranchReturn
		case 0b0100, 0b0101:
			in.Branch = BranchTrap
		default:
			return "branch"
		}
	default:
		return "branch"
	}
	return ""
}

func (in *ARM64Inst) system(w a64Word) string {
	rt := general(w.rd())
	switch {
	case w.bits(31, 12) == 0xd5032 && rt == 0: // hints
		switch w.bits(11, 5) {
		case 7, 24, 25, 26, 27, 28, 29, 30, 31:
			in.Writes = 1 << 30 // xpaclri, paciaz, paciasp, autiaz, ...
		case 8, 10, 12, 14:
			in.Writes = 1 << 17 // pacia1716, autia1716, ...
		}
	case w.bits(31, 12) == 0xd5033 && rt == 0 || w.bits(31, 12) == 0xd5031: // barriers, wfet
	case w.bits(31, 19) == 0b1101010100000 && w.bits(15, 12) == 4 && rt == 0: // msr immediate
		if w.bits(18, 16) == 0 {
			in.Writes = RegFlags // cfinv, xaflag, axflag
		}
	case w.bits(21, 19) == 1: // sys: cache and TLB maintenance
		if w.bits(18, 8) == 0b011_0111_0100 {
			if w.bits(7, 5) != 1 {
				return "dc gva"
			}
			in.base, in.zero, in.store = w.rd(), true, true
		}
		if w.bits(15, 12) != 7 && w.bits(15, 12) != 8 {
			return "sys"
		}
	case w.bits(21, 19) == 5: // sysl
		in.Writes = rt
	case w.bits(21, 20) == 1: // msr
		if w.bits(20, 5) == 0xda10 { // NZCV
			in.Writes = RegFlags
		}
		if w.bits(20, 5) == 0xde82 { // TPIDR_EL0
			in.Writes = RegSegment
		}
	case w.bits(21, 20) == 3: // mrs
		in.Writes = rt
		if w.bits(19, 6) == 0b1_011_0010_0100_00 { // RNDR, RNDRRS
			in.Writes |= RegFlags
		}
	default:
		return "system"
	}
	return ""
}
