package operand

import (
	"fmt"
	"strconv"
	"strings"
)

// x86Shape is how an instruction's accesses follow from its operands, where
// that is not simply "the ModRM operand".
type x86Shape uint8

const (
	shapeModRM x86Shape = iota
	shapePush
	shapePop
	shapePushMem
	shapePopMem
	shapeCall
	shapeCallMem
	shapeReturn
	shapeEnter
	shapeLeave
	shapeMoffs
	shapeMovs
	shapeCmps
	shapeStos
	shapeLods
	shapeScas
	shapeXlat
	shapeBit     // bit string: the address depends on the bit index register
	shapeMaskMov // maskmovq, maskmovdqu
	shapeVMask   // AVX masked move, mask in a vector register
	shapeSplat   // one memory tuple serves all lanes
	shapePack    // expand, compress: active lanes are contiguous in memory
	shapeGather  // gather or scatter
	shapeMovDir64
)

// x86Shapes and x86Branches give the table's =names their meaning; memory
// sizes of shapes without a ModRM operand are part of the name.
var x86Shapes = map[string]struct {
	shape  x86Shape
	branch Branch
	size   string
	load   bool
	store  bool
}{
	"push":       {shape: shapePush, size: "q", store: true},
	"pop":        {shape: shapePop, size: "q", load: true},
	"pushm":      {shape: shapePushMem},
	"popm":       {shape: shapePopMem},
	"call":       {shape: shapeCall, branch: BranchCall, size: "8", store: true},
	"callm":      {shape: shapeCallMem, branch: BranchCallInd},
	"return":     {shape: shapeReturn, branch: BranchReturn, size: "8", load: true},
	"enter":      {shape: shapeEnter, size: "q", store: true},
	"leave":      {shape: shapeLeave, size: "q", load: true},
	"moffsload":  {shape: shapeMoffs, size: "1", load: true},
	"moffsloadv": {shape: shapeMoffs, size: "v", load: true},
	"moffsstore": {shape: shapeMoffs, size: "1", store: true}, "moffsstorev": {shape: shapeMoffs, size: "v", store: true},
	"movsb": {shape: shapeMovs, size: "1", load: true, store: true}, "movsv": {shape: shapeMovs, size: "v", load: true, store: true},
	"cmpsb": {shape: shapeCmps, size: "1", load: true}, "cmpsv": {shape: shapeCmps, size: "v", load: true},
	"stosb": {shape: shapeStos, size: "1", store: true}, "stosv": {shape: shapeStos, size: "v", store: true},
	"lodsb": {shape: shapeLods, size: "1", load: true}, "lodsv": {shape: shapeLods, size: "v", load: true},
	"scasb": {shape: shapeScas, size: "1", load: true}, "scasv": {shape: shapeScas, size: "v", load: true},
	"xlat":       {shape: shapeXlat, size: "1", load: true},
	"bit":        {shape: shapeBit},
	"maskmovq":   {shape: shapeMaskMov, size: "8", store: true},
	"maskmovdqu": {shape: shapeMaskMov, size: "16", store: true},
	"vmask4":     {shape: shapeVMask},
	"vmask8":     {shape: shapeVMask},
	"splat":      {shape: shapeSplat},
	"pack":       {shape: shapePack},
	"gatherd":    {shape: shapeGather},
	"gatherq":    {shape: shapeGather},
	"movdir64b":  {shape: shapeMovDir64},
	"jump":       {branch: BranchJump},
	"cond":       {branch: BranchCond},
	"indirect":   {branch: BranchIndirect},
	"syscall":    {branch: BranchSyscall},
	"trap":       {branch: BranchTrap},
}

// Encoding kinds, mandatory prefixes and ModRM forms are small bit sets, so that
// one row can stand for several.
const (
	encLegacy = 1 << iota
	encVEX
	encEVEX
)
const (
	prefixNone = 1 << iota
	prefix66
	prefixF3
	prefixF2
)
const (
	modMem = 1 << iota
	modReg
)

// sizeKind is a memory size that depends on prefixes; below sizeV it is bytes.
type sizeKind uint16

