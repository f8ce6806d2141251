package pipeline

import (
	"math"
	"testing"
)

// code lays instructions one after the other.
type code struct {
	bytes map[uint64][]byte
}

func (c *code) at(pc uint64) []byte {
	return append(append([]byte(nil), c.bytes[pc]...), make([]byte, 15)...)
}

// loop is so many laps through instructions, the last of which jumps back but for the last time.
func loop(laps int, insts ...[]byte) (path []uint64, c *code) { return loopAt(0x1000, laps, insts...) }

func loopAt(start uint64, laps int, insts ...[]byte) (path []uint64, c *code) {
	c = &code{bytes: map[uint64][]byte{}}
	for range laps {
		pc := uint64(start)
		for _, in := range insts {
			c.bytes[pc] = in
			path = append(path, pc)
			pc += uint64(len(in))
		}
	}
	return path, c
}

var (
	costs    = Costs{Cycle: 0.25, Waits: [Levels]float64{1, 4, 12, 100}, Rows: [Levels]float64{0.25, 0.5, 1, 4}}
	addEAX   = []byte{0x01, 0xd8}                                               // add %ebx, %eax
	addNext  = [][]byte{{0x01, 0xd9}, {0x01, 0xda}, {0x01, 0xde}, {0x01, 0xdf}} // add %ebx, to four others
	mulRAX   = []byte{0x48, 0x0f, 0xaf, 0xc0}                                   // imul %rax, %rax
	chase    = []byte{0x48, 0x8b, 0x00}                                         // mov (%rax), %rax
	load     = []byte{0x48, 0x8b, 0x0b}                                         // mov (%rbx), %rcx
	storeRCX = []byte{0x48, 0x89, 0x0b}                                         // mov %rcx, (%rbx)
	mulAVX   = []byte{0xc5, 0xf1, 0x59, 0xc9}                                   // vmulpd %xmm1, %xmm1, %xmm1
	zeroXMM  = []byte{0xc5, 0xf1, 0xef, 0xc9}                                   // vpxor %xmm1, %xmm1, %xmm1
	jump     = []byte{0x75, 0xf0}                                               // jne
)

// What instructions wait for each other takes is known by construction, in cycles of a lap.
func TestCyclesOfALap(t *testing.T) {
	for _, c := range []struct {
		name  string
		insts [][]byte
		want  float64
	}{
		{"additions in a chain", [][]byte{addEAX}, 1},
		{"multiplications in a chain", [][]byte{mulRAX}, 3},
		{"independent additions", addNext, 1},
		{"vectors in a chain", [][]byte{mulAVX}, 4},
		{"a pause lets nothing behind it enter", [][]byte{{0xf3, 0x90}, addEAX, addEAX}, pause + 3/width},
		{"a chain that is cut", [][]byte{mulAVX, zeroXMM, zeroXMM, mulAVX, zeroXMM, zeroXMM}, 6 / width},
	} {
		const laps = 1000
		path, code := loop(laps, c.insts...)
		took := New(costs).Foretell(path, nil, code.at)
		if lap := took.Near / costs.Cycle / laps; math.Abs(lap-c.want) > 0.1*c.want+0.02 {
			t.Errorf("%s: %.2f cycles a lap, want %.2f", c.name, lap, c.want)
		}
	}
}

// A line of code takes a cycle, and so does each jump: the same four instructions take one in one line, two in two.
func TestLinesOfCode(t *testing.T) {
	const laps = 1000
	for start, want := range map[uint64]float64{0x1000: 1, 0x103b: 2, 0x1038: 1} {
		path, code := loopAt(start, laps, addNext...)
		took := New(costs).Foretell(path, nil, code.at)
		if lap := took.Near / costs.Cycle / laps; math.Abs(lap-want) > 0.05 {
			t.Errorf("from %#x: %.2f cycles a lap, want %.0f", start, lap, want)
		}
	}
}

// accessesOf has each lap of two access memory at what at says.
func accessesOf(laps, perLap int, at func(lap int) (addr uint64, row bool)) (out []Access) {
	for lap := range laps {
		addr, row := at(lap)
		out = append(out, Access{Addr: addr, Size: 8, Inst: int32(lap * perLap), Row: row})
	}
	return out
}

