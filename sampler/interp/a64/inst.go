package a64

import "math/bits"

// inst.flags
const (
	usesVector = 1 << iota // needs Machine.vec
	usesFloat              // needs the default FPCR
	isLocked               // atomic read-modify-write
)

// inst is a decoded instruction.
type inst struct {
	fn   handler
	lane laneOp // vector: what each lane computes
	imm  uint64 // immediate, displacement, or the target of a direct jump
	mask uint64 // of the result: 32 or 64 bits

	rd, rn, rm, ra uint8 // indexes of Machine.r, or vector registers
	op             uint8 // which of the operations a handler does
	size           uint8 // log2 of the bytes of an access or lane
	count          uint8 // lanes, or registers of a structure
	shift, kind    uint8 // of the last operand
	mode           uint8 // addressing
	flags          uint8
	wide           bool // 64 bits
	q              bool // vector: 16 bytes, or the upper half
}

type handler func(*Machine, *inst)

// laneOp computes a lane of 1<<size bytes from the lanes of both operands, and of
// the result as it was.
type laneOp func(m *Machine, size uint8, d, a, b uint64) uint64

// word32 is an instruction as it lies in memory.
type word32 uint32

func (w word32) bits(high, low int) uint32 { return uint32(w) >> low & (1<<(high-low+1) - 1) }
func (w word32) bit(n int) uint32          { return uint32(w) >> n & 1 }
func (w word32) is(n int) bool             { return w>>n&1 == 1 }

// signed is a bit field as a signed number.
func (w word32) signed(high, low int) int64 { return int64(int32(w)<<(31-high)) >> (31 - high + low) }

func (w word32) rd() uint8 { return uint8(w & 31) }
func (w word32) rn() uint8 { return uint8(w >> 5 & 31) }
func (w word32) ra() uint8 { return uint8(w >> 10 & 31) }
func (w word32) rm() uint8 { return uint8(w >> 16 & 31) }

// decode decodes the instruction w at pc. What it does not know becomes one that
// ends the burst.
func decode(in *inst, pc uint64, w word32) {
	in.wide = w.is(31)
	in.mask = 1<<32 - 1
	if in.wide {
		in.mask = ^uint64(0)
	}
	var fn handler
	switch op := w.bits(28, 25); {
	case op&0b1110 == 0b1000:
		fn = in.dataImmediate(pc, w)
	case op&0b1110 == 0b1010:
		fn = in.branchSystem(pc, w)
	case op&0b0101 == 0b0100:
		fn = in.loadStore(pc, w)
	case op&0b0111 == 0b0101:
		fn = in.dataRegister(w)
	case op&0b0111 == 0b0111:
		in.flags |= usesVector
		in.rd, in.rn, in.rm, in.ra = w.rd(), w.rn(), w.rm(), w.ra()
		fn = in.vector(w)
	case w>>16 == 0:
		fn = fault // udf
	}
	if fn == nil {
		*in = inst{fn: unsupported}
		return
	}
	in.fn = fn
}

// bitmask is DecodeBitMasks of the architecture manual: a run of ones, rotated,
// repeated over elements of 2 to 64 bits.
func bitmask(n, immr, imms uint32) (mask uint64, ok bool) {
	length := bits.Len32(n<<6|^imms&0x3f) - 1
	if length < 1 {
		return 0, false
	}
	size := uint32(1) << length
	ones, rotate := imms&(size-1)+1, immr&(size-1)
	if ones == size {
		return 0, false
	}
	element := uint64(1)<<ones - 1
	element = (element>>rotate | element<<(size-rotate)) & (^uint64(0) >> (64 - size))
	for ; size < 64; size *= 2 {
		element |= element << size
	}
	return element, true
}
