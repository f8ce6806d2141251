package target

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/rdx-profiler/rdx/collector/library"
	"github.com/rdx-profiler/rdx/model"
)

// A process's own data are where /proc says they are.
func TestDatum(t *testing.T) {
	p := New(os.Getpid(), library.New())
	defer p.close()
	p.Look()
	p.Regions = parseRegions([]byte(`00400000-00401000 r--p 00000000 08:01 1    /none
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
		if d := p.Datum(c.addr); d.Kind != c.kind || d.Name != c.name {
			t.Errorf("%#x: %+v, want kind %d %q", c.addr, d, c.kind, c.name)
		}
	}
}

var inData, inBSS = [4096]byte{1}, [4096]byte{}

// A program's data have their name though its file is opened only after they were sampled, and though others
// lie there since; of a file that never answers they are named by the mapping.
func TestDatumBeforeOpen(t *testing.T) {
	static := map[string]uint64{"data": uint64(uintptr(unsafe.Pointer(&inData))), "bss": uint64(uintptr(unsafe.Pointer(&inBSS)))}
	for _, answers := range []bool{true, false} {
		l := library.New()
		open := make(chan struct{})
		release := sync.OnceFunc(func() { close(open) })
		defer release()
		for range 8 { // more than it does at a time
			l.Do(func() { <-open })
		}
		p := New(os.Getpid(), l)
		defer p.close()
		p.Look()
		got := make(map[string]*model.Data)
		for name, addr := range static {
			got[name] = new(model.Data)
			if !p.Place(addr, got[name]) {
				t.Fatalf("%s, at %#x, is in no mapping", name, addr)
			}
			if d := p.Datum(addr); d.Kind != model.DataFile {
				t.Errorf("%s before the file is open: %+v", name, d)
			}
		}
		p.NameData(false)
		p.Regions = nil
		if answers {
			release()
			if !l.Settle(10 * time.Second) {
				t.Fatal("the library does not come to its end")
			}
		}
		p.NameData(!answers)
		for name, d := range got {
			switch {
			case answers && (d.Kind != model.DataStatic || d.Mapping == nil):
				t.Errorf("%s is %+v, want a static datum", name, d)
			case !answers && (d.Kind != model.DataFile || d.Name != "file "+filepath.Base(os.Args[0])):
				t.Errorf("%s of a file that does not answer is %+v", name, d)
			}
		}
		if len(p.unnamed) > 0 {
			t.Errorf("%d wait for good", len(p.unnamed))
		}
	}
}
