package pipeline

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// form is how an instruction goes about its operands.
type form struct {
	latency, busy uint8
	stalls        uint8 // cycles in which nothing behind it enters
	keeps         bool  // it reads what it writes first
	noResult      bool  // its first operand is only read
	setsFlags     bool
	readsFlags    bool
	clears        bool // to zero, where its sources are one register
	x87           bool
	reads, writes registers // that are not among the operands
}

const (
	rax registers = 1 << iota
	rcx
	rdx
	_
	_
	_
	rsi
	rdi
)

// Latencies in cycles, of cores since about 2017: Fog, Instruction tables; uops.info. They differ by a cycle or two between makers.
const (
	move      = 0 // registers are renamed
	simple    = 1
	multiply  = 3
	floating  = 4
	across    = 3 // between general and vector registers, or the halves of a vector
	divide    = 14
	divideFP  = 13
	root      = 18
	locked    = 18
	fence     = 30
	pause     = 80 // 40 to 140
	readClock = 30 // 25 to 60
	slowX87   = 60
	stringCmp = 10
)

// suffixes of floating-point instructions.
var suffixes = []string{"PS", "PD", "SS", "SD", "PH", "SH"}

func isFloating(name string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

func hasAny(name string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(name, p) {
			return true
		}
	}
	return false
}

