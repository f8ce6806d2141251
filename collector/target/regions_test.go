package target

import (
	"strings"
	"testing"
)

// Any lines for /proc/PID/maps are regions or are passed over.
func FuzzParseRegions(f *testing.F) {
	f.Add("55d0-55e0 r-xp 00001000 fe:00 123  /usr/bin/with space\n7fff-8000 rw-p 0 00:00 0 [stack]\n", uint64(0x55d8))
	f.Add("1-2 r\n-1 rwxp 0 0 0\n", uint64(0))
	f.Fuzz(func(t *testing.T, s string, addr uint64) {
		regions := parseRegions([]byte(s))
		if len(regions) > strings.Count(s, "\n")+1 {
			t.Errorf("%d regions of %q", len(regions), s)
		}
		if i, ok := RegionOf(regions, addr); ok && (addr < regions[i].Start || addr >= regions[i].Limit) {
			t.Errorf("%#x is not in %+v", addr, regions[i])
		}
	})
}
