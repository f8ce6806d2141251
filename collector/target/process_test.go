package target

import (
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
)

func TestParseMaps(t *testing.T) {
	const maps = `55d0c0000000-55d0c0002000 r--p 00000000 fe:00 12 /usr/bin/a program
55d0c0002000-55d0c0006000 r-xp 00002000 fe:00 12                         /usr/bin/a program
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f1000000000-7f1000001000 r-xp 00000000 00:00 0
7f2000000000-7f2000003000 r-xp 00001000 fe:00 99 /lib/libx.so (deleted)
not a line
zzzz-7f30 r-xp 0 fe:00 1 /x
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
`
	got := executable(parseRegions([]byte(maps)))
	want := []model.Mapping{
		{Start: 0x55d0c0002000, Limit: 0x55d0c0006000, Offset: 0x2000, File: "/usr/bin/a program"},
		{Start: 0x7f1000000000, Limit: 0x7f1000001000},
		{Start: 0x7f2000000000, Limit: 0x7f2000003000, Offset: 0x1000, File: "/lib/libx.so (deleted)"},
		{Start: 0x7ffd00000000, Limit: 0x7ffd00002000, File: "[vdso]"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d mappings, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("mapping %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// mapsOf are lines of /proc/PID/maps.
func mapsOf(lines ...string) []Region {
	return parseRegions([]byte(strings.Join(lines, "\n")))
}

func TestMappingsFind(t *testing.T) {
	p := New(os.Getpid(), library.New())
	p.merge(mapsOf("1000-2000 r-xp 0 00:00 0", "3000-4000 r-xp 0 00:00 0"))
	for pc, want := range map[uint64]uint64{0xfff: 0, 0x1000: 0x1000, 0x1fff: 0x1000, 0x2000: 0, 0x3800: 0x3000, 0x4000: 0} {
		var got uint64
		if m := p.Find(pc); m != nil {
			got = m.Start
		}
		if got != want {
			t.Errorf("find %#x: mapping at %#x, want %#x", pc, got, want)
		}
	}
	known := p.Find(0x1000)
	// What is gone is kept, and what is known stays what it is.
	p.merge(mapsOf("1000-2000 r-xp 0 00:00 0", "5000-6000 r-xp 0 00:00 0"))
	if p.Find(0x1000) != known || p.Find(0x3000) == nil || p.Find(0x5000) == nil || len(p.Mappings) != 3 {
		t.Errorf("after a second reading: %+v", p.Mappings)
	}
	// A new mapping takes the place of what it overlaps.
	p.merge(mapsOf("1800-3800 r-xp 0 00:00 0"))
	if len(p.Mappings) != 2 || p.Find(0x2000).Start != 0x1800 || p.Find(0x1000) != nil || p.Find(0x5000) == nil {
		t.Errorf("overlapped: %+v", p.Mappings)
	}
}

// The process's own mappings are readable without privileges, by whatever
// way to the file there is.
func TestOwnProcess(t *testing.T) {
	p := New(os.Getpid(), library.New())
	defer p.close()
	p.Look()
	if len(p.Mappings) == 0 || p.Facts == nil {
		t.Fatalf("nothing known of ourselves: %+v", p)
	}
	p.Note(1)
	if !p.Unknown {
		t.Error("address 1 is taken for known")
	}
	if !p.library.Settle(10 * time.Second) {
		t.Fatal("files are not open in 10 s")
	}
	if p.Facts.Command() == "" {
		t.Error("no command line")
	}
}

// What is mapped after the mappings were first read, as libraries are by a program that has
// just begun, is found as soon as it is asked for; what is in no mapping is not looked for each time.
func TestMappedSince(t *testing.T) {
	p := New(os.Getpid(), library.New())
	defer p.close()
	p.Look()
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := unix.Mmap(int(f.Fd()), 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(code)
	addr := uint64(uintptr(unsafe.Pointer(&code[0])))
	if p.Find(addr) != nil {
		t.Fatalf("%#x is known before it was mapped", addr)
	}
	p.Note(addr)
	p.Refresh()
	if m := p.Find(addr); m == nil || m.Held == nil {
		t.Fatalf("%#x was mapped since, and is %+v after it was asked for", addr, m)
	}
	for range 20 {
		read := p.read
		p.pause = 0 // it goes by how long the reading took
		p.Note(1)
		if p.Refresh(); p.read == read {
			return
		}
		// Memory of our own may have been mapped since.
	}
	t.Error("the mappings are read whenever an address is in none")
}
