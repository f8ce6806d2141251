// Needs: objdump, and for directions and registers llvm-config with g++; the binaries are those of an ordinary Debian, missing ones are skipped and named.

package operand

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// x86Binaries are glob patterns; every match of the host's architecture is used.
var x86Binaries = []string{
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib/x86_64-linux-gnu/libm.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libssl.so.3",
	"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
	"/usr/lib/x86_64-linux-gnu/liblzma.so.5",
	"/usr/lib/x86_64-linux-gnu/libx265.so.*",
	"/usr/lib/x86_64-linux-gnu/libdav1d.so.?",
	"/usr/lib/x86_64-linux-gnu/libavcodec.so.[0-9][0-9]",
	"/usr/bin/python3.*[0-9]",
	"/usr/lib/gcc/x86_64-linux-gnu/*/cc1",
}

// x86BinaryPatterns adds those of $RDX_X86_BINARIES, colon-separated.
func x86BinaryPatterns() []string {
	return slices.Concat(x86Binaries, filepath.SplitList(os.Getenv("RDX_X86_BINARIES")))
}

func TestX86AgainstDisassemblers(t *testing.T) {
	const seed = 20
	t.Logf("seed %d", seed)
	exe := buildLLVMOracle(t)
	for _, pattern := range x86BinaryPatterns() {
		paths, _ := filepath.Glob(pattern)
		if len(paths) == 0 {
			t.Logf("SKIPPED: no %s on this machine", pattern)
		}
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				diff := newX86Diff(seed)
				for _, window := range windows(t, path) {
					objdump(t, diff.line, "objdump", append(window, "-d", "-w", "-M", "intel", "--insn-width=15", path)...)
				}
				diff.directions(t, exe)
				diff.finish(t)
			})
		}
	}
}

// x86Diff compares distinct instructions with objdump's text, then with LLVM.
type x86Diff struct {
	rng      *rand.Rand
	seen     map[string]bool
	total    int // instructions, repeated ones included
	declined tally
	excepted tally // by LLVM's known gaps
	bad      *mismatches
	codes    [][]byte
	texts    []string
	insts    []X86Inst
	compared int
	accesses int
}

func newX86Diff(seed uint64) *x86Diff {
	return &x86Diff{rng: rand.New(rand.NewPCG(seed, 0)), seen: map[string]bool{}, declined: tally{}, excepted: tally{}, bad: newMismatches()}
}

func (d *x86Diff) line(l disasmLine) {
	m := mnemonic(l.text)
	if m == "" || strings.Contains(l.text, "(bad)") || m == ".byte" || strings.HasPrefix(m, "rex") || x86Prefixes[m] {
		return // prefixes at the end of a piece, or data in the text section, which objdump does not take for code either
	}
	if l.code[0] == 0x9b && len(l.code) > 1 { // two instructions that objdump prints as one: fstcw is fwait; fnstcw
		l.code = l.code[1:]
		l.addr++
		l.text = strings.Replace(l.text, "f", "fn", 1)
	}
	d.total++
	in, err := DecodeX86(l.code)
	if errors.Is(err, ErrUnsupported) {
		d.declined[m]++
		return
	}
	if d.seen[string(l.code)] {
		return
	}
	d.seen[string(l.code)] = true
	if err != nil {
		d.bad.add("error: "+m, "%x %s: %v", l.code, l.text, err)
		return
	}
	d.compared++
	d.codes = append(d.codes, l.code)
	d.texts = append(d.texts, l.text)
	d.insts = append(d.insts, in)
	if int(in.Len) != len(l.code) {
		d.bad.add("length: "+m, "%x %s: length %d", l.code, l.text, in.Len)
		return
	}
	regs := randomX86Regs(d.rng, l.addr)
	if strings.Contains(m, "maskmov") { // all lanes active
		for i := range regs.Vec.Z {
			regs.Vec.Z[i] = [64]byte(bytes.Repeat([]byte{0xff}, 64))
		}
	}
	want, err := expectX86(l, regs)
	if errors.Is(err, errSpecial) {
		return
	}
	if err != nil {
		d.bad.add("oracle: "+m, "%x %s: %v", l.code, l.text, err)
		return
	}
	got, err := in.Accesses(regs, nil)
	if err != nil {
		d.bad.add("accesses: "+m, "%x %s: %v", l.code, l.text, err)
		return
	}
	d.accesses += len(got)
	if s := want.check(got); s != "" {
		d.bad.add("access: "+m, "%x %s: %s", l.code, l.text, s)
	}
	// Registers outside AddrRegs must not matter, those inside must.
	other := *regs
	for i := range other.GPR {
		if in.AddrRegs>>i&1 == 0 {
			other.GPR[i] = d.rng.Uint64()
		}
	}
	if again, err := in.Accesses(&other, nil); err != nil || !slices.Equal(again, got) {
		d.bad.add("address registers: "+m, "%x %s: %x do not suffice: %+v, %+v", l.code, l.text, uint64(in.AddrRegs), got, again)
	}
	if target := branchTarget(l.text); target != 0 && in.Branch != BranchNone && in.Branch != BranchTrap && in.Target(l.addr) != target {
		d.bad.add("target: "+m, "%x %s: %x", l.code, l.text, in.Target(l.addr))
	}
}

