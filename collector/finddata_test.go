package collector

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector/record"
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ahead"
)

// Where a datum lies is told by the mappings of its sample: by those read later something else
// may lie there.
func TestDatumUnmapped(t *testing.T) {
	s, p := ownSession(t)
	at := mapAnonymous(t)
	addr := uint64(uintptr(at))
	p.Look()
	o := &observation{Observation: record.Observation{Process: p, Addr: addr}}
	s.kept.unplaced = append(s.kept.unplaced, o)
	s.handler.LetGo()
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.MmapPtr(int(f.Fd()), 0, at, mappedSize, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
		t.Fatal(err)
	}
	p.Note(1)
	p.Refresh()
	s.targets.findDataAgain()
	if now := p.Datum(addr); now.Kind == model.DataAnonymous {
		t.Fatal("the mapping has not changed")
	}
	if o.Data.Kind != model.DataAnonymous {
		t.Errorf("a datum in anonymous memory that a file has taken the place of after the sample is of kind %d", o.Data.Kind)
	}
}

// A datum that is in no mapping yet is looked for in mappings read since, however often it is asked for between.
func TestDatumMappedSince(t *testing.T) {
	s, p := ownSession(t)
	p.Look()
	at := mapAnonymous(t)
	addr := uint64(uintptr(at))
	o := &observation{Observation: record.Observation{Process: p, Addr: addr}}
	s.kept.unplaced = append(s.kept.unplaced, o)
	for range 2 * placeReadings {
		s.targets.findDataAgain()
	}
	if o.Data.Kind != model.DataUnknown {
		t.Fatalf("a datum that is not mapped yet is of kind %d", o.Data.Kind)
	}
	p.Refresh()
	s.targets.findDataAgain()
	if o.Data.Kind != model.DataAnonymous || len(s.kept.unplaced) > 0 {
		t.Errorf("once its mapping is read it is of kind %d, %d are looked for", o.Data.Kind, len(s.kept.unplaced))
	}

	// What is nowhere is given up, and so is what an ended process had.
	s.kept.unplaced = append(s.kept.unplaced, &observation{Observation: record.Observation{Process: p, Addr: 1 << 60}})
	for range placeReadings {
		s.targets.findDataAgain()
		if len(s.kept.unplaced) != 1 || !p.Unknown {
			t.Fatalf("given up too early, or not asked for: %d, %v", len(s.kept.unplaced), p.Unknown)
		}
		p.ReadMappings()
	}
	s.targets.findDataAgain()
	s.kept.unplaced = append(s.kept.unplaced, &observation{Observation: record.Observation{Process: target.NewSet().Add(1), Addr: 1 << 60}})
	s.targets.findDataAgain()
	if len(s.kept.unplaced) > 0 {
		t.Errorf("%d are looked for for good", len(s.kept.unplaced))
	}
}

// ownSession has this process for its only one.
func ownSession(t *testing.T) (*sampling, *target.Process) {
	set := target.NewSet()
	t.Cleanup(set.Close)
	p := set.Add(os.Getpid())
	return (&sampling{locate: ahead.NewLocator(), cfg: Config{Stack: OwnStack}, targets: targets{processes: set}}).wire(), p
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