const (
	sizeV sizeKind = 1024 + iota
	sizeQ
	sizeY
	sizeX
	sizeX2
	sizeX4
	sizeX8
	sizeDup
	sizeEnv
	sizeSav
	sizeCX
)

var sizeNames = map[string]sizeKind{"v": sizeV, "q": sizeQ, "y": sizeY, "x": sizeX, "x/2": sizeX2, "x/4": sizeX4,
	"x/8": sizeX8, "dup": sizeDup, "env": sizeEnv, "sav": sizeSav, "cx": sizeCX}

type immKind uint8

const (
	immNone immKind = iota
	imm8
	imm16
	imm16and8
	immZ
	immV
	imm32
	immMoffs
	immRel8
	immRelZ
)

const elemByW = 255

// x86Form is one parsed table row.
type x86Form struct {
	enc, prefix   uint8
	regs, rms     uint8 // allowed ModRM.reg and, in register forms, ModRM.rm
	w, l          uint8 // allowed W and vector length, bit sets
	evexW         uint8 // allowed W under EVEX
	mod           uint8
	modrm         bool
	address       bool // the memory form has an effective address
	load, store   bool
	bcast, nf     bool
	part          bool
	elem          uint8 // bytes, elemByW, or 0
	size          sizeKind
	imm           immKind
	shape         x86Shape
	branch        Branch
	fixed         RegSet // registers written whatever the operands
	rg, rb, rv    bool   // ModRM.reg, ModRM.rm, VEX.vvvv are written
	ro            bool   // the register in the opcode is written
	byteReg       bool   // reg / opcode register is a byte register
	byteRM        bool
	vectorDefault bool // writes a vector unless it stores
	indexQ        bool // gather with 8-byte indices
}

// x86Maps holds the forms of every opcode by opcode map (0 is the one-byte
// map, 1 is 0f, 2 is 0f 38, 3 is 0f 3a, 5 and 6 exist under EVEX only).
var x86Maps = [7][256][]x86Form{
	0: parseX86Map(x86Map1, true),
	1: parseX86Map(x86Map0F, false),
	2: parseX86Map(x86Map38, false),
	3: parseX86Map(x86Map3A, false),
	5: parseX86Map(x86Map5, false),
	6: parseX86Map(x86Map6, false),
}

// parseX86Map panics on a malformed row: the tables are constants, and every
// program or test that links the package parses them.
func parseX86Map(text string, oneByte bool) (m [256][]x86Form) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		f := parseX86Form(fields[1:], line)
		for op := range numberSet(fields[0], 16) {
			g := f
			switch {
			case g.branch != BranchCond && g.branch != BranchJump && g.branch != BranchCall:
			case op == 0xe8 || op == 0xe9 || !oneByte:
				g.imm = immRelZ
			default:
				g.imm = immRel8
			}
			m[op] = append(m[op], g)
		}
	}
	return m
}