func (d *x86Diff) finish(t *testing.T) {
	t.Helper()
	d.bad.report(t)
	t.Logf("%d instructions, %d distinct compared, %d accesses, declined %d (%.4f%%):%v",
		d.total, d.compared, d.accesses, d.declined.total(), 100*float64(d.declined.total())/float64(max(d.total, 1)), d.declined)
}

func randomX86Regs(rng *rand.Rand, ip uint64) *X86Regs {
	r := &X86Regs{RIP: ip, FSBase: rng.Uint64() >> 17, GSBase: rng.Uint64() >> 17, Vec: &X86Vectors{}}
	for i := range r.GPR {
		r.GPR[i] = rng.Uint64()
	}
	for i := range r.Vec.Z {
		for j := range r.Vec.Z[i] {
			r.Vec.Z[i][j] = byte(rng.Uint32())
		}
	}
	for i := range r.Vec.K {
		r.Vec.K[i] = ^uint64(0)
	}
	return r
}

var x86Prefixes = map[string]bool{"rep": true, "repz": true, "repnz": true, "lock": true, "bnd": true, "notrack": true, "data16": true,
	"cs": true, "ds": true, "es": true, "ss": true, "fs": true, "gs": true, "addr32": true, "xacquire": true, "xrelease": true, "{vex}": true, "{evex}": true, "repne": true, "repe": true}

// splitText separates prefixes, mnemonic and operands of an objdump line.
func splitText(text string) (prefixes []string, name, operands string) {
	text, _, _ = strings.Cut(text, " #")
	for {
		word, rest, _ := strings.Cut(text, " ")
		if !x86Prefixes[word] && !strings.HasPrefix(word, "rex") {
			return prefixes, word, strings.TrimSpace(rest)
		}
		if rest == "" {
			return prefixes, word, ""
		}
		prefixes = append(prefixes, word)
		text = strings.TrimSpace(rest)
	}
}

func mnemonic(text string) string {
	_, name, _ := splitText(text)
	return name
}

var branchTargetRE = regexp.MustCompile(`^(?:bnd |notrack |data16 |rex\S* |cs |ds )*(?:j\w+|call|loop\w*|xbegin)(?:,p[nt])?\s+(?:0x)?([0-9a-f]+)(?: <|$)`)

func branchTarget(text string) uint64 {
	m := branchTargetRE.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseUint(m[1], 16, 64)
	return n
}

// expected is what an objdump line says about accesses: addresses and sizes,
// not directions, in any order.
type expected struct{ spans []Access }

func (e expected) check(got []Access) string {
	// Two accesses at one place are one memory operand in the text.
	var merged []Access
	for _, g := range got {
		g.Store, g.Elements = false, 0
		dup := false
		for _, m := range merged {
			dup = dup || m == g
		}
		if !dup {
			merged = append(merged, g)
		}
	}
	fail := func() string { return fmt.Sprintf("got %+v, want %+v", got, e.spans) }
	if len(merged) > len(e.spans) {
		return fail()
	}
	for _, w := range e.spans {
		found := false
		for _, m := range merged {
			found = found || m.Addr == w.Addr && m.Size == w.Size
		}
		if !found {
			return fail()
		}
	}
	return ""
}

