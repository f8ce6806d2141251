package a64

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// onePage is code and nothing else.
type onePage []uint32

func (p onePage) ReadPage(addr uint64, buf *[4096]byte) error {
	if addr != 0x10000 {
		return errors.New("no such page")
	}
	clear(buf[:])
	for i, w := range p {
		binary.LittleEndian.PutUint32(buf[4*i:], w)
	}
	return nil
}

// What the clock is taken to be goes on with the instructions, and is the same again, however far each Run goes.
func TestTime(t *testing.T) {
	const nop, readTime, readTimeInOrder = 0xd503201f, 0xd53be041, 0xd53be0c2 // to x1 and x2
	code := make(onePage, 66)
	for i := range code {
		code[i] = nop
	}
	code[1], code[65] = readTime, readTimeInOrder
	m, r := New(), Regs{PC: 0x10000}
	m.Start(&r, code)
	m.SetTime(1 << 40)
	for _, each := range []int{66, 1, 11} {
		for range 66 / each {
			if end := m.Run(interp.Limit{Accesses: 1, Instructions: each}); end.Cause != interp.InstructionLimit {
				t.Fatalf("%+v", end)
			}
		}
		var after Regs
		if m.Regs(&after); after.X[1] != 1<<40 || after.X[2] != 1<<40+2 || !m.Time().Read {
			t.Errorf("by %d: %d, %d after the start, %+v", each, after.X[1]-1<<40, after.X[2]-1<<40, m.Time())
		}
		m.Rewind(&r)
	}
	m.SetTime(0)
	if end := m.Run(interp.Limit{Accesses: 1, Instructions: 9}); end.Cause != interp.Unsupported || end.Instructions != 1 {
		t.Errorf("without a time: %+v", end)
	}
}
