package a64

import "github.com/rdx-profiler/rdx/sampler/interp"

// System registers, by o0:op1:CRn:CRm:op2 of mrs and msr.
const (
	sysNZCV  = 0x5a10
	sysFPCR  = 0x5a20
	sysFPSR  = 0x5a21
	sysTPIDR = 0x5e82
	sysDCZID = 0x5807

	sysCNTVCT   = 0x5f02
	sysCNTVCTSS = 0x5f06 // the same, in order
)

func (in *inst) system(w word32) handler {
	switch {
	case w.bits(31, 12) == 0xd5032 && w.rd() == 31:
		return in.hint(w)
	case w.bits(31, 12) == 0xd5033 && w.rd() == 31: // barriers
		switch w.bits(7, 5) {
		case 2:
			return clearExclusive
		case 4, 5, 6: // dsb, dmb, isb
			return nop
		case 7: // sb
			if w.bits(11, 8) == 0 {
				return nop
			}
		}
	case w.bits(31, 19) == 0b1101010100000 && w.bits(15, 12) == 4 && w.rd() == 31:
		if w.bits(18, 16) == 0 && w.bits(11, 8) == 0 {
			switch w.bits(7, 5) {
			case 0:
				return invertCarry
			case 1:
				return flagsFromExternal
			case 2:
				return flagsToExternal
			}
		}
	case w.bits(31, 19) == 0b1101010100001: // sys
		in.rd = source(w.rd())
		switch w.bits(18, 5) {
		case 0b011_0111_0100_001: // dc zva
			return zeroBlock
		case 0b011_0111_1010_001, 0b011_0111_1011_001, 0b011_0111_1110_001, 0b011_0111_0101_001:
			return nop // dc cvac, cvau, civac, ic ivau
		}
	case w.bits(31, 20) == 0b110101010001:
		in.rd = source(w.rd())
		switch w.bits(19, 5) {
		case sysNZCV:
			return writeNZCV
		case sysFPCR:
			in.flags |= usesVector
			return writeFPCR
		case sysFPSR:
			in.flags |= usesVector
			return writeFPSR
		case sysTPIDR:
			return writeTPIDR
		}
	case w.bits(31, 20) == 0b110101010011:
		in.rd = target(w.rd())
		switch w.bits(19, 5) {
		case sysNZCV:
			return readNZCV
		case sysFPCR:
			in.flags |= usesVector
			return readFPCR
		case sysFPSR:
			in.flags |= usesVector
			return readFPSR
		case sysTPIDR:
			return readTPIDR
		case sysDCZID:
			return readDCZID
		case sysCNTVCT, sysCNTVCTSS:
			return readTime
		}
	}
	return nil
}

// hint decodes the instructions that are nop to CPUs that do not know them. Those
// that check a signature take it off.
func (in *inst) hint(w word32) handler {
	in.rd = regLink
	switch n := w.bits(11, 5); n {
	case 7, 29, 31, 28, 30: // xpaclri, autiasp, autibsp, autiaz, autibz
		return strip
	case 12, 14: // autia1716, autib1716
		in.rd = 17
		return strip
	}
	return nop
}

func clearExclusive(m *Machine, _ *inst) { m.exclusiveSize = 0 }

func invertCarry(m *Machine, _ *inst) { m.nzcv ^= bitC }

// flagsFromExternal is xaflag, flagsToExternal axflag: comparisons of floating
// point as other architectures have them in their flags.
func flagsFromExternal(m *Machine, _ *inst) {
	c, z := m.nzcv>>1&1, m.nzcv>>2&1
	m.nzcv = (1-c)&(1-z)<<3 | z&c<<2 | (c|z)<<1 | (1-c)&z
}

func flagsToExternal(m *Machine, _ *inst) {
	v, c, z := m.nzcv&1, m.nzcv>>1&1, m.nzcv>>2&1
	m.nzcv = (z|v)<<2 | c&(1-v)<<1
}

func readNZCV(m *Machine, in *inst)  { m.r[in.rd&63] = uint64(m.nzcv) << flagShift }
func writeNZCV(m *Machine, in *inst) { m.nzcv = uint8(m.r[in.rd&63] >> flagShift & 15) }

func readTPIDR(m *Machine, in *inst)  { m.r[in.rd&63] = m.tpidr }
func writeTPIDR(m *Machine, in *inst) { m.tpidr = m.r[in.rd&63] }

func readFPCR(m *Machine, in *inst) { m.r[in.rd&63] = uint64(m.vec.FPCR) }

// writeFPCR: what a CPU keeps of other values depends on its features.
func writeFPCR(m *Machine, in *inst) {
	v := m.r[in.rd&63]
	if v != uint64(m.vec.FPCR) && v != 0 {
		unsupported(m, in)
	}
	m.vec.FPCR = uint32(v)
	m.vecReady()
}

func readFPSR(m *Machine, in *inst) {
	if m.exLost {
		unsupported(m, in)
	}
	m.r[in.rd&63] = uint64(m.vec.FPSR)
}

func writeFPSR(m *Machine, in *inst) {
	const sticky = 0x0800009f
	v := m.r[in.rd&63]
	if v&^sticky != 0 {
		unsupported(m, in)
	}
	m.vec.FPSR = uint32(v)
	m.exLost = false
}

func readDCZID(m *Machine, in *inst) {
	if m.dczid == 0 {
		unsupported(m, in)
	}
	m.r[in.rd&63] = m.dczid
}

// readTime reads the clock: some 32 instructions a tick, which takes between 1 and 42 ns.
func readTime(m *Machine, in *inst) { m.r[in.rd&63] = m.time.Now((m.ran + m.done) / 32) }

// zeroBlock is dc zva.
func zeroBlock(m *Machine, in *inst) {
	const prohibited = 1 << 4
	size := uint64(4) << (m.dczid & 15)
	if m.dczid == 0 || m.dczid&prohibited != 0 || size > pageSize {
		panic(interp.Halt{Cause: interp.Unsupported})
	}
	addr := canonical(m.r[in.rd&63]) &^ (size - 1)
	m.log(addr, int(size), true)
	var zero [pageSize]byte
	m.mem.Write(addr, zero[:size])
}
