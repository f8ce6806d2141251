package collector

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// A process's own data are where /proc says they are.
func TestDatum(t *testing.T) {
	p := newProcess(os.Getpid(), library.New())
	defer p.close()
	p.look()
	p.regions = parseRegions([]byte(`00400000-00401000 r--p 00000000 08:01 1    /none
10000000-10021000 rw-p 00000000 00:00 0                                  [heap]
20000000-20010000 rw-p 00000000 00:00 0
30000000-30001000 rw-s 00000000 08:01 9    /var/lib/a file
30001000-30002000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
`))
	for _, c := range []struct {
		addr uint64
		kind model.DataKind
		name string
	}{
		{0x10000000, model.DataHeap, ""},
		{0x1001fff8, model.DataHeap, ""},
		{0x10021000, model.DataUnknown, ""},
		{0x20000008, model.DataAnonymous, ""},
		{0x30000008, model.DataFile, "file a file"},
		{0x30001008, model.DataAnonymous, ""}, // behind a file that is no program
		{0x7ffc00000000, model.DataOtherStack, ""},
		{1 << 60, model.DataUnknown, ""},
	} {
		if d := p.datum(c.addr); d.Kind != c.kind || d.Name != c.name {
			t.Errorf("%#x: %+v, want kind %d %q", c.addr, d, c.kind, c.name)
		}
	}
}

func TestHolder(t *testing.T) {
	const sp = 0x1000
	frames := []unwind.Frame{{PC: 1, CFA: 0x1020}, {PC: 2, CFA: 0x1100}, {PC: 3}}
	for addr, want := range map[uint64]int{0: -1, sp - redZone - 8: -1, sp - redZone: 0, sp: 0, 0x1018: 0, 0x1020: 1, 0x10f8: 1, 0x1100: -1, 0x5000: -1} {
		if got := holder(frames, sp, addr); got != want {
			t.Errorf("%#x is in frame %d, want %d", addr, got, want)
		}
	}
}

// Where a datum lies is told by the mappings of its sample: by those read later something else
// may lie there.
func TestDatumUnmapped(t *testing.T) {
	s, p := ownSession(t)
	at := mapAnonymous(t)
	addr := uint64(uintptr(at))
	p.look()
	o := &observation{process: p, addr: addr}
	s.unplaced = append(s.unplaced, o)
	s.LetGo()
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.MmapPtr(int(f.Fd()), 0, at, mappedSize, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
		t.Fatal(err)
	}
	p.note(1)
	p.refresh()
	s.findDataAgain()
	if now := p.datum(addr); now.Kind == model.DataAnonymous {
		t.Fatal("the mapping has not changed")
	}
	if o.data.Kind != model.DataAnonymous {
		t.Errorf("a datum in anonymous memory that a file has taken the place of after the sample is of kind %d", o.data.Kind)
	}
}

// A datum that is in no mapping yet is looked for in mappings read since, however often it is asked for between.
func TestDatumMappedSince(t *testing.T) {
	s, p := ownSession(t)
	p.look()
	at := mapAnonymous(t)
	addr := uint64(uintptr(at))
	o := &observation{process: p, addr: addr}
	s.unplaced = append(s.unplaced, o)
	for range 2 * placeReadings {
		s.findDataAgain()
	}
	if o.data.Kind != model.DataUnknown {
		t.Fatalf("a datum that is not mapped yet is of kind %d", o.data.Kind)
	}
	p.refresh()
	s.findDataAgain()
	if o.data.Kind != model.DataAnonymous || len(s.unplaced) > 0 {
		t.Errorf("once its mapping is read it is of kind %d, %d are looked for", o.data.Kind, len(s.unplaced))
	}

	// What is nowhere is given up, and so is what an ended process had.
	s.unplaced = append(s.unplaced, &observation{process: p, addr: 1 << 60})
	for range placeReadings {
		s.findDataAgain()
		if len(s.unplaced) != 1 || !p.unknown {
			t.Fatalf("given up too early, or not asked for: %d, %v", len(s.unplaced), p.unknown)
		}
		p.readMappings()
	}
	s.findDataAgain()
	s.unplaced = append(s.unplaced, &observation{process: newProcess(1, p.library), addr: 1 << 60})
	s.findDataAgain()
	if len(s.unplaced) > 0 {
		t.Errorf("%d are looked for for good", len(s.unplaced))
	}
}

// ownSession has this process for its only one.
func ownSession(t *testing.T) (*Session, *process) {
	p := newProcess(os.Getpid(), library.New())
	t.Cleanup(p.close)
	return &Session{processes: map[int]*process{p.pid: p}, locate: ahead.NewLocator(), cfg: Config{Stack: OwnStack}}, p
}

const mappedSize = 1 << 20

// mapAnonymous gives the address of mappedSize bytes of anonymous memory, apart from other such.
func mapAnonymous(t *testing.T) unsafe.Pointer {
	t.Helper()
	b, err := unix.Mmap(-1, 0, 3*mappedSize, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	if err := unix.Mprotect(b[mappedSize:2*mappedSize], unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	return unsafe.Pointer(&b[mappedSize])
}
