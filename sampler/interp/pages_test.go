package interp

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

// numbered is memory whose pages begin with their numbers, and count how often they were read.
type numbered map[uint64]int

func (n numbered) ReadPage(addr uint64, buf *[4096]byte) error {
	if addr == 0 {
		return errors.New("no page")
	}
	n[addr/pageSize]++
	binary.LittleEndian.PutUint64(buf[:], addr/pageSize)
	return nil
}

// Where there are more pages than room, those that were not stored to are read again. Stores and code stay.
func TestRecycle(t *testing.T) {
	const pages = 3 * maxPages
	mem := numbered{}
	p := NewPages(func(uint64) { t.Error("code changed") })
	p.Reset(mem)
	p.Recycle()
	rng := rand.New(rand.NewPCG(1, 2))
	p.Code(pageSize)
	stored := map[uint64]uint64{}
	for range 3 * pages {
		num := 2 + rng.Uint64N(pages)
		at := num*pageSize + pageSize - 4 // with some of the next one
		if v := p.Peek(num*pageSize, 8); v != num {
			t.Fatalf("page %d has %d", num, v)
		}
		if rng.IntN(30) == 0 && len(stored) < maxPages/4 {
			stored[at] = rng.Uint64() << 32 >> 32
			p.Poke(at, 4, stored[at])
			p.Write(at-8, []byte{1, 2, 3, 4, 5, 6, 7, 8})
		}
	}
	if p.again <= 0 || p.again > maxAgain-pages/2 || p.used > maxPages || len(p.pages) != p.used {
		t.Errorf("%d of %d times, %d pages, %d found", maxAgain-p.again, maxAgain, p.used, len(p.pages))
	}
	for at, v := range stored {
		if got := p.Peek(at, 4); got != v || p.Peek(at-8, 8) != 0x0807060504030201 {
			t.Errorf("%#x: %#x, want %#x", at, got, v)
		}
		if n := mem[at/pageSize]; p.Peek(at&^pageMask, 8) != at/pageSize {
			t.Errorf("page %d, read %d times: not its own", at/pageSize, n)
		}
	}
	if mem[1] != 1 {
		t.Errorf("code was read %d times", mem[1])
	}
	func() {
		defer func() {
			if h, ok := recover().(Halt); !ok || h.Cause != MemoryLimit {
				t.Errorf("all stored to, and one more: %v", h)
			}
		}()
		for num := uint64(2); num < 2+pages; num++ {
			p.Poke(num*pageSize+16, 8, num)
		}
		t.Error("no end")
	}()
	p.Reset(mem)
	if p.again != 0 {
		t.Error("the next burst does it too")
	}
}