// What accesses wait for: one after the other, several at a time, and in rows.
func TestWaits(t *testing.T) {
	const laps = 1000
	far := func(lap int) (uint64, bool) { return uint64(lap) * 4096 * 7, false }
	row := func(lap int) (uint64, bool) { return uint64(lap) * 64, true }
	near := func(lap int) (uint64, bool) { return 0x100 * uint64(lap%4), false }
	for _, c := range []struct {
		name     string
		inst     []byte
		at       func(int) (uint64, bool)
		memory   float64 // ns an access from memory, and where it is in the first cache
		nearNS   float64
		fewShare float64 // of the time from memory if one in eight is
	}{
		{"a chase", chase, far, 100, 1, 1.0 / 8},
		{"independent", load, far, 99.0 / fills, 0.1, 0.2},
		{"a row", load, row, 4, 0.1, 0.2},
		{"a chase of few lines", chase, near, 1.4, 1, 1},
	} {
		path, code := loop(laps, c.inst)
		took := New(costs).Foretell(path, accessesOf(laps, 1, c.at), code.at)
		per := func(ns float64) float64 { return ns / laps }
		if got := per(took.Near); math.Abs(got-c.nearNS) > 0.15*c.nearNS {
			t.Errorf("%s: %.2f ns an access from the first cache, want %.2f", c.name, got, c.nearNS)
		}
		memory := per(took.Elapsed([Levels - 1]float64{0, 0, 1}))
		if math.Abs(memory-c.memory) > 0.15*c.memory {
			t.Errorf("%s: %.2f ns an access from memory, want %.2f", c.name, memory, c.memory)
		}
		if few := per(took.Elapsed([Levels - 1]float64{0, 0, 1.0 / 8})); few > c.nearNS+c.memory*c.fewShare*1.5 {
			t.Errorf("%s: %.2f ns an access if one in eight comes from memory", c.name, few)
		}
	}
}

// Of the lines of a chase each is new, but one in ten comes from memory: those that do not come again, each of which is waited for. That all may
// as well come from it shows only when more do.
func TestWaitsOfLoneLines(t *testing.T) {
	const laps = 1000
	far := func(lap int) (uint64, bool) { return uint64(lap) * 4096 * 7, false }
	path, code := loop(laps, chase)
	accesses := accessesOf(laps, 1, far)
	for i := range accesses {
		accesses[i].Lone = i%10 == 0
	}
	took := New(costs).Foretell(path, accesses, code.at)
	if took.Lone != laps/10 || took.Cold != laps {
		t.Errorf("%d of %d lines are lone", took.Lone, took.Cold)
	}
	for share, want := range map[float64]float64{0.1: 10, 0.05: 5, 0.2: 20} { // ns an access more
		if got := (took.Elapsed([Levels - 1]float64{0, 0, share}) - took.Near) / laps; math.Abs(got-want) > 0.15*want {
			t.Errorf("%v of the lines from memory: %.2f ns an access more, want %.2f", share, got, want)
		}
	}
}

// A load waits for the store of its word.
func TestForwarding(t *testing.T) {
	const laps = 1000
	path, code := loop(laps, load, addRCX, storeRCX)
	var accesses []Access
	for lap := range laps {
		at := int32(3 * lap)
		accesses = append(accesses, Access{Addr: 0x100, Size: 8, Inst: at}, Access{Addr: 0x100, Size: 8, Inst: at + 2, Store: true})
	}
	took := New(costs).Foretell(path, accesses, code.at)
	if lap := took.Near / costs.Cycle / laps; math.Abs(lap-5) > 0.3 {
		t.Errorf("%.2f cycles a lap, want 4 for the word and 1 for the sum", lap)
	}
}

var addRCX = []byte{0x48, 0x83, 0xc1, 0x01} // add $1, %rcx

// Branches that repeat are learnt, ones by chance are not.
func TestPredictor(t *testing.T) {
	chance := func(seed uint64) func() bool {
		return func() bool { seed = seed*6364136223846793005 + 1442695040888963407; return seed>>40&1 == 1 }
	}
	random := chance(1)
	n := 0
	for _, c := range []struct {
		name        string
		taken       func() bool
		least, most float64
	}{
		{"always", func() bool { return true }, 0, 0.01},
		{"every fourth", func() bool { n++; return n%4 == 0 }, 0, 0.02},
		{"by chance", random, 0.4, 0.6},
	} {
		var p predictor
		wrong := 0
		const times = 4000
		for range times {
			if !p.conditional(0x4000, c.taken()) {
				wrong++
			}
		}
		if share := float64(wrong) / times; share < c.least || share > c.most {
			t.Errorf("%s: %.3f foretold wrongly, want %v to %v", c.name, share, c.least, c.most)
		}
	}
}

func BenchmarkForetell(b *testing.B) {
	const laps = 1024
	path, code := loop(laps, load, addRCX, storeRCX, jump)
	var accesses []Access
	for lap := range laps {
		at := int32(4 * lap)
		accesses = append(accesses, Access{Addr: uint64(lap) * 24, Size: 8, Inst: at}, Access{Addr: uint64(lap) * 24, Size: 8, Inst: at + 2, Store: true})
	}
	m := New(costs)
	for b.Loop() {
		m.Foretell(path, accesses, code.at)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(path)), "ns/instruction")
}
