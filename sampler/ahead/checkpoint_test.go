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

	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler"
)

// stampAt is a stamp at some microseconds with a first register of its own.
func stampAt(us, first uint64, near byte) sampler.Stamp {
	s := sampler.Stamp{RDXStamp: bpf.RDXStamp{Clock: us * 1000}}
	stampFirst(&s, first)
	for i, addr := range s.Pointers() {
		if addr == first {
			s.Near[i][5] = near
		}
	}
	return s
}

// memoryWith has one byte other than zero where the test's stamps have theirs.
func memoryWith(near byte) func(uint64, []byte) bool {
	return func(addr uint64, b []byte) bool {
		clear(b)
		if addr != 0 {
			b[5] = near
		}
		return true
	}
}

// A stamp is where the thread was once, with the memory near its registers; met twice
// at different accesses, it tells nothing.
func TestMeetings(t *testing.T) {
	stamps := []sampler.Stamp{stampAt(500, 1, 0), stampAt(800, 2, 0), stampAt(1200, 1, 7), stampAt(1800, 3, 0), stampAt(2700, 4, 0), stampAt(2800, 4, 0)}
	m := newMeetings(stamps)
	if open := m.open(); len(open) != 4 {
		t.Fatalf("%d stops are open, want 4: two stamps are the same", len(open))
	}
	m.at(0, true, 10, 100, memoryWith(0))
	m.at(1, true, 20, 200, memoryWith(0))
	m.at(0, true, 30, 300, memoryWith(7)) // the third, which has the first one's registers
	m.at(3, true, 40, 400, memoryWith(1)) // other things lie near it, and it is the only such place
	if got, want := m.accesses(), []int{10, 20, 30, 40, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if m.at(1, true, 20, 210, memoryWith(0)) {
		t.Error("as many accesses: no matter which it was")
	}
	if !m.at(1, true, 50, 500, memoryWith(0)) {
		t.Error("met again, and still open")
	}
	if got, want := m.accesses(), []int{10, -1, 30, 40, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A replay goes on until the last stamp must have come, and no further.
func TestMeetingsFar(t *testing.T) {
	m := newMeetings([]sampler.Stamp{stampAt(500, 1, 0), stampAt(1000, 2, 0)})
	m.open()
	if got := m.far(); got != perNS*1_000_000 {
		t.Errorf("nothing met: %d instructions", got)
	}
	m.at(0, true, 10, 500_000, memoryWith(0))
	if got := m.far(); got != 3*1_000_000 {
		t.Errorf("one instruction a nanosecond: %d", got)
	}
	m.at(1, true, 20, 2_000_000, memoryWith(0))
	if got := m.far(); got != beyond*2_000_000 {
		t.Errorf("the last met after 2,000,000 instructions: %d", got)
	}
	// A program whose rounds are all the same was met in its first one.
	m.fast = 3
	if got := m.far(); got != beyond*2_000_000 {
		t.Errorf("at most 1.5 times as fast as it was met: %d", got)
	}
	m.fast = 8
	if got := m.far(); got != int(beyond*8*1_000_000) {
		t.Errorf("four times as fast as it was met: %d", got)
	}
}

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
