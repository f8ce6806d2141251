package interp

import (
	"encoding/binary"
	"errors"
	"testing"
)

type onePage struct{ data [pageSize]byte }

func (o *onePage) ReadPage(addr uint64, buf *[pageSize]byte) error {
	if addr != 0x10000 {
		return errors.New("not mapped")
	}
	*buf = o.data
	return nil
}

func TestPeek(t *testing.T) {
	mem := new(onePage)
	binary.LittleEndian.PutUint64(mem.data[8:], 42)
	// mov [rdi], rax
	copy(mem.data[0x100:], []byte{0x48, 0x89, 0x07})
	m := New()
	regs := &Regs{RIP: 0x10100}
	regs.GPR[RDI], regs.GPR[RAX] = 0x10010, 7
	m.Start(regs, mem)
	if v, ok := m.Peek(0x10008); !ok || v != 42 {
		t.Errorf("peek: %d, %v", v, ok)
	}
	if end := m.Run(Limit{Accesses: 1, Instructions: 1}); end.Cause != AccessesDone {
		t.Fatalf("store: %+v", end)
	}
	if v, ok := m.Peek(0x10010); !ok || v != 7 {
		t.Errorf("peek does not see the burst's own store: %d, %v", v, ok)
	}
	if _, ok := m.Peek(0x20000); ok {
		t.Error("peek reads what is not mapped")
	}
	if _, ok := m.Peek(0x10ffc); ok {
		t.Error("peek reads over the end of the mapping")
	}
	if v := binary.LittleEndian.Uint64(mem.data[16:]); v != 0 {
		t.Error("the store reached the target")
	}
}
