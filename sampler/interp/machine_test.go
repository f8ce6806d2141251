package interp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	dataBase = 0x10000000
	codeBase = 0x20000000
	seedEnv  = "RDX_SEED"
)

func long() bool { return os.Getenv("RDX_LONG") != "" }

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(seedEnv); s != "" {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("seed: %s=%d", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// pages is a target's memory.
type pages map[uint64]*[pageSize]byte

var errNoPage = errors.New("no such page")

func (p pages) ReadPage(addr uint64, buf *[pageSize]byte) error {
	if addr%pageSize != 0 {
		panic("address of a page is not aligned")
	}
	if p[addr] == nil {
		return errNoPage
	}
	*buf = *p[addr]
	return nil
}

func (p pages) put(addr uint64, b []byte) {
	for i, c := range b {
		a := addr + uint64(i)
		if p[a&^pageMask] == nil {
			p[a&^pageMask] = new([pageSize]byte)
		}
		p[a&^pageMask][a&pageMask] = c
	}
}

func code(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// target is a thread at codeBase, with two pages of data of which each 8 bytes
// hold their own address, rsp in the middle, and rbx, rsi and rdi at the start.
func target(t testing.TB, hexcode string) (*Regs, pages) {
	p := pages{}
	for a := uint64(dataBase); a < dataBase+2*pageSize; a += 8 {
		p.put(a, binary.LittleEndian.AppendUint64(nil, a))
	}
	p.put(codeBase, make([]byte, 1))
	p.put(codeBase, code(t, hexcode))
	r := &Regs{RIP: codeBase, Flags: 2}
	r.GPR[RSP] = dataBase + pageSize
	r.GPR[RBX], r.GPR[RSI], r.GPR[RDI] = dataBase, dataBase, dataBase+0x100
	r.Vector.MXCSR, r.Vector.FCW = 0x1f80, 0x37f
	return r, p
}

// list writes accesses as "load address size" relative to dataBase.
func list(acc []Access) string {
	var s []string
	for _, a := range acc {
		kind := "load"
		if a.Store {
			kind = "store"
		}
		s = append(s, fmt.Sprintf("%s %x %d", kind, int64(a.Addr-dataBase), a.Size))
	}
	return strings.Join(s, ", ")
}

func TestAccesses(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"mov load", "488b03", "load 0 8"},
		{"mov store", "66894b10", "store 10 2"},
		{"add to memory", "0103", "load 0 4, store 0 4"},
		{"cmp memory", "3903", "load 0 4"},
		{"test imm", "f60301", "load 0 1"},
		{"inc", "48ff4308", "load 8 8, store 8 8"},
		{"lock xadd", "f00fc103", "load 0 4, store 0 4"},
		{"xchg", "8703", "load 0 4, store 0 4"},
		{"cmpxchg that fails", "480fb103", "load 0 8, store 0 8"},
		{"push", "50", "store ff8 8"},
		{"push memory", "ff33", "load 0 8, store ff8 8"},
		{"pop memory", "8f03", "load 1000 8, store 0 8"},
		{"pop memory at rsp", "8f0424", "load 1000 8, store 1008 8"},
		{"call", "e800000000", "store ff8 8"},
		{"call memory", "ff13", "load 0 8, store ff8 8"},
		{"ret", "c3", "load 1000 8"},
		{"leave", "4889dd c9", "load 0 8"},
		{"movs", "a5", "load 0 4, store 100 4"},
		{"cmps", "a6", "load 0 1, load 100 1"},
		{"scas", "48af", "load 100 8"},
		{"stos", "aa", "store 100 1"},
		{"lods", "66ad", "load 0 2"},
		{"rep movs", "b903000000 f348a5", "load 0 8, store 100 8, load 8 8, store 108 8, load 10 8, store 110 8"},
		{"bts beyond the operand", "b800010000 0fab03", "load 20 4, store 20 4"},
		{"setcc", "0f9403", "store 0 1"},
		{"cmov not taken", "0f4403", "load 0 4"},
		{"lea", "488d03", ""},
		{"nop with operand", "0f1f03", ""},
		{"prefetch", "0f1803", ""},
		{"movups", "0f1003", "load 0 16"},
		{"vmovdqu ymm", "c5fe6f03", "load 0 32"},
		{"vmovdqu64 zmm", "62f1fe487f03", "store 0 64"},
		{"movss", "f30f1003", "load 0 4"},
		{"addsd", "f20f5803", "load 0 8"},
		{"broadcast operand", "62f1fd58d403", "load 0 8"},
		{"masked load", "b80c000000 c5f892c8 62f17ec96f03", "load 8 8"},
		{"masked store", "b811000000 c5f892c8 62f17e497f03", "store 0 20"},
		{"masked store of nothing", "62f17e497f03", ""},
		{"gather", "b805000000 c5f892c8 62f27d49900c13", "load 0 4, load 0 4"},
		{"fnstcw", "d93b", "store 0 2"},
		{"pmovzx", "660f383003", "load 0 8"},
		{"fld", "dd03", "load 0 8"},
		{"fld extended", "db2b", "load 0 10"},
		{"fstp extended", "db3b", "store 0 10"},
		{"fild", "df2b", "load 0 8"},
		{"fistp", "df1b", "store 0 2"},
		{"fadd", "d803", "load 0 4"},
		{"movq mmx", "0f6f03", "load 0 8"},
		{"punpcklbw mmx", "0f6003", "load 0 4"},
		{"movntq", "0fe703", "store 0 8"},
		{"cmpxchg16b", "f0480fc70b", "load 0 16, store 0 16"},
		{"across pages", "488b83fc0f0000", "load ffc 8"},
	} {
		r, mem := target(t, c.code)
		m := New()
		m.Start(r, mem)
		var got []Access
		for m.rip < codeBase+uint64(len(code(t, c.code))) && m.rip >= codeBase {
			end := m.Run(Limit{Accesses: 100, Instructions: 1})
			if end.Cause != InstructionLimit {
				t.Fatalf("%s: %v %s", c.name, end.Cause, end.Op)
			}
			got = append(got, m.Accesses()...)
			if m.Regs(r); r.RIP == codeBase+5 && c.name == "call" {
				break
			}
		}
		if list(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, list(got), c.want)
		}
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name, code   string
		limit        Limit
		cause        Cause
		op           string
		instructions int
		rip          uint64
	}{
		{"accesses", "488b03 488b03 488b03", Limit{Accesses: 2, Instructions: 9}, AccessesDone, "", 2, 6},
		{"instructions", "9090eb fc", Limit{Accesses: 2, Instructions: 9}, InstructionLimit, "", 9, 0},
		{"syscall", "90 0f05", Limit{Accesses: 2, Instructions: 9}, Syscall, "", 1, 1},
		{"rdtsc", "90 0f31", Limit{Accesses: 2, Instructions: 9}, Unsupported, "rdtsc", 1, 1},
		{"x87 exception not masked", "66c7030000 d92b d9e8 d9ee def9 d9e8", Limit{Accesses: 9, Instructions: 9}, Fault, "fld1", 5, 13},
		{"unknown opcode", "d6", Limit{Accesses: 2, Instructions: 9}, Unsupported, "d6 00 00 00 00 00", 0, 0},
		{"ud2", "0f0b", Limit{Accesses: 2, Instructions: 9}, Fault, "ud2", 0, 0},
		{"division by zero", "31c9 f7f1", Limit{Accesses: 2, Instructions: 9}, Fault, "div", 1, 2},
		{"stmxcsr", "0fae1b", Limit{Accesses: 1, Instructions: 9}, AccessesDone, "", 1, 3},
		{"misaligned", "0f284301", Limit{Accesses: 2, Instructions: 9}, Fault, "movaps", 0, 0},
		{"unreadable", "48c1e310 8b03", Limit{Accesses: 2, Instructions: 9}, Unreadable, "", 1, 4},
		{"unreadable code", "ffe0", Limit{Accesses: 2, Instructions: 9}, Unreadable, "", 1, -codeBase & (1<<64 - 1)},
		{"lock", "90 f00103", Limit{Accesses: 9, Instructions: 9, StopLocked: true}, Locked, "", 1, 1},
		{"xchg is atomic", "90 8703", Limit{Accesses: 9, Instructions: 9, StopLocked: true}, Locked, "", 1, 1},
		{"xchg of registers is not", "90 87c0", Limit{Accesses: 9, Instructions: 2, StopLocked: true}, InstructionLimit, "", 2, 3},
	} {
		r, mem := target(t, c.code)
		m := New()
		m.Start(r, mem)
		end := m.Run(c.limit)
		m.Regs(r)
		if end.Cause != c.cause || end.Op != c.op || end.Instructions != c.instructions || r.RIP-codeBase != c.rip {
			t.Errorf("%s: %+v at %#x, want %v %q after %d at %#x", c.name, end, r.RIP-codeBase, c.cause, c.op, c.instructions, c.rip)
		}
		if end.Cause == Unreadable && !errors.Is(end.Err, errNoPage) {
			t.Errorf("%s: error %v", c.name, end.Err)
		}
	}
}

