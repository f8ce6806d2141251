// Needs: aarch64-linux-gnu-objdump (binutils-aarch64-linux-gnu), llvm-config with g++; the binaries are those of libc6-arm64-cross and libstdc++6-arm64-cross, and any in $RDX_ARM64_BINARIES.

package operand

import (
	"bytes"
	"encoding/binary"
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

var arm64Binaries = []string{
	"/usr/aarch64-linux-gnu/lib/libc.so.6",
	"/usr/aarch64-linux-gnu/lib/libm.so.6",
	"/usr/aarch64-linux-gnu/lib/libstdc++.so.6",
	"/usr/aarch64-linux-gnu/lib/libgcc_s.so.1",
}

const (
	arm64Objdump  = "aarch64-linux-gnu-objdump"
	arm64Features = "+v8.7a,+aes,+sha3,+sm4,+fullfp16,+fp16fml,+mte,+sve,+rand,+ls64"
)

func TestARM64AgainstDisassemblers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	const seed = 22
	t.Logf("seed %d", seed)
	exe := buildLLVMOracle(t)
	for _, pattern := range slices.Concat(arm64Binaries, filepath.SplitList(os.Getenv("RDX_ARM64_BINARIES"))) {
		paths, _ := filepath.Glob(pattern)
		if len(paths) == 0 {
			t.Logf("SKIPPED: no %s on this machine", pattern)
		}
		for _, path := range paths {
			t.Run(filepath.Base(path), func(t *testing.T) {
				d := newARM64Diff(seed)
				for _, window := range windows(t, path) {
					objdump(t, func(l disasmLine) {
						if len(l.code) == 4 {
							d.line(l)
						}
					}, arm64Objdump, append(window, "-d", "-w", "-z", path)...)
				}
				d.finish(t, exe)
			})
		}
	}
}

