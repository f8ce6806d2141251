package pprofout

import (
	"bytes"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// What is read of a function table is what debug/gosym says of it, all through this program.
func TestPCLNAsGosym(t *testing.T) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	e, err := objfile.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	table, text := e.Section(".gopclntab"), e.Section(".text")
	if table == nil || text == nil {
		t.Skip("needs a static Go program")
	}
	data, err := table.Data()
	if err != nil {
		t.Fatal(err)
	}
	want, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		t.Fatal(err)
	}
	var pcs []uint64
	for pc := text.Addr; pc < text.Addr+text.Size; pc += 97 {
		pcs = append(pcs, pc)
	}
	found := map[uint64][]model.Line{}
	if err := lookupPCLN(e, pcs, found); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for _, pc := range pcs {
		file, line, fn := want.PCToLine(pc)
		if fn == nil || fn.Name == "" {
			continue
		}
		if got := found[pc]; len(got) != 1 || got[0].Function != fn.Name || got[0].File != file || got[0].Line != line {
			if wrong++; wrong < 5 {
				t.Errorf("%#x: %+v, want %s %s:%d", pc, got, fn.Name, file, line)
			}
		}
	}
	t.Logf("%d of %d addresses are wrong; %d named", wrong, len(pcs), len(found))
	if len(found) < 1000 {
		t.Errorf("%d of %d addresses are named", len(found), len(pcs))
	}
}

// madePCLN is a table of so many functions, each of 16 bytes from 0x1000 on, whose names overlap: one byte apart.
func madePCLN(n int) []byte {
	order := binary.LittleEndian
	const header = 8 + 8*8
	names := append(bytes.Repeat([]byte("a"), n+8), 0)
	var functions, data []byte
	for i := range n {
		functions = order.AppendUint32(functions, uint32(16*i))
		functions = order.AppendUint32(functions, uint32(8*n+8+40*i))
		data = order.AppendUint32(data, uint32(16*i))
		data = order.AppendUint32(data, uint32(i))
		data = append(data, make([]byte, 32)...)
	}
	functions = order.AppendUint32(functions, uint32(16*n))
	functions = append(functions, 0, 0, 0, 0)
	b := order.AppendUint32(nil, 0xfffffff1)
	b = append(b, 0, 0, 1, 8)
	for _, word := range []int{n, 0, 0x1000, header, header, header, header, header + len(names)} {
		b = order.AppendUint64(b, uint64(word))
	}
	return append(append(append(b, names...), functions...), data...)
}

// A small file can have names that are many times its size, as they may overlap.
func TestPCLNNamesOverlap(t *testing.T) {
	const n = 12_000
	table := madePCLN(n)
	start := processTime()
	tab, err := newPCLN(table, binary.LittleEndian, 0x1000)
	if err != nil {
		t.Fatal(err)
	}
	tab.limit = &timeLimit{end: start + time.Hour}
	for i := range uint64(n) {
		if l, ok := tab.line(0x1000 + 16*i + 3); !ok || len(l.Function) != int(min(n+8-i, mostPerfMapName)) {
			t.Fatalf("function %d: %v, a name of %d bytes", i, ok, len(l.Function))
		}
	}
	if _, ok := tab.line(0xfff); ok {
		t.Error("an address before the first function is named")
	}
	if _, ok := tab.line(0x1000 + 16*n); ok {
		t.Error("an address behind the last function is named")
	}
	elapsed := processTime() - start
	t.Logf("%d bytes: %v", len(table), elapsed)
	if elapsed > time.Second {
		t.Errorf("%d bytes take %v", len(table), elapsed)
	}
}

// Whatever a table says costs neither much time nor memory.
func FuzzPCLN(f *testing.F) {
	f.Add(madePCLN(3), uint64(0x1010))
	for _, magic := range []uint32{0xfffffffb, 0xfffffffa, 0xfffffff0} {
		b := madePCLN(3)
		binary.LittleEndian.PutUint32(b, magic)
		f.Add(b, uint64(0x1010))
	}
	f.Fuzz(func(t *testing.T, b []byte, pc uint64) {
		bounded(t, len(b), func() {
			tab, err := newPCLN(b, binary.LittleEndian, 0x1000)
			if err != nil {
				return
			}
			tab.limit = newTimeLimit(&elf.File{})
			for i := range uint64(16) {
				tab.line(pc + i*i)
			}
		})
	})
}