// A burst's stores are seen by its own loads, never by the target, and not by
// the next burst.
func TestStoresStayInTheBurst(t *testing.T) {
	r, mem := target(t, "48c70305000000 488b03 eb fe")
	before := *mem[dataBase]
	m := New()
	for range 2 {
		m.Start(r, mem)
		m.Run(Limit{Accesses: 2, Instructions: 9})
		var after Regs
		m.Regs(&after)
		if after.GPR[RAX] != 5 {
			t.Errorf("loaded %#x, stored 5", after.GPR[RAX])
		}
		if *mem[dataBase] != before {
			t.Fatal("the target was written")
		}
	}
	mem.put(codeBase, code(t, "488b03"))
	m.Start(r, mem)
	m.Run(Limit{Accesses: 1, Instructions: 9})
	m.Regs(r)
	if r.GPR[RAX] != dataBase {
		t.Errorf("the next burst loaded %#x", r.GPR[RAX])
	}
}

// An instruction that faults half-way leaves no trace.
// Rewound, a burst goes the same way again, stores and written code included,
// without a page being read twice.
func TestRewind(t *testing.T) {
	// Two increments of [rbx], then a store into the code: the inc of eax
	// becomes a dec.
	regs, mem := target(t, "48 ff 03  48 ff 03  c6 05 01 00 00 00 c8  ff c0  8b 0b")
	m := New()
	reads := &countedPages{pages: mem}
	m.Start(regs, reads)
	limit := Limit{Accesses: 100, Instructions: 5}
	m.Run(limit)
	var first, again Regs
	m.Regs(&first)
	accesses := append([]Access(nil), m.Accesses()...)
	n := reads.n
	if n == 0 || len(accesses) != 6 {
		t.Fatalf("%d pages read, accesses %v", n, accesses)
	}
	m.Rewind(regs)
	m.Run(limit)
	m.Regs(&again)
	if !reflect.DeepEqual(first.GPR, again.GPR) || first.RIP != again.RIP || !reflect.DeepEqual(accesses, m.Accesses()) {
		t.Errorf("the second time:\n%x %v, the first:\n%x %v", again.GPR, m.Accesses(), first.GPR, accesses)
	}
	if reads.n != n {
		t.Errorf("%d pages read again", reads.n-n)
	}
}