// TestARM64RandomWords takes words at random, most of them in the load and
// store classes, so that every form turns up, the unallocated ones too.
func TestARM64RandomWords(t *testing.T) {
	const seed = 23
	t.Logf("seed %d", seed)
	exe := buildLLVMOracle(t)
	n := 200_000
	if os.Getenv("RDX_LONG") != "" {
		n = 4_000_000
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var image bytes.Buffer
	for i := range n {
		w := rng.Uint32()
		switch i % 8 {
		case 0: // anything
		case 1: // branches and system
			w = w&^(7<<26) | 5<<26
		case 2: // atomics
			w = w&^(0x3f<<24|3<<10) | 0x38<<24 | 1<<21
		default:
			w = w&^(1<<25) | 1<<27
		}
		image.Write(binary.LittleEndian.AppendUint32(nil, w))
	}
	for i := range uint32(128) { // every hint, and every system instruction and register
		image.Write(binary.LittleEndian.AppendUint32(nil, 0xd503201f|i<<5))
	}
	for i := range uint32(1 << 17) { // L, op0, op1, CRn, CRm, op2
		image.Write(binary.LittleEndian.AppendUint32(nil, 0xd5000003|i<<5))
	}
	path := filepath.Join(t.TempDir(), "words.bin")
	if err := os.WriteFile(path, image.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newARM64Diff(seed)
	d.random = true
	objdump(t, d.line, arm64Objdump, "-D", "-b", "binary", "-m", "aarch64", "-w", "-z", path)
	d.finish(t, exe)
}

type arm64Diff struct {
	rng      *rand.Rand
	random   bool
	seen     map[string]bool
	total    int
	accesses int
	declined tally
	loose    tally // decode, access nothing, and are unknown to the oracles
	excepted tally
	bad      *mismatches
	lines    []disasmLine
	insts    []ARM64Inst
}

func newARM64Diff(seed uint64) *arm64Diff {
	return &arm64Diff{rng: rand.New(rand.NewPCG(seed, 0)), seen: map[string]bool{}, declined: tally{}, loose: tally{}, excepted: tally{}, bad: newMismatches()}
}

func (d *arm64Diff) line(l disasmLine) {
	slices.Reverse(l.code) // objdump prints the word, most significant byte first
	name, operands, _ := strings.Cut(strings.ReplaceAll(l.text, "\t", " "), " ")
	undefined := strings.Contains(l.text, "undefined") || name == ".inst" || strings.HasPrefix(name, ".") || strings.Contains(l.text, "NYI")
	if undefined && !d.random {
		return // data
	}
	d.total++
	in, err := DecodeARM64(l.code)
	if errors.Is(err, ErrUnsupported) {
		if !undefined {
			d.declined[name]++
		}
		return
	}
	if d.seen[string(l.code)] {
		return
	}
	d.seen[string(l.code)] = true
	if err != nil {
		d.bad.add("error: "+name, "%x %s: %v", l.code, l.text, err)
		return
	}
	d.lines = append(d.lines, l)
	d.insts = append(d.insts, in)
	if undefined {
		return
	}
	r := &ARM64Regs{SP: d.rng.Uint64(), PC: l.addr, ZVABlock: 64}
	for i := range r.X {
		r.X[i] = d.rng.Uint64()
	}
	got, err := in.Accesses(r, nil)
	if err != nil {
		d.bad.add("accesses: "+name, "%x %s: %v", l.code, l.text, err)
		return
	}
	d.accesses += len(got)
	want, err := expectARM64(l, name, operands, r)
	if err != nil {
		d.bad.add("oracle: "+name, "%x %s: %v", l.code, l.text, err)
		return
	}
	if s := want.check(got); s != "" {
		d.bad.add("access: "+name, "%x %s: %s", l.code, l.text, s)
	}
	other := *r
	for i := range other.X {
		if in.AddrRegs>>i&1 == 0 {
			other.X[i] = d.rng.Uint64()
		}
	}
	if again, err := in.Accesses(&other, nil); err != nil || !slices.Equal(again, got) {
		d.bad.add("address registers: "+name, "%x %s: %x do not suffice", l.code, l.text, uint64(in.AddrRegs))
	}
	if m := arm64TargetRE.FindStringSubmatch(l.text); m != nil && in.Branch != BranchNone {
		if n, _ := strconv.ParseUint(m[1], 16, 64); n != in.Target(l.addr) {
			d.bad.add("target: "+name, "%x %s: %x", l.code, l.text, in.Target(l.addr))
		}
	}
}

var (
	arm64TargetRE  = regexp.MustCompile(`^(?:b|bl|b\.\w+|cbn?z|tbn?z)\s(?:.*, )?(?:0x)?([0-9a-f]+)(?: <|$)`)
	arm64MemRE     = regexp.MustCompile(`\[(x\d+|sp)(?:, ([^\]]*))?\](!?)(?:, (.*))?`)
	arm64LiteralRE = regexp.MustCompile(`^([xwsdq]\d+|xzr|wzr), (?:0x)?([0-9a-f]+)(?: <|$)`)
	arm64ListRE    = regexp.MustCompile(`\{v(\d+)\.(\d*)([bhsd])(?:-v(\d+)\.\w+)?([^}]*)\}(\[\d+\])?`)
	arm64AtomicRE  = regexp.MustCompile(`^(?:ld|st)(?:add|clr|eor|set|smax|smin|umax|umin)a?l?([bh]?)$|^swpa?l?([bh]?)$|^casa?l?([bh]?)$`)
	arm64NoAccess  = regexp.MustCompile(`^(prfm|prfum)$`)
)

var arm64LetterBytes = map[string]int{"b": 1, "h": 2, "s": 4, "d": 8, "q": 16, "w": 4, "x": 8}

// expectARM64 reads address and size from objdump's text.
func expectARM64(l disasmLine, name, operands string, r *ARM64Regs) (expected, error) {
	var e expected
	operands, _, _ = strings.Cut(strings.TrimSpace(operands), "  //")
	if arm64NoAccess.MatchString(name) {
		return e, nil
	}
	if name == "dc" {
		if zva, ok := strings.CutPrefix(operands, "zva, "); ok {
			v, err := arm64Value(zva, r)
			return expected{spans: []Access{{Addr: v &^ 63, Size: 64}}}, err
		}
		return e, nil
	}
	m := arm64MemRE.FindStringSubmatch(operands)
	if m == nil {
		if lit := arm64LiteralRE.FindStringSubmatch(operands); lit != nil && strings.HasPrefix(name, "ldr") {
			a, err := strconv.ParseUint(lit[2], 16, 64)
			size := arm64LetterBytes[lit[1][:1]]
			if name == "ldrsw" {
				size = 4
			}
			e.spans = []Access{{Addr: a, Size: size}}
			return e, err
		}
		return e, nil
	}
	a, err := arm64Value(m[1], r)
	if err != nil {
		return e, err
	}
	if strings.HasPrefix(name, "ldraa") || strings.HasPrefix(name, "ldrab") {
		if a &^= 0x7f << 48; a>>55&1 == 1 {
			a |= 0x7f << 48
		}
	}
	for i, part := range strings.Split(m[2], ", ") {
		word, _, _ := strings.Cut(part, " #")
		switch {
		case part == "":
		case part[0] == '#':
			n, err := strconv.ParseInt(part[1:], 0, 64)
			if err != nil {
				return e, err
			}
			a += uint64(n)
		case i == 0:
			v, err := arm64Value(part, r)
			if err != nil {
				return e, err
			}
			mod, shift := "", uint64(0)
			if parts := strings.Split(m[2], ", "); len(parts) > 1 {
				var amount string
				var scaled bool
				mod, amount, scaled = strings.Cut(parts[1], " #")
				if scaled {
					shift, err = strconv.ParseUint(amount, 0, 8)
					if err != nil {
						return e, err
					}
				}
			}
			if mod == "sxtw" {
				v = uint64(int64(int32(v)))
			}
			a += v << shift
		default:
			_ = word
		}
	}
	size, err := arm64Size(name, operands)
	e.spans = []Access{{Addr: a, Size: size}}
	return e, err
}

func arm64Value(name string, r *ARM64Regs) (uint64, error) {
	switch name {
	case "sp":
		return r.SP, nil
	case "xzr", "wzr":
		return 0, nil
	}
	n, err := strconv.Atoi(name[1:])
	if err != nil || n > 30 {
		return 0, fmt.Errorf("no register %q", name)
	}
	if name[0] == 'w' {
		return uint64(uint32(r.X[n])), nil
	}
	return r.X[n], nil
}

// arm64Size takes the access size from the mnemonic and the registers beside it.
func arm64Size(name, operands string) (int, error) {
	if m := arm64ListRE.FindStringSubmatch(operands); m != nil {
		regs := int(name[2] - '0') // ld1..st4
		elem := arm64LetterBytes[m[3]]
		if m[6] != "" || strings.HasSuffix(name, "r") {
			return regs * elem, nil
		}
		n := 1 + strings.Count(m[5], "v")
		if m[4] != "" {
			first, _ := strconv.Atoi(m[1])
			last, _ := strconv.Atoi(m[4])
			n = (last-first+32)%32 + 1
		}
		lanes, err := strconv.Atoi(m[2])
		return n * lanes * elem, err
	}
	first := operands[:1]
	if m := arm64AtomicRE.FindStringSubmatch(name); m != nil {
		if s := m[1] + m[2] + m[3]; s != "" {
			return arm64LetterBytes[s], nil
		}
		return arm64LetterBytes[first], nil
	}
	status := strings.HasPrefix(name, "stxr") || strings.HasPrefix(name, "stlxr") || strings.HasPrefix(name, "stxp") || strings.HasPrefix(name, "stlxp")
	if status { // the first register is the status
		_, rest, _ := strings.Cut(operands, ", ")
		first = rest[:1]
	}
	n := 1
	switch {
	case name == "ldpsw":
		return 8, nil
	case strings.HasSuffix(name, "ldp"), strings.HasPrefix(name, "stp"), strings.HasPrefix(name, "ldp"), strings.HasPrefix(name, "ldnp"), strings.HasPrefix(name, "stnp"),
		strings.HasSuffix(name, "xp"), strings.HasPrefix(name, "casp"):
		n = 2
	case strings.HasSuffix(name, "sw"):
		return 4, nil
	case strings.HasSuffix(name, "h"):
		return 2, nil
	case strings.HasSuffix(name, "b") && name != "ldrab":
		return 1, nil
	}
	size := arm64LetterBytes[first]
	if size == 0 {
		return 0, fmt.Errorf("no size in %s %s", name, operands)
	}
	return n * size, nil
}

// arm64LLVMGaps is where LLVM's descriptions are known to say too much or too
// little, with what the Arm ARM says instead; "=" keeps LLVM's. The text is
// LLVM's name and objdump's line.
var arm64LLVMGaps = []struct {
	text  *regexp.Regexp
	flags string
	defs  string
	why   string
}{
	{regexp.MustCompile(`^PRFU?M`), "-", "=", "prefetch: no access"},
	{regexp.MustCompile(`^(DMB|DSB|ISB|HINT|SB|TSB|CLREX|DSBnXS|WFET|WFIT) `), "-", "=", "barrier or hint: no access"},
	{regexp.MustCompile(`^STL?X[RP][BHWX] `), "S", "=", "exclusive store: only stores"},
	{regexp.MustCompile(`^LDA?X[RP][BHWX] `), "L", "=", "exclusive load: only loads"},
	{regexp.MustCompile(`^LDAPUR.*i `), "L", "=", "ldapur: not marked by LLVM"},
	{regexp.MustCompile(`^STLUR.*i `), "S", "=", "stlur: not marked by LLVM"},
	{regexp.MustCompile(`^SYSxt dc\s+zva`), "S", "=", "dc zva: clears a block"},
	{regexp.MustCompile(`^SVC `), "-", "X0", "svc: Linux returns in x0"},
	{regexp.MustCompile(`^SYSLxt `), "-", "text", "sysl: writes its register"},
	{regexp.MustCompile(`^MSR msr +nzcv,`), "-", "NZCV", "msr nzcv: writes the flags"},
	{regexp.MustCompile(`^MRS .*, (rndr|rndrrs|s3_3_c2_c4_[01])$`), "-", "+NZCV", "mrs: sets the flags for random numbers only"},
	{regexp.MustCompile(`^MRS `), "-", "-NZCV", "mrs: sets the flags for random numbers only"},
}

func (d *arm64Diff) finish(t *testing.T, exe string) {
	t.Helper()
	codes := make([][]byte, len(d.lines))
	for i := range d.lines {
		codes[i] = d.lines[i].code
	}
	unknown := 0
	for i, info := range askLLVM(t, exe, "aarch64", arm64Features, codes) {
		in, l := &d.insts[i], d.lines[i]
		if info.len == 0 {
			unknown++
			if strings.Contains(l.text, "undefined") || strings.HasPrefix(l.text, ".") {
				if in.Touches() {
					d.bad.add("unallocated", "%x %s: decoded with accesses", l.code, l.text)
				}
				d.loose[fmt.Sprintf("%03x", binary.LittleEndian.Uint32(l.code)>>21)]++
			}
			continue
		}
		flags := info.flags
		for _, x := range arm64LLVMGaps {
			if !x.text.MatchString(info.name + " " + strings.ReplaceAll(l.text, "\t", " ")) {
				continue
			}
			if x.flags != "=" {
				flags = x.flags
			}
			switch {
			case x.defs[0] == '-':
				info.defs = slices.DeleteFunc(info.defs, func(s string) bool { return s == x.defs[1:] })
			case x.defs[0] == '+':
				info.defs = append(info.defs, x.defs[1:])
			case x.defs == "text":
				reg, _, _ := strings.Cut(strings.Fields(l.text)[1], ",")
				info.defs = []string{strings.ToUpper(reg)}
			case x.defs != "=":
				info.defs = []string{x.defs}
			}
			d.excepted[x.why]++
			break
		}
		if in.Loads() != strings.Contains(flags, "L") || in.Stores() != strings.Contains(flags, "S") {
			d.bad.add("direction: "+info.name, "%x %s: loads %v stores %v, LLVM says %s", l.code, l.text, in.Loads(), in.Stores(), info.flags)
		}
		var want RegSet
		for _, def := range info.defs {
			want |= arm64Def(def)
		}
		const watched = 1<<32 - 1 | RegFlags | RegVector
		if in.Writes&watched != want {
			d.bad.add("writes: "+info.name, "%x %s: writes %x, LLVM says %x %v", l.code, l.text, uint64(in.Writes), uint64(want), info.defs)
		}
	}
	d.bad.report(t)
	t.Logf("%d instructions, %d distinct compared, %d accesses, by LLVM's gaps%v, not decoded by LLVM %d, unallocated without access %d, declined %d (%.4f%%):%v",
		d.total, len(d.lines), d.accesses, d.excepted, unknown, d.loose.total(), d.declined.total(), 100*float64(d.declined.total())/float64(max(d.total, 1)), d.declined)
}

// arm64Def is the set of LLVM's register names, of which pairs have two in one.
func arm64Def(def string) (set RegSet) {
	for name := range strings.SplitSeq(def, "_") {
		switch name {
		case "SP", "WSP":
			set |= 1 << 31
		case "LR":
			set |= 1 << 30
		case "FP":
			set |= 1 << 29
		case "NZCV":
			set |= RegFlags
		default:
			n, err := strconv.Atoi(name[1:])
			switch {
			case err != nil:
			case name[0] == 'X' || name[0] == 'W':
				set |= 1 << n
			case strings.IndexByte("BHSDQ", name[0]) >= 0:
				set |= RegVector
			}
		}
	}
	return set
}
