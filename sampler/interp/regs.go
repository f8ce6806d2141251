package interp

// General registers in the order of their encoding.
const (
	RAX = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R11 = 11
)

// Bits of Regs.Flags, the user-visible ones of RFLAGS.
const (
	FlagCF = 1 << 0
	FlagPF = 1 << 2
	FlagAF = 1 << 4
	FlagZF = 1 << 6
	FlagSF = 1 << 7
	FlagDF = 1 << 10
	FlagOF = 1 << 11

	arithFlags = FlagCF | FlagPF | FlagAF | FlagZF | FlagSF | FlagOF
)

// Vec is one vector register, 64 bytes, little-endian.
type Vec [8]uint64

// Vector is the state of the vector unit.
type Vector struct {
	Z     [32]Vec   // zmm0-31; xmm and ymm are their low ends
	K     [8]uint64 // opmask registers
	MXCSR uint32
	FCW   uint16 // x87 control word
	X87   X87
}

// Regs is what a thread's registers hold at the instruction about to run.
type Regs struct {
	GPR            [16]uint64 // rax rcx rdx rbx rsp rbp rsi rdi r8-r15
	RIP            uint64
	Flags          uint64 // RFLAGS
	FSBase, GSBase uint64

	// Vector is read only after LoadVector has filled it; a nil LoadVector
	// says that it is filled already. Fetching the vector state of a traced
	// thread costs time that most short bursts need not spend.
	Vector     Vector
	LoadVector func(*Vector) error
}

// amd says that where makers' processors differ instructions do as AMD's do, and not as Intel's. The interpreted process runs on this machine's
// processor, which is asked.
var amd bool

// transactions says that the processor has transactional memory (RTM).
var transactions bool

// xtest says that no transaction is open: no thread can be held in one, and none is begun by the interpreter.
func xtest(m *Machine, _ *inst) { m.flags = m.flags&^arithFlags | FlagZF }

// misalignment says that MXCSR has misalignedSSE.
var misalignment bool