type countedPages struct {
	pages
	n int
}

func (c *countedPages) ReadPage(addr uint64, buf *[pageSize]byte) error {
	c.n++
	return c.pages.ReadPage(addr, buf)
}

func TestFaultIsAtomic(t *testing.T) {
	for _, c := range []string{"ff33", "8f0424", "a5", "c8100000", "c9", "50", "e800000000", "0fc7 0c24", "62f17e487f0424"} {
		r, mem := target(t, c)
		r.GPR[RSP] = dataBase + 2*pageSize - 4 // straddles the end of the data
		r.GPR[RBP] = r.GPR[RSP]
		r.GPR[RDI] = r.GPR[RSP] + 2
		if c == "50" || c == "ff33" || c[:2] == "e8" || c[:2] == "c8" {
			r.GPR[RSP] = dataBase + 4
		}
		before := *r
		m := New()
		m.Start(r, mem)
		end := m.Run(Limit{Accesses: 9, Instructions: 1})
		m.Regs(r)
		r.LoadVector = nil
		if end.Cause != Unreadable || end.Instructions != 0 || len(m.Accesses()) != 0 {
			t.Errorf("%s: %+v, accesses %s", c, end, list(m.Accesses()))
		}
		if !reflect.DeepEqual(*r, before) {
			t.Errorf("%s: registers changed:\n%#x\n%#x", c, r.GPR, before.GPR)
		}
		for _, p := range m.pages {
			if p.dirty && p.data != *mem[p.num*pageSize] {
				t.Errorf("%s: page %#x was written", c, p.num*pageSize)
			}
		}
	}
}

