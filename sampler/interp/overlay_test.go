package interp

import (
	"encoding/binary"
	"errors"
	"runtime"
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

// A copy of the target's memory shows the burst's stores under Overlay, in every
// page that the copy overlaps, and nothing else.
func TestOverlay(t *testing.T) {
	mem := new(onePage)
	binary.LittleEndian.PutUint64(mem.data[8:], 42)
	// mov [rdi], rax
	copy(mem.data[0x100:], []byte{0x48, 0x89, 0x07})
	m := New()
	regs := &Regs{RIP: 0x10100}
	regs.GPR[RDI], regs.GPR[RAX] = 0x10010, 7
	m.Start(regs, mem)
	if end := m.Run(Limit{Accesses: 1, Instructions: 1}); end.Cause != AccessesDone {
		t.Fatalf("store: %+v", end)
	}
	whole := append(make([]byte, 0x1000), mem.data[:]...)
	whole = append(whole, make([]byte, 0x1000)...)
	for _, c := range []struct{ from, to uint64 }{{0x10000, 0x11000}, {0x10008, 0x10020}, {0x10010, 0x10018}, {0xf000, 0x12000}, {0xfff8, 0x10040}, {0x10018, 0x10020}, {0xf000, 0x10000}} {
		b := append([]byte(nil), whole[c.from-0xf000:c.to-0xf000]...)
		want := append([]byte(nil), b...)
		if c.from <= 0x10010 && c.to >= 0x10018 {
			want[0x10010-c.from] = 7
		}
		end := min(c.to, 0x11000)
		if c.from >= 0x11000 || c.to <= 0x10000 {
			end = c.from
		}
		if n := m.StoredTo(c.from, len(b)); n != int(end-c.from) {
			t.Errorf("%#x to %#x: stored to the first %d bytes, want %d", c.from, c.to, n, end-c.from)
		}
		m.Overlay(c.from, b)
		if string(b) != string(want) {
			t.Errorf("%#x to %#x: wrong", c.from, c.to)
		}
	}
	if v := binary.LittleEndian.Uint64(mem.data[16:]); v != 0 {
		t.Error("the store reached the target")
	}
}

// What the burst holds is told without asking the target: across pages, too, and with the burst's stores.
func TestHeld(t *testing.T) {
	mem := new(onePage)
	binary.LittleEndian.PutUint64(mem.data[8:], 0x1122334455667788)
	copy(mem.data[pageSize-3:], []byte{1, 2, 3})
	m := New()
	m.Start(&Regs{}, mem)
	if _, ok := m.Held(0x10008, 8); ok {
		t.Error("tells what was not read")
	}
	var b [1]byte
	m.Load(0x10000, b[:])
	for _, c := range []struct {
		addr uint64
		n    uint8
		want uint64
		ok   bool
	}{{0x10008, 8, 0x1122334455667788, true}, {0x10008, 2, 0x7788, true}, {0x10ffd, 2, 0x0201, true}, {0x10fff, 1, 3, true}, {0x10ffd, 4, 0, false}, {0x20000, 1, 0, false}} {
		if got, ok := m.Held(c.addr, c.n); got != c.want || ok != c.ok {
			t.Errorf("%d bytes at %#x: %#x, %v", c.n, c.addr, got, ok)
		}
	}
	m.Poke(0x10008, 4, 7)
	if got, _ := m.Held(0x10008, 8); got != 0x1122334400000007 {
		t.Errorf("after a store: %#x", got)
	}
}

// zeros is a memory that is zero everywhere.
type zeros struct{}

func (zeros) ReadPage(_ uint64, buf *[pageSize]byte) error { clear(buf[:]); return nil }

// The first burst finds room for all pages that it reads and stores to.
func TestPagesReserve(t *testing.T) {
	const n = 1000
	once := func(reserve int) uint64 {
		m := NewPages(func(uint64) {})
		m.Reserve(reserve)
		m.Reset(zeros{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range uint64(n) {
			m.Poke(i*pageSize, 8, i)
		}
		runtime.ReadMemStats(&after)
		for i := range uint64(n) {
			if got := m.Peek(i*pageSize, 8); got != i {
				t.Fatalf("page %d holds %d", i, got)
			}
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	// What is counted is the whole process's: now and then the runtime's own is among it, never less than ours.
	grown := func(reserve int) uint64 {
		least := once(reserve)
		for range 4 {
			least = min(least, once(reserve))
		}
		return least
	}
	if got := grown(n); got > 4096 {
		t.Errorf("%d bytes were taken beyond what was reserved", got)
	}
	if got := grown(0); got < 2*n*pageSize {
		t.Errorf("without room reserved only %d bytes were taken: the test does not see it", got)
	}
}
