package collector

import (
	"slices"
	"strings"
	"testing"
)

// A list of CPUs is what it names, or an error; "0-4294967295" once took all
// memory.
func FuzzParseCPUs(f *testing.F) {
	for _, s := range []string{"0-3,8", "0", "", "3-1", "-1", "0-4294967295", "1-2-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := parseCPUs(s)
		if err == nil && (len(cpus) == 0 || slices.Min(cpus) < 0) {
			t.Errorf("parseCPUs(%q) = %v", s, cpus)
		}
	})
}

// Any lines for /proc/PID/maps are regions or are passed over.
func FuzzParseRegions(f *testing.F) {
	f.Add("55d0-55e0 r-xp 00001000 fe:00 123  /usr/bin/with space\n7fff-8000 rw-p 0 00:00 0 [stack]\n", uint64(0x55d8))
	f.Add("1-2 r\n-1 rwxp 0 0 0\n", uint64(0))
	f.Fuzz(func(t *testing.T, s string, addr uint64) {
		regions := parseRegions([]byte(s))
		if len(regions) > strings.Count(s, "\n")+1 {
			t.Errorf("%d regions of %q", len(regions), s)
		}
		if i, ok := regionOf(regions, addr); ok && (addr < regions[i].start || addr >= regions[i].limit) {
			t.Errorf("%#x is not in %+v", addr, regions[i])
		}
	})
}