func TestRepeatStopsAndGoesOn(t *testing.T) {
	r, mem := target(t, "f3a4 90")
	r.GPR[RCX] = 10
	m := New()
	m.Start(r, mem)
	end := m.Run(Limit{Accesses: 6, Instructions: 9})
	m.Regs(r)
	if end.Cause != AccessesDone || end.Instructions != 0 || r.GPR[RCX] != 7 || r.RIP != codeBase || len(m.Accesses()) != 6 {
		t.Errorf("%+v, rcx %d, rip %#x, %d accesses", end, r.GPR[RCX], r.RIP, len(m.Accesses()))
	}
	end = m.Run(Limit{Accesses: 100, Instructions: 1})
	m.Regs(r)
	if end.Instructions != 1 || r.GPR[RCX] != 0 || r.RIP != codeBase+2 || len(m.Accesses()) != 14 {
		t.Errorf("%+v, rcx %d, rip %#x, %d accesses", end, r.GPR[RCX], r.RIP, len(m.Accesses()))
	}
	// Half-way into an unreadable page the iterations done are kept.
	r, mem = target(t, "f3a4")
	r.GPR[RCX], r.GPR[RDI] = 10, dataBase+2*pageSize-3
	m.Start(r, mem)
	end = m.Run(Limit{Accesses: 100, Instructions: 9})
	m.Regs(r)
	if end.Cause != Unreadable || r.GPR[RCX] != 7 || len(m.Accesses()) != 6 || r.RIP != codeBase {
		t.Errorf("%+v, rcx %d, %d accesses", end, r.GPR[RCX], len(m.Accesses()))
	}
}

// The burst writes mov eax, 1 over mov eax, 2 that it has already run.
func TestCodeWrittenByTheBurst(t *testing.T) {
	r, mem := target(t, "b802000000 c643 01 01 ffe3")
	mem.put(dataBase, code(t, "b802000000 c6430101 ffe3"))
	mem.put(codeBase, code(t, "ffe3"))
	m := New()
	for range 2 {
		m.Start(r, mem)
		m.Run(Limit{Accesses: 9, Instructions: 5})
		var after Regs
		m.Regs(&after)
		if after.GPR[RAX] != 1 {
			t.Errorf("eax %d, want 1 from the code that was written", after.GPR[RAX])
		}
	}
}

// Code that changes between two bursts is decoded again, also where an
// instruction reaches over the end of a page.
func TestCodeChangedByTheTarget(t *testing.T) {
	m := New()
	for _, at := range []uint64{codeBase, codeBase + pageSize - 2} {
		for _, imm := range []byte{1, 2, 3} {
			r, mem := target(t, "90")
			mem.put(at, []byte{0xb8, imm, 0, imm, 0})
			r.RIP = at
			m.Start(r, mem)
			m.Run(Limit{Accesses: 9, Instructions: 1})
			m.Regs(r)
			if want := uint64(imm)<<16 | uint64(imm); r.GPR[RAX] != want || r.RIP != at+5 {
				t.Errorf("eax %#x, want %#x; rip %#x", r.GPR[RAX], want, r.RIP)
			}
		}
	}
}

