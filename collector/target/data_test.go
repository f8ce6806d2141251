package target

import (
	"os"
	"testing"

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