var x86PointerSizes = map[string]int{"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "FWORD": 6, "TBYTE": 10, "OWORD": 16, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}

// x86Unsized gives the sizes that objdump leaves out: it prints these operands
// without "PTR" (from the instructions' pages in the SDM).
var x86Unsized = map[string]int{"fxsave": 512, "fxsave64": 512, "fxrstor": 512, "fxrstor64": 512, "fldenv": 28, "fnstenv": 28, "fnsave": 108, "frstor": 108,
	"fldenvw": 14, "fnstenvw": 14, "fnsavew": 94, "frstorw": 94,
	"cmpxchg8b": 8, "cmpxchg16b": 16, "movdir64b": 64, "lddqu": 16}

var (
	memoryRE    = regexp.MustCompile(`(?:(\w+) (PTR|BCST) )?(?:([c-g]s):)?\[([^\]]*)\]`)
	absoluteRE  = regexp.MustCompile(`(?:(\w+) (PTR|BCST) )?([c-gs]s):(0x[0-9a-f]+)`)
	termRE      = regexp.MustCompile(`([+-]?)([^+-]+)`)
	noAccessRE  = regexp.MustCompile(`^(lea|nop|prefetch\w*|clflush\w*|clwb|cldemote|bndmk|ud[012]|nopw|nopl|endbr\w*)$`)
	stackPushRE = regexp.MustCompile(`^(push|pushf|pushfw|pushq|pushw|call|enter|enterw)$`)
	stackPopRE  = regexp.MustCompile(`^(pop|popf|popfw|popq|popw|ret)$`)
)

// expectX86 reads addresses and sizes from objdump's Intel text.
func expectX86(l disasmLine, r *X86Regs) (expected, error) {
	prefixes, name, operands := splitText(l.text)
	var e expected
	has16 := false
	rep := false
	for _, p := range prefixes {
		rep = rep || strings.HasPrefix(p, "rep")
	}
	for _, c := range l.code { // 66 as the operand-size prefix of a stack instruction, unless REX.W follows
		if c&0xf8 == 0x48 {
			has16 = false
		} else if c == 0x66 {
			has16 = true
		} else if c != 0x67 && c != 0x64 && c != 0x65 && c != 0xf2 && c != 0xf3 && c != 0x2e && c != 0x3e && c != 0xf0 {
			break
		}
	}
	stack := 8
	if has16 {
		stack = 2
	}
	if noAccessRE.MatchString(name) {
		return e, nil
	}
	if stackPushRE.MatchString(name) {
		e.spans = append(e.spans, Access{Addr: r.GPR[4] - uint64(stack), Size: stack})
	}
	if stackPopRE.MatchString(name) {
		e.spans = append(e.spans, Access{Addr: r.GPR[4], Size: stack})
	}
	if name == "leave" || name == "leavew" {
		e.spans = append(e.spans, Access{Addr: r.GPR[5], Size: stack})
	}
	if strings.HasSuffix(name, "maskmovdqu") {
		a := r.GPR[7]
		if bytes.IndexByte(l.code[:2], 0x67) >= 0 {
			a = uint64(uint32(a))
		}
		e.spans = []Access{{Addr: a, Size: 16}}
		for _, p := range prefixes {
			e.spans[0].Addr += segBase(p, r)
		}
	}
	if name == "maskmovq" { // MMX registers are not given: always an upper bound
		return e, errSpecial
	}
	if rep && r.GPR[1] == 0 {
		return e, nil
	}
	regs := r
	if name == "pop" { // the address of pop's memory operand uses the new rsp
		c := *r
		c.GPR[4] += uint64(stack)
		regs = &c
	}
	found := memoryRE.FindAllStringSubmatch(operands, -1)
	for _, m := range found {
		a, err := evalX86(l, name, operands, m[4], m[3], regs)
		if errors.Is(err, errNoLane) {
			return e, nil
		}
		if err != nil {
			return e, err
		}
		size := x86PointerSizes[m[1]]
		if size == 0 {
			size = x86Unsized[name]
		}
		if name == "vlddqu" { // the size is that of the register beside it
			size = map[byte]int{'x': 16, 'y': 32}[operands[0]]
		}
		if size == 0 {
			return e, fmt.Errorf("no size in the text %q", operands)
		}
		if vsibRE.MatchString(m[4]) {
			size = gatherElement(name)
		}
		e.spans = append(e.spans, Access{Addr: a, Size: size})
	}
	if len(found) == 0 {
		if m := absoluteRE.FindStringSubmatch(operands); m != nil {
			a, err := strconv.ParseUint(m[4], 0, 64)
			if err != nil {
				return e, err
			}
			size := x86PointerSizes[m[1]]
			if m[1] == "" { // moffs: the size is that of the register beside it
				size = map[string]int{"al": 1, "ax": 2, "eax": 4, "rax": 8}[strings.Trim(strings.ReplaceAll(operands, m[0], ""), ",")]
			}
			e.spans = append(e.spans, Access{Addr: a + segBase(m[3], r), Size: size})
		}
	}
	if name == "xlat" {
		e.spans[0].Addr += r.GPR[0] & 0xff
	}
	if name == "movdir64b" {
		dst, _, _ := strings.Cut(operands, ",")
		v, err := x86RegValue(dst, r)
		if err != nil {
			return e, err
		}
		e.spans = append(e.spans, Access{Addr: v, Size: 64})
	}
	if bitOp := map[string]bool{"bt": true, "bts": true, "btr": true, "btc": true}; bitOp[name] && len(e.spans) == 1 {
		_, index, _ := strings.Cut(operands, "],")
		if index == "" {
			_, index, _ = strings.Cut(operands, ",")
		}
		if v, err := x86RegValue(index, r); err == nil {
			// SDM "bit string": signed index; address = base + size * floor(index / bits).
			bits := int64(e.spans[0].Size) * 8
			n := int64(v)
			switch bits {
			case 16:
				n = int64(int16(v))
			case 32:
				n = int64(int32(v))
			}
			q := n / bits
			if n%bits < 0 {
				q--
			}
			e.spans[0].Addr += uint64(q * bits / 8)
		}
	}
	return e, nil
}

func segBase(name string, r *X86Regs) uint64 {
	switch name {
	case "fs":
		return r.FSBase
	case "gs":
		return r.GSBase
	}
	return 0
}

var x86RegNames = func() map[string]int {
	names := map[string]int{}
	for i, n := range strings.Fields("ax cx dx bx sp bp si di") {
		names["r"+n], names["e"+n], names[n] = i, i, i
	}
	for i, n := range strings.Fields("al cl dl bl spl bpl sil dil") {
		names[n] = i
	}
	for i, n := range strings.Fields("ah ch dh bh") {
		names[n] = i
	}
	for i := 8; i < 16; i++ {
		for _, suffix := range []string{"", "d", "w", "b"} {
			names[fmt.Sprintf("r%d%s", i, suffix)] = i
		}
	}
	return names
}()

func x86RegValue(name string, r *X86Regs) (uint64, error) {
	n, ok := x86RegNames[name]
	if !ok {
		return 0, fmt.Errorf("no register %q", name)
	}
	v := r.GPR[n]
	if name[0] == 'e' || strings.HasSuffix(name, "d") && len(name) > 2 {
		v = uint64(uint32(v))
	}
	return v, nil
}

var vsibRE = regexp.MustCompile(`([xyz])mm(\d+)(?:\*(\d))?`)

// gatherElement is the data size by the last letters of the mnemonic: vpgatherdq, vscatterqps.
func gatherElement(name string) int {
	if strings.HasSuffix(name, "ps") || strings.HasSuffix(name, "d") && !strings.HasSuffix(name, "pd") {
		return 4
	}
	return 8
}

// evalX86 computes the address from the text between the brackets.
func evalX86(l disasmLine, name, operands, expr, seg string, r *X86Regs) (uint64, error) {
	var sum uint64
	narrow := false
	for _, term := range termRE.FindAllStringSubmatch(expr, -1) {
		var v uint64
		factor := uint64(1)
		word, scale, scaled := strings.Cut(term[2], "*")
		if scaled {
			f, err := strconv.ParseUint(scale, 0, 8)
			if err != nil {
				return 0, err
			}
			factor = f
		}
		switch {
		case word == "rip":
			v = l.addr + uint64(len(l.code))
		case word == "eip":
			v, narrow = l.addr+uint64(len(l.code)), true
		case word == "riz", word == "eiz":
			narrow = narrow || word == "eiz"
		case strings.HasPrefix(word, "0x"):
			n, err := strconv.ParseUint(word, 0, 64)
			if err != nil {
				return 0, err
			}
			v = n
		case vsibRE.MatchString(word):
			n, _ := strconv.Atoi(word[3:])
			lane, err := firstLane(name, operands, r)
			if err != nil {
				return 0, err
			}
			if i := strings.Index(name, "ther") + 4; strings.Contains(name, "scatter") {
				i = strings.Index(name, "tter") + 4
				v = vsibIndex(name[i], &r.Vec.Z[n], lane)
			} else {
				v = vsibIndex(name[i], &r.Vec.Z[n], lane)
			}
		default:
			n, err := x86RegValue(word, r)
			if err != nil {
				return 0, err
			}
			narrow = narrow || word[0] == 'e' || strings.HasSuffix(word, "d")
			v = n
		}
		if term[1] == "-" {
			v = -v
		}
		sum += v * factor
	}
	if narrow {
		sum = uint64(uint32(sum))
	}
	return sum + segBase(seg, r), nil
}

func vsibIndex(kind byte, z *[64]byte, lane int) uint64 {
	if kind == 'd' {
		v := uint32(0)
		for i := range 4 {
			v |= uint32(z[lane*4+i]) << (8 * i)
		}
		return uint64(int64(int32(v)))
	}
	v := uint64(0)
	for i := range 8 {
		v |= uint64(z[lane*8+i]) << (8 * i)
	}
	return v
}

// errSpecial marks what has a test of its own.
var errSpecial = errors.New("compared elsewhere")

var errNoLane = errors.New("no active lane")

// firstLane is the first active lane of a gather: under AVX-512 the test's mask
// is all ones, under AVX2 it is the sign of the third operand's lanes.
func firstLane(name, operands string, r *X86Regs) (int, error) {
	if strings.Contains(operands, "{k") {
		return 0, nil
	}
	mask := operands[strings.LastIndex(operands, ",")+1:]
	n, err := strconv.Atoi(strings.TrimLeft(mask, "xymz"))
	if err != nil {
		return 0, fmt.Errorf("mask %q", mask)
	}
	size := gatherElement(name)
	lanes := 16 / size
	if mask[0] == 'y' {
		lanes = 32 / size
	}
	if strings.Contains(name, "erq") && strings.Contains(operands, "+xmm") || strings.Contains(operands, "[xmm") {
		lanes = min(lanes, 2)
	}
	for lane := range lanes {
		if r.Vec.Z[n][(lane+1)*size-1] >= 0x80 {
			return lane, nil
		}
	}
	return 0, errNoLane
}

// llvmGaps is where LLVM's descriptions are known to say too much or too little
// about memory and registers, with what the SDM says instead. "=" keeps LLVM's, "+" adds.
var llvmGaps = []struct {
	name  *regexp.Regexp
	flags string
	defs  string
	why   string
}{
	{regexp.MustCompile(`^CALL64m`), "LS", "RSP", "the return address is pushed"},
	{regexp.MustCompile(`^CALL64`), "S", "RSP", "the return address is pushed"},
	{regexp.MustCompile(`^RETI?64$`), "L", "RSP", "the return address is popped"},
	{regexp.MustCompile(`^ENTER`), "S", "RSP RBP", "rbp is pushed"},
	{regexp.MustCompile(`^STOS`), "S", "=", "string store"},
	{regexp.MustCompile(`^MOVS[BWLQ]$`), "LS", "=", "string load and store"},
	{regexp.MustCompile(`^(LODS|SCAS|CMPS)[BWLQ]$`), "L", "=", "string load"},
	{regexp.MustCompile(`^RC[LR].*m`), "LS", "=", "rotate through carry reads its operand"},
	{regexp.MustCompile(`^FXRSTOR`), "L", "XMM0", "reads m512 into all vector registers; LLVM marks a side effect"},
	{regexp.MustCompile(`^V?LDMXCSR`), "L", "=", "reads m32; LLVM marks a side effect"},
	{regexp.MustCompile(`^(VEXTRACT.*mr|VP?MASKMOV.*mr|MOVDIRI\d+|MMX_MOVNTQmr|MMX_MASKMOV.*|V?MASKMOVDQU.*|FXSAVE(64)?)$`), "S", "=", "only loads or only stores; LLVM marks both, or none"},
	{regexp.MustCompile(`^VP?EXPAND.*rmk?z?$`), "L", "=", "only loads or only stores; LLVM marks both, or none"},
	{regexp.MustCompile(`^(L(AR|SL)\d+|VER[RW])[rm]`), "=", "+EFLAGS", "sets ZF"},
	{regexp.MustCompile(`^PUSH[FG]S`), "S", "RSP", "a segment register is pushed"},
	{regexp.MustCompile(`^POP[FG]S`), "L", "RSP", "a segment register is popped"},
	{regexp.MustCompile(`^XABORT`), "-", "EAX", "sets eax; LLVM marks a side effect"},
	{regexp.MustCompile(`^(PAUSE|[LMS]FENCE|XEND|INT3?|TRAP|UD\w*|PREFETCH\w*|CLFLUSH\w*|CLWB|CLDEMOTE|RDTSCP?|WB\w*INVD|MMX_EMMS|(RD|WR)[FG]SBASE\w*|RDSSP[DQ]|UMONITOR\w*|FEMMS)$`), "-", "=", "no data access; LLVM marks a side effect"},
	{regexp.MustCompile(`^(CQO|CDQ|CWD)$`), "-", "RDX", "rax is read only"},
	{regexp.MustCompile(`^SYS(CALL|ENTER)$`), "-", "RAX RCX R11", "rcx and r11 by the CPU, rax by the kernel"},
	{regexp.MustCompile(`^LOOPN?E?$`), "B", "RCX", "counts rcx down"},
}

var (
	x86VectorRE = regexp.MustCompile(`^([XYZ]MM|MM)\d+$`)
	x86MaskRE   = regexp.MustCompile(`^K\d(_K\d)?$`)
)

// x86LLVMFeatures switches on what LLVM leaves out by default.
const x86LLVMFeatures = ""

// directions compares loads, stores, written registers and flow with LLVM.
func (d *x86Diff) directions(t *testing.T, exe string) {
	codes := make([][]byte, len(d.codes))
	for i, c := range d.codes {
		codes[i] = c
		if n := lockAt(c); n >= 0 { // LLVM takes the prefix for an instruction of its own
			codes[i] = append(append([]byte{}, c[:n]...), c[n+1:]...)
		}
	}
	infos := askLLVM(t, exe, "x86_64", x86LLVMFeatures, codes)
	unknown := 0
	for i, info := range infos {
		in := &d.insts[i]
		if info.len != len(codes[i]) {
			unknown++
			continue
		}
		for _, x := range llvmGaps {
			if x.name.MatchString(info.name) {
				if x.flags != "=" {
					info.flags = x.flags
				}
				if add, ok := strings.CutPrefix(x.defs, "+"); ok {
					info.defs = append(info.defs, add)
				} else if x.defs != "=" {
					info.defs = strings.Fields(x.defs)
				}
				d.excepted[x.why]++
				break
			}
		}
		if in.Rep {
			info.defs = append(info.defs, "RCX")
		}
		wantLoad, wantStore := strings.Contains(info.flags, "L"), strings.Contains(info.flags, "S")
		if in.Loads() != wantLoad || in.Stores() != wantStore {
			d.bad.add("direction: "+info.name, "%x %s: loads %v stores %v, LLVM says %s", d.codes[i], d.texts[i], in.Loads(), in.Stores(), info.flags)
		}
		if m := mnemonic(d.texts[i]); m == "pause" || m == "nop" {
			info.defs = nil // LLVM's name for them with REX.W is xchg rax, rax
		}
		var want RegSet
		for _, def := range info.defs {
			if n, ok := x86RegNames[strings.ToLower(def)]; ok {
				want |= 1 << n
			} else if def == "EFLAGS" || def == "DF" {
				want |= RegFlags
			} else if x86VectorRE.MatchString(def) {
				want |= RegVector
			} else if x86MaskRE.MatchString(def) {
				want |= RegMask
			}
		}
		const watched = 0xffff | RegFlags | RegVector | RegMask
		if in.Writes&watched != want {
			d.bad.add("writes: "+info.name, "%x %s: writes %x, LLVM says %x %v", d.codes[i], d.texts[i], uint64(in.Writes), uint64(want), info.defs)
		}
	}
	t.Logf("directions and registers: %d compared, of these by the table of LLVM's gaps%v; LLVM does not decode %d", len(infos)-unknown, d.excepted, unknown)
}

func lockAt(code []byte) int {
	for i, c := range code {
		switch c {
		case 0xf0:
			return i
		case 0x66, 0x67, 0xf2, 0xf3, 0x64, 0x65, 0x2e, 0x3e:
		default:
			return -1
		}
	}
	return -1
}