func TestVectorIsLoadedOnce(t *testing.T) {
	r, mem := target(t, "90 0f57c0 0f57c0 90")
	loads := 0
	r.LoadVector = func(v *Vector) error {
		loads++
		v.MXCSR, v.Z[3] = 0x1f80, Vec{7}
		return nil
	}
	m := New()
	m.Start(r, mem)
	m.Run(Limit{Accesses: 9, Instructions: 1})
	if m.Regs(r); loads != 0 || r.LoadVector == nil {
		t.Errorf("%d loads before a vector instruction", loads)
	}
	m.Run(Limit{Accesses: 9, Instructions: 3})
	if m.Regs(r); loads != 1 || r.Vector.Z[3] != (Vec{7}) || r.LoadVector != nil {
		t.Errorf("%d loads, zmm3 %x", loads, r.Vector.Z[3])
	}
	broken := errors.New("gone")
	r.RIP, r.LoadVector = codeBase, func(*Vector) error { return broken }
	m.Start(r, mem)
	if end := m.Run(Limit{Accesses: 9, Instructions: 9}); end.Cause != Unreadable || !errors.Is(end.Err, broken) || end.Instructions != 1 {
		t.Errorf("%+v", end)
	}
}

func TestManyPages(t *testing.T) {
	r, mem := target(t, "8b03 4881c300100000 ebf5")
	for i := range uint64(maxPages + 10) {
		mem[dataBase+i*pageSize] = new([pageSize]byte)
	}
	m := New()
	m.Start(r, mem)
	end := m.Run(Limit{Accesses: 1 << 20, Instructions: 1 << 20})
	if end.Cause != MemoryLimit || len(m.Accesses()) != maxPages-1 {
		t.Errorf("%+v after %d accesses", end, len(m.Accesses()))
	}
}

// A burst does not allocate once the machine is warm.
func TestNoAllocation(t *testing.T) {
	r, mem := target(t, "488b03 0103 ff33 8f03 f3a4 0f1003 48d1e8 6bc003 f7e1 f20f58c1 c5fd6f0b c4e27d00c1 62f1fe486f0b 62f27d493803 ebcf")
	m := New()
	run := func() {
		m.Start(r, mem)
		if end := m.Run(Limit{Accesses: 1000, Instructions: 10000}); end.Cause != AccessesDone {
			t.Fatalf("%+v", end)
		}
	}
	run()
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Errorf("%v allocations a burst", n)
	}
}

func TestNames(t *testing.T) {
	for c := Cause(0); c <= numCauses; c++ {
		if (c.String() == "unknown") != (c == numCauses) || c.String() == "" {
			t.Errorf("cause %d is %q", c, c.String())
		}
	}
}

// form is a random instruction with opcode op of a map: 0 one-byte, 1-3 legacy
// 0f, 0f38, 0f3a, 4-6 the same in VEX, 7-9 in EVEX.
func form(r *rand.Rand, opmap, op int) []byte {
	var b []byte
	tail := func() []byte {
		modrm := byte(r.IntN(256))
		if r.IntN(2) == 0 {
			modrm |= 0xc0
		}
		t := []byte{modrm, byte(r.IntN(256))}
		if modrm&7 == 5 && modrm>>6 == 0 {
			t[0] |= 0x40
		}
		for range 10 {
			t = append(t, byte(r.IntN(256)))
		}
		if modrm>>6 == 2 || modrm>>6 == 0 {
			t[4], t[5], t[3] = 0, 0, byte(r.IntN(4)) // small 32-bit displacement
			if r.IntN(2) == 0 {
				t[3], t[4], t[5] = 0, 0, 0
			}
		}
		return t
	}
	if opmap <= 3 {
		switch r.IntN(6) {
		case 0, 1:
			b = append(b, 0x66)
		case 2:
			b = append(b, 0xf3)
		case 3:
			b = append(b, 0xf2)
		}
		if r.IntN(16) == 0 {
			b = append(b, 0xf0)
		}
		if r.IntN(2) == 0 {
			b = append(b, 0x40|byte(r.IntN(16)))
		}
		switch opmap {
		case 1:
			b = append(b, 0x0f)
		case 2:
			b = append(b, 0x0f, 0x38)
		case 3:
			b = append(b, 0x0f, 0x3a)
		}
		return append(append(b, byte(op)), tail()...)[:15]
	}
	if opmap <= 6 {
		b = append(b, 0xc4, byte(r.IntN(8))<<5|byte(opmap-3), byte(r.IntN(256)))
		if r.IntN(2) == 0 {
			b[2] |= 0x78
		}
	} else {
		p2 := byte(r.IntN(256))
		if r.IntN(2) == 0 {
			p2 &^= 7 | 0x80
		}
		if r.IntN(4) != 0 {
			p2 &^= 0x10
		}
		if p2&0x60 == 0x60 && p2&0x10 == 0 {
			p2 &^= 0x20
		}
		b = append(b, 0x62, byte(r.IntN(16))<<4|byte(opmap-6), byte(r.IntN(256))|4, p2)
		if r.IntN(2) == 0 {
			b[2] |= 0x78
			b[3] |= 8
		}
	}
	return append(append(b, byte(op)), tail()...)[:15]
}

