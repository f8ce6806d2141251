package operand

// x86-64 general registers, by encoding.
const (
	rax = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
)

const (
	noReg   = 0xff
	ripBase = 0x10
	// maxX86Len is the architecture's limit; longer encodings fault.
	maxX86Len = 15
)

// X86Inst is a decoded instruction of 64-bit mode. It is a plain value,
// independent of register contents, and can be cached by its code bytes.
type X86Inst struct {
	Len      uint8  // bytes
	Branch   Branch // how it can leave straight-line flow
	Rep      bool   // a string instruction with a REP prefix: Len bytes are run once per element
	Writes   RegSet // registers it may write
	AddrRegs RegSet // registers its addresses (and active lanes) depend on

	shape       x86Shape
	load, store bool
	base, index uint8 // register number, ripBase or noReg; index is a vector register for gathers
	scale       uint8 // shift
	seg         uint8 // 0 none, 1 fs, 2 gs
	addr32      bool
	stack       uint8 // bytes pushed or popped
	size        uint16
	cond        uint8 // condition code, or condLoop...
	bitReg      uint8 // bt: the bit index; movdir64b: the destination address
	opMask      uint8 // EVEX mask register, 0 none
	vecMask     uint8 // VEX mask vector, noReg
	elem        uint8 // bytes of a lane under mask
	lanes       uint8 // number of lanes under mask
	nf          bool  // EVEX mask does not suppress the access
	part        bool  // the CPU may touch only part of the operand
	indexQ      bool
	disp        int64
	rel         int64
}

// Conditions of loop and jrcxz follow the sixteen of jcc.
const (
	condLoopNE = 16 + iota
	condLoopE
	condLoop
	condRCXZ
)

// Touches reports whether the instruction can access memory at all.
func (in *X86Inst) Touches() bool { return in.load || in.store }

// Loads and Stores report the directions of the accesses, whatever the registers.
func (in *X86Inst) Loads() bool { return in.load }

// Stores reports whether some access is a store.
func (in *X86Inst) Stores() bool { return in.store }

// Target is the address a direct branch at ip goes to when taken.
func (in *X86Inst) Target(ip uint64) uint64 { return ip + uint64(in.Len) + uint64(in.rel) }

// DecodeX86 decodes the first instruction of code, as 64-bit mode would.
// It does not check every reserved field: some encodings that the CPU refuses
// (#UD, so without any access) decode, such as VEX.vvvv set where it is unused.
// Fifteen bytes are always enough. The error is ErrTruncated or an
// *UnsupportedError.
func DecodeX86(code []byte) (X86Inst, error) {
	var in X86Inst
	d := x86Decoder{code: code[:min(len(code), maxX86Len)]}
	err := d.decode(&in)
	if d.truncated {
		if len(code) >= maxX86Len {
			return X86Inst{}, &UnsupportedError{"overlong", "more than 15 bytes"}
		}
		return X86Inst{}, ErrTruncated
	}
	if err != nil {
		return X86Inst{}, err
	}
	in.Len = uint8(d.pos)
	return in, nil
}