func begins(name string, parts ...string) bool {
	for _, p := range parts {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func isOneOf(name string, names ...string) bool {
	for _, n := range names {
		if name == n {
			return true
		}
	}
	return false
}

// formOf goes by an instruction's name.
func formOf(op x86asm.Op) form {
	name := op.String()
	if begins(name, "F") && name != "FENCE" {
		return x87Form(name)
	}
	f := form{latency: simple, keeps: true}
	bare := name // without the V of a form with a result of its own
	if begins(name, "V") && !begins(name, "VER") {
		bare, f.keeps = name[1:], begins(name, "VFM", "VFNM", "VPDP", "VPERMI2", "VPERMT2", "VPTERNLOG", "VPMADD52")
		bare = strings.TrimSuffix(bare, "_XMM")
	}
	f.timing(bare)
	f.operands(bare)
	f.flagsOf(bare)
	f.implicit(name)
	return f
}

// timing is how long it takes.
func (f *form) timing(name string) {
	fp := isFloating(name)
	switch {
	case isOneOf(name, "DIV", "IDIV"):
		f.latency, f.busy = divide, 6
	case begins(name, "DIV"):
		f.latency, f.busy = divideFP, 5
	case begins(name, "SQRT"):
		f.latency, f.busy = root, 7
	case begins(name, "FM", "FNM"):
		f.latency = floating
	case fp && begins(name, "ADD", "SUB", "MUL"), begins(name, "CVT"):
		f.latency = floating
	case fp && begins(name, "DP", "HADD", "HSUB", "ROUND", "RNDSCALE", "RCP", "RSQRT"):
		f.latency = 6
	case fp && begins(name, "MIN", "MAX", "CMP"):
		f.latency = 2
	case begins(name, "PMULLD"):
		f.latency = 5
	case begins(name, "IMUL", "MUL", "PMUL", "PMADD", "PSADBW", "PCLMUL", "CRC32", "PDEP", "PEXT_", "MPSADBW"):
		f.latency = multiply
	case begins(name, "AES", "SHA1", "SHA256"):
		f.latency = floating
	case begins(name, "PCMPE", "PCMPI") && strings.Contains(name, "STR"):
		f.latency = stringCmp
	case begins(name, "PMOVMSKB", "MOVMSK", "PEXTR", "PINSR", "PTEST", "TESTP", "UCOMIS", "COMIS", "MOVD", "EXTRACTPS"):
		f.latency = across
	case begins(name, "PERM", "INSERTF", "INSERTI", "EXTRACTF", "EXTRACTI", "BROADCAST", "PBROADCAST", "PGATHER", "GATHER"):
		f.latency = across
	case isOneOf(name, "LZCNT", "TZCNT", "POPCNT", "BSF", "BSR", "XCHG", "SHLD", "SHRD", "MULX"):
		f.latency = 2
	case isOneOf(name, "CMPXCHG", "CMPXCHG8B", "CMPXCHG16B", "XADD"):
		f.latency = 5
	case hasAny(name, "FENCE"), isOneOf(name, "LDMXCSR", "STMXCSR"):
		f.latency = fence
	case isOneOf(name, "PAUSE"):
		f.stalls = pause
	case isOneOf(name, "RDTSC", "RDTSCP"):
		f.stalls = readClock
	case begins(name, "MOV") || isOneOf(name, "LEA", "POP", "PUSH", "LDDQU"):
		f.latency = move
	}
	if isOneOf(name, "LEA") || begins(name, "MOVZX", "MOVSX", "MOVHP", "MOVLP", "MOVHL", "MOVLH", "MOVSHDUP", "MOVSLDUP", "MOVDDUP") {
		f.latency = simple
	}
}

// operands is which of them it reads and writes.
func (f *form) operands(name string) {
	f.noResult = isOneOf(name, "CMP", "TEST", "PUSH", "CALL", "RET", "NOP", "BT", "JMP", "MUL", "DIV", "IDIV", "LDMXCSR") ||
		begins(name, "J", "UCOMIS", "COMIS", "PTEST", "TESTP", "PREFETCH", "KORTEST", "KTEST", "CLFLUSH", "PCMPESTR", "PCMPISTR")
	if begins(name, "MOV", "CVT", "SET", "PMOV", "BLS", "PABS", "SQRT", "RCP", "RSQRT", "PEXTR", "KMOV", "EXTRACT") ||
		isOneOf(name, "LEA", "POP", "BSF", "BSR", "LZCNT", "TZCNT", "POPCNT", "PSHUFD", "PSHUFHW", "PSHUFLW", "LDDQU", "RORX", "ANDN",
			"BEXTR", "BZHI", "PDEP", "PEXT", "SHLX", "SHRX", "SARX", "MULX") {
		f.keeps = begins(name, "MOVHP", "MOVLP", "MOVHL", "MOVLH")
	}
	f.clears = isOneOf(name, "XOR", "SUB") || begins(name, "PXOR", "XORP", "PSUB", "PCMPEQ", "PCMPGT")
}

// flagsOf is whether it reads or sets them.
func (f *form) flagsOf(name string) {
	f.setsFlags = isOneOf(name, "ADD", "ADC", "SUB", "SBB", "AND", "OR", "XOR", "NEG", "INC", "DEC", "CMP", "TEST", "SHL", "SHR", "SAR", "ROL", "ROR",
		"RCL", "RCR", "SHLD", "SHRD", "IMUL", "MUL", "DIV", "IDIV", "BT", "BTC", "BTR", "BTS", "BSF", "BSR", "LZCNT", "TZCNT", "POPCNT", "CMPXCHG", "XADD",
		"ANDN", "BEXTR", "BZHI", "SAHF") ||
		begins(name, "UCOMIS", "COMIS", "PTEST", "TESTP", "BLS", "KORTEST", "KTEST", "PCMPESTR", "PCMPISTR", "CMPS", "SCAS") && name != "CMPSS" && name != "CMPSD_XMM"
	f.readsFlags = isOneOf(name, "ADC", "SBB", "RCL", "RCR", "LAHF") || begins(name, "CMOV", "SET") ||
		begins(name, "J") && !isOneOf(name, "JMP", "JCXZ", "JECXZ", "JRCXZ")
}

// implicit is what it reads and writes that is not among its operands.
func (f *form) implicit(name string) {
	switch {
	case name == "MUL":
		f.reads, f.writes = rax, rax|rdx
	case isOneOf(name, "DIV", "IDIV"):
		f.reads, f.writes = rax|rdx, rax|rdx
	case isOneOf(name, "CWD", "CDQ", "CQO"):
		f.reads, f.writes = rax, rdx
	case isOneOf(name, "CBW", "CWDE", "CDQE"):
		f.reads, f.writes = rax, rax
	case begins(name, "CMPXCHG"):
		f.reads, f.writes = rax, rax
	case isOneOf(name, "MOVSB", "MOVSW", "MOVSD", "MOVSQ", "CMPSB", "CMPSW", "CMPSD", "CMPSQ"):
		f.reads, f.writes = rsi|rdi|rcx, rsi|rdi|rcx
	case isOneOf(name, "STOSB", "STOSW", "STOSD", "STOSQ", "SCASB", "SCASW", "SCASD", "SCASQ"):
		f.reads, f.writes = rdi|rcx|rax, rdi|rcx
	case begins(name, "LODS"):
		f.reads, f.writes = rsi|rcx, rsi|rcx|rax
	case begins(name, "PCMPESTRI", "PCMPISTRI"):
		f.writes = rcx
	case isOneOf(name, "JCXZ", "JECXZ", "JRCXZ"):
		f.reads = rcx
	}
}

// x87Form is of those that work on the stack of the x87, which is taken as one register.
func x87Form(name string) form {
	f := form{latency: simple, x87: true, noResult: true}
	switch {
	case begins(name, "FADD", "FSUB", "FMUL", "FIADD", "FISUB", "FIMUL"):
		f.latency = floating
	case begins(name, "FDIV", "FIDIV"):
		f.latency, f.busy = divideFP, 5
	case begins(name, "FSQRT"):
		f.latency, f.busy = root, 7
	case isOneOf(name, "FSIN", "FCOS", "FPTAN", "FPATAN", "FYL2X", "FYL2XP1", "F2XM1", "FPREM", "FPREM1", "FSCALE", "FRNDINT", "FXTRACT"):
		f.latency, f.busy = slowX87, 20
	}
	f.setsFlags = begins(name, "FCOMI", "FUCOMI")
	f.readsFlags = begins(name, "FCMOV")
	return f
}
