// Needs: nothing.
package target

import (
	"debug/elf"
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
)

// Where code lies in a file is told by a mapping of another part of it, whatever the distances of segments.
func TestPartsIn(t *testing.T) {
	loads := []elf.ProgHeader{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Off: 0, Vaddr: 0, Filesz: 0x5a0},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Off: 0x5a0, Vaddr: 0x15a0, Filesz: 0x5000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Off: 0x55a0, Vaddr: 0x75a0, Filesz: 0x100},
	}
	const bias = 0x7f0000000000
	for _, neighbour := range []Region{
		{Start: bias, Limit: bias + 0x1000},
		{Start: bias + 0x7000, Limit: bias + 0x8000, offset: 0x5000},
	} {
		if got := partsIn(loads, &neighbour, bias+0x1000, bias+0x7000); !slices.Contains(got, filePart{0, 0x55a0}) {
			t.Errorf("beside %#x: %#x; want 0 to 0x55a0 among them", neighbour.Start, got)
		}
		if got := partsIn(loads, &neighbour, bias+0x3000, bias+0x4000); !slices.Contains(got, filePart{0x2000, 0x55a0}) {
			t.Errorf("a part: %#x", got)
		}
		if got := partsIn(loads, &neighbour, bias+0x9000, bias+0xa000); len(got) > 0 {
			t.Errorf("code behind the file is taken for the file's: %#x", got)
		}
	}
}

// Only the very bytes count.
func TestSameBytes(t *testing.T) {
	l := library.New()
	defer l.Close()
	name := t.TempDir() + "/file"
	content := make([]byte, 8*pageSize)
	for i := range content {
		content[i] = byte(i*7 + i>>8)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, len(content), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	regions := ownRegions(t)
	i, ok := RegionOf(regions, addressOf(mapped))
	if !ok {
		t.Fatal("the mapping is not found")
	}
	r := regions[i]
	file := l.Hold(r.key, library.Place{Via: os.Getpid(), Start: r.Start, Limit: r.Limit, Name: name})
	if file.Err() != nil {
		t.Skip("what is mapped can't be opened here:", file.Err())
	}
	copied, err := unix.Mmap(-1, 0, len(content), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(copied)
	at := addressOf(copied)
	same := func() bool { return sameBytes(os.Getpid(), at, at+uint64(len(copied)), file, 0) }
	if same() {
		t.Error("zeros are the same")
	}
	copy(copied, content)
	if !same() {
		t.Error("the same bytes are not")
	}
	copied[100] ^= 0xff // a probe
	if !same() {
		t.Error("with a byte patched they are not")
	}
	copy(copied, content[1:])
	if same() {
		t.Error("others are the same")
	}
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

func ownRegions(t *testing.T) []Region {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return parseRegions(maps)
}