// runBytes runs bytes as code; whatever they are, the burst ends.
func runBytes(m *Machine, b []byte, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	mem := pages{}
	mem.put(codeBase, b)
	for i := range uint64(3) {
		p := new([pageSize]byte)
		for j := range p {
			p[j] = byte(rnd.Uint32())
		}
		mem[dataBase+i*pageSize] = p
	}
	r := Regs{RIP: codeBase, Flags: 2 | rnd.Uint64()&(arithFlags|FlagDF)}
	for i := range r.GPR {
		r.GPR[i] = dataBase + rnd.Uint64N(3*pageSize)
		if rnd.IntN(4) == 0 {
			r.GPR[i] = rnd.Uint64() >> rnd.IntN(64)
		}
	}
	for i := range r.Vector.Z {
		for j := range r.Vector.Z[i] {
			r.Vector.Z[i][j] = rnd.Uint64()
		}
	}
	for i := range r.Vector.K {
		r.Vector.K[i] = rnd.Uint64()
	}
	r.Vector.MXCSR = 0x1f80
	m.Start(&r, mem)
	m.Run(Limit{Accesses: 500, Instructions: 500})
}

func FuzzRun(f *testing.F) {
	f.Add([]byte{0x48, 0x8b, 0x03, 0xeb, 0xfb}, uint64(1))
	f.Add([]byte{0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x03}, uint64(2))
	m := New()
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) { runBytes(m, b, seed) })
}

// Random instructions of every opcode map never make the interpreter panic.
func TestRandomBytes(t *testing.T) {
	rnd := seeded(t)
	m := New()
	end := time.Now().Add(3 * time.Second)
	if long() {
		end = time.Now().Add(time.Minute)
	}
	n := 0
	for ; time.Now().Before(end); n++ {
		var b []byte
		for range 8 {
			b = append(b, form(rnd, rnd.IntN(10), rnd.IntN(256))...)
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("% x: %v", b, r)
				}
			}()
			runBytes(m, b, rnd.Uint64())
		}()
	}
	t.Logf("%d bursts", n)
}

// What the clock is taken to be goes on with the instructions, and is the same again, however far each Run goes.
func TestTime(t *testing.T) {
	const start = 1<<33 + 7
	r, mem := target(t, "90 0f31 48c1e220 4809d0 488903 9090 0f01f9 48c1e220 4809d0 48894308 90")
	read := func(m *Machine, each int) (first, second, aux uint64) {
		for range 12 / each {
			if end := m.Run(Limit{Accesses: 100, Instructions: each}); end.Cause != InstructionLimit {
				t.Fatalf("%+v", end)
			}
		}
		first, _ = m.Held(dataBase, 8)
		second, _ = m.Held(dataBase+8, 8)
		return first, second, m.r[RCX]
	}
	r.GPR[RCX] = 99
	m := New()
	m.Start(r, mem)
	m.SetTime(start)
	if m.Time().Read {
		t.Error("was read before it was")
	}
	for _, each := range []int{12, 1, 4} {
		if first, second, aux := read(m, each); first != start+1 || second != start+7 || aux != 0 || !m.Time().Read {
			t.Errorf("by %d: %d, %d after the start, processor %d, %+v", each, first-start, second-start, aux, m.Time())
		}
		if m.Rewind(r); m.Time().Read {
			t.Error("was read, after going back")
		}
	}
	m.SetTime(0)
	if end := m.Run(Limit{Accesses: 100, Instructions: 12}); end.Cause != Unsupported || end.Op != "rdtsc" || m.Time().Read {
		t.Errorf("without a time: %+v", end)
	}
}