func parseX86Form(tokens []string, line string) x86Form {
	f := x86Form{regs: 0xff, rms: 0xff, mod: modReg, modrm: true}
	writes := false
	for _, t := range tokens {
		switch kind, arg, _ := strings.Cut(t, ":"); {
		case kind == "r" || kind == "w" || kind == "rw":
			f.size, f.address = parseSize(arg), true
			f.load, f.store = kind != "w", kind != "r"
			f.mod |= modMem
		case t == "m":
			f.address = true
			f.mod |= modMem
		case t == "mem":
			f.mod = modMem
		case t == "reg":
			f.mod = modReg
		case t == "nm":
			f.modrm = false
		case t == "nf":
			f.nf = true
		case t == "part":
			f.part = true
		case t == "np":
			f.prefix |= prefixNone
		case t == "66":
			f.prefix |= prefix66
		case t == "f3":
			f.prefix |= prefixF3
		case t == "f2":
			f.prefix |= prefixF2
		case t == "W0" || t == "W1":
			f.w |= 1 << (t[1] - '0')
		case t == "L0" || t == "L1" || t == "L2":
			f.l |= 1 << (t[1] - '0')
		case strings.Trim(t, "SVE") == "":
			for _, c := range t {
				f.enc |= map[rune]uint8{'S': encLegacy, 'V': encVEX, 'E': encEVEX}[c]
			}
		case t[0] == '/':
			f.regs = bitSet(t[1:])
		case strings.HasPrefix(t, "rm="):
			f.rms = bitSet(t[3:])
		case t[0] == 'e' || t[0] == 'b':
			f.bcast = t[0] == 'b'
			f.elem = elemByW
			if t[1] != 'w' {
				f.elem = t[1] - '0'
			}
		case t[0] == 'i':
			if imm := map[string]immKind{"ib": imm8, "iw": imm16, "iz": immZ, "iv": immV, "id": imm32}[t]; f.imm == imm16 {
				f.imm = imm16and8
			} else {
				f.imm = imm
			}
		case t[0] == '>':
			writes = true
			f.parseWrites(t[1:], line)
		case t[0] == '=':
			f.parseShape(t[1:], line)
		default:
			panic(fmt.Sprintf("operand: token %q in table row %q", t, line))
		}
	}
	f.vectorDefault = f.enc != 0 && !writes
	if f.enc == 0 {
		f.enc = encLegacy
	}
	if f.prefix == 0 {
		f.prefix = prefixNone | prefix66 | prefixF3 | prefixF2
	}
	f.evexW = f.w
	if f.w == 0 {
		f.w, f.evexW = 3, 3
		switch f.elem {
		case 4:
			f.evexW = 1
		case 8:
			f.evexW = 2
		}
	}
	if f.l == 0 {
		f.l = 7
	}
	return f
}

func (f *x86Form) parseWrites(letters, line string) {
	for _, c := range letters {
		switch c {
		case 'g', 'G':
			f.rg, f.byteReg = true, c == 'G'
		case 'b', 'B':
			f.rb, f.byteRM = true, c == 'B'
		case 'o', 'O':
			f.ro, f.byteReg = true, c == 'O'
		case 'v':
			f.rv = true
		default:
			i := strings.IndexRune("acdnspSD   1", c)
			switch {
			case i >= 0:
				f.fixed |= 1 << i
			case c == 'f':
				f.fixed |= RegFlags
			case c == 'X':
				f.fixed |= RegVector
			case c == 'K':
				f.fixed |= RegMask
			case c == 'F':
				f.fixed |= RegSegment
			default:
				panic(fmt.Sprintf("operand: letter %q in table row %q", c, line))
			}
		}
	}
}

func (f *x86Form) parseShape(name, line string) {
	s, ok := x86Shapes[name]
	if !ok {
		panic(fmt.Sprintf("operand: shape %q in table row %q", name, line))
	}
	f.shape, f.branch = s.shape, s.branch
	if s.size != "" {
		f.size, f.load, f.store = parseSize(s.size), s.load, s.store
	}
	switch name {
	case "vmask4":
		f.elem = 4
	case "vmask8":
		f.elem = 8
	case "gatherq":
		f.indexQ = true
	case "moffsload", "moffsloadv", "moffsstore", "moffsstorev":
		f.imm = immMoffs
	}
}

func parseSize(s string) sizeKind {
	if k, ok := sizeNames[s]; ok {
		return k
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(fmt.Sprintf("operand: size %q in an opcode table", s))
	}
	return sizeKind(n)
}

// numberSet yields the numbers of a list such as "58,5c-5f".
func numberSet(s string, base int) map[int]bool {
	set := map[int]bool{}
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		a, errA := strconv.ParseUint(low, base, 8)
		b, errB := strconv.ParseUint(high, base, 8)
		if errA != nil || errB != nil {
			panic(fmt.Sprintf("operand: numbers %q in an opcode table", s))
		}
		for n := a; n <= b; n++ {
			set[int(n)] = true
		}
	}
	return set
}

func bitSet(s string) (set uint8) {
	for n := range numberSet(s, 10) {
		set |= 1 << n
	}
	return set
}
