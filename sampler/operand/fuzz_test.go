// Needs: nothing for the fuzz targets; TestX86RandomBytes needs objdump and llvm-config with g++.

package operand

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func FuzzDecodeX86(f *testing.F) {
	for _, s := range []string{"f3a4", "62f17458585001", "c4c255905ca500", "670fb35322", "66e9dd00", "f248e15b", "8f442408", "0f01d5", "d9fa", "62f27d49a14b22"} {
		f.Add(unhex(f, s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, code []byte, seed uint64) {
		in, err := DecodeX86(code)
		if err != nil {
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("%x: error of no known kind: %v", code, err)
			}
			return
		}
		if in.Len == 0 || int(in.Len) > min(len(code), maxX86Len) {
			t.Fatalf("%x: length %d", code, in.Len)
		}
		// The instruction does not depend on what follows it, and needs all its bytes.
		again, err := DecodeX86(append(bytes.Clone(code[:in.Len]), 0xcc, 0xcc))
		if err != nil || again != in {
			t.Fatalf("%x: %+v alone, %+v with more behind, error %v", code, again, in, err)
		}
		if _, err := DecodeX86(code[:in.Len-1]); err == nil {
			t.Fatalf("%x decodes without its last byte", code[:in.Len])
		}
		regs := randomX86Regs(rand.New(rand.NewPCG(seed, 0)), seed)
		for i := range regs.Vec.K {
			regs.Vec.K[i] = seed >> i
		}
		got, err := in.Accesses(regs, nil)
		if err != nil {
			t.Fatalf("%x: %v", code, err)
		}
		checkAccesses(t, code, got, in.Loads(), in.Stores())
		regs.Vec = nil
		if _, err := in.Accesses(regs, nil); err != nil && !errors.Is(err, ErrNeedVectors) {
			t.Fatalf("%x without vectors: %v", code, err)
		}
		in.Taken(regs)
	})
}

func FuzzDecodeARM64(f *testing.F) {
	for _, w := range []uint32{0xf9400000, 0x3cc10420, 0xd50b7423, 0x0c40a041, 0xf8200420, 0x38bfc020} {
		f.Add(w, uint64(1))
	}
	f.Fuzz(func(t *testing.T, w uint32, seed uint64) {
		code := binary.LittleEndian.AppendUint32(nil, w)
		in, err := DecodeARM64(code)
		if err != nil {
			if !errors.Is(err, ErrUnsupported) {
				t.Fatalf("%08x: error of no known kind: %v", w, err)
			}
			return
		}
		regs := &ARM64Regs{SP: seed, PC: ^seed, ZVABlock: 64}
		got, err := in.Accesses(regs, nil)
		if err != nil {
			t.Fatalf("%08x: %v", w, err)
		}
		checkAccesses(t, code, got, in.Loads(), in.Stores())
		in.Taken(regs)
	})
}

// checkAccesses holds what is true of every result.
func checkAccesses(t *testing.T, code []byte, got []Access, loads, stores bool) {
	t.Helper()
	if len(got) > 3 {
		t.Fatalf("%x: %d accesses", code, len(got))
	}
	for _, a := range got {
		if a.Size < 1 || a.Size > 512 || a.Elements == 0 || a.Store && !stores || !a.Store && !loads {
			t.Fatalf("%x: access %+v, loads %v, stores %v", code, a, loads, stores)
		}
	}
}

// TestX86RandomBytes compares lengths on random bytes where all decoders accept them.
func TestX86RandomBytes(t *testing.T) {
	const seed = 25
	t.Logf("seed %d", seed)
	exe := buildLLVMOracle(t)
	n := 200_000
	if os.Getenv("RDX_LONG") != "" {
		n = 5_000_000
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var codes [][]byte
	var insts []X86Inst
	for range n {
		code := make([]byte, maxX86Len)
		for i := range code {
			code[i] = byte(rng.Uint32())
		}
		// Half of them start with what leads to the larger maps.
		if lead := [][]byte{{0x0f}, {0xc5}, {0xc4, 0xe1}, {0xc4, 0xe2}, {0x62, 0xf1}, {0x62, 0xf2}, {0x66, 0x0f, 0x38}, {0xf3, 0x0f}}; rng.IntN(2) == 0 {
			copy(code, lead[rng.IntN(len(lead))])
		}
		if lockAt(code) >= 0 {
			continue // LLVM takes the prefix for an instruction of its own
		}
		in, err := DecodeX86(code)
		if err == nil {
			codes, insts = append(codes, code), append(insts, in)
		} else if !errors.Is(err, ErrUnsupported) {
			t.Fatalf("%x: %v", code, err)
		}
	}
	bad := newMismatches()
	compared := 0
	for i, info := range askLLVM(t, exe, "x86_64", x86LLVMFeatures, codes) {
		if info.len == 0 || strings.HasSuffix(info.name, "_PREFIX") {
			continue
		}
		compared++
		if info.len != int(insts[i].Len) {
			bad.add("length: "+info.name, "%x: %d, LLVM %d", codes[i], insts[i].Len, info.len)
		}
	}
	bad.report(t)
	t.Logf("%d random strings, %d decoded, %d of them by LLVM too", n, len(codes), compared)
}
