package ahead

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of what is mapped, pages that are there are copied, and what was never touched of
// anonymous memory is zero; what lies in no span is not the checkpoint's.
func TestSpans(t *testing.T) {
	var spans []span
	for i, page := range []uint64{0x1000, 0x2000, 0x3000, 0x8000} {
		spans = addPage(spans, page, uint64(i)*pageSize, 2*pageSize)
	}
	if want := []span{{0x1000, 0x2000, 0}, {0x3000, 0x1000, 0x2000}, {0x8000, 0x1000, 0x3000}}; !slices.Equal(spans, want) {
		t.Fatalf("%v, want %v", spans, want)
	}
	for addr, at := range map[uint64]int64{0x1000: 0, 0x2fff: 0, 0x3000: 0x2000, 0x8000: 0x3000, 0x4000: -1, 0: -1, 0x9000: -1} {
		if s, ok := find(spans, addr); ok != (at >= 0) || ok && s.at != uint64(at) {
			t.Errorf("%#x: %v, %v", addr, s, ok)
		}
	}
}

// Small mappings that nobody has touched are looked at by a few reads.
func TestPlanOfManyMappings(t *testing.T) {
	const many, readsEach = 20_000, 0.1
	b, err := unix.Mmap(-1, 0, many*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	for i := 0; i < many; i += 2 {
		if err := unix.Mprotect(b[i*pageSize:(i+1)*pageSize], unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC); err != nil {
			t.Fatal(err)
		}
	}
	reads := func() (n int) {
		text, err := os.ReadFile("/proc/self/io")
		if err != nil {
			t.Skip(err)
		}
		if _, rest, ok := strings.Cut(string(text), "syscr: "); !ok {
			t.Fatalf("no reads in %q", text)
		} else if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	c := NewCheckpoint()
	before := reads()
	if err := c.Plan(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if n := reads() - before; float64(n) > readsEach*many {
		t.Errorf("%d reads for %d mappings", n, many)
	}
}

// Plan chooses pages of this process's own memory that are there, those that ways came by first, and no more than
// there is room for.
func TestPlanOwnMemory(t *testing.T) {
	c := NewCheckpoint()
	if err := c.Plan(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if n := len(c.planned); n == 0 || n > checkpointPages {
		t.Fatalf("%d pages planned", n)
	}
	hot := make([]byte, 3*checkpointPages*pageSize)
	first := (uint64(uintptr(unsafe.Pointer(&hot[0]))) + pageSize) &^ (pageSize - 1)
	for i := range 2 * checkpointPages {
		page := first + uint64(i)*pageSize
		c.heat[page] = 1
		if i%2 == 0 {
			c.heat[page] = 2
		}
	}
	if err := c.Plan(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	for i := range checkpointPages {
		if page := first + uint64(2*i)*pageSize; !slices.Contains(c.planned, page) {
			t.Fatalf("hot page number %d is not planned", i)
		}
	}
	c.layOut(first + 100)
	bytes := uint64(0)
	for _, s := range c.spans {
		bytes += s.bytes
	}
	if bytes > uint64(len(c.data)) || bytes < checkpointPages*pageSize {
		t.Errorf("%d bytes laid out", bytes)
	}
	runtime.KeepAlive(hot)
}
