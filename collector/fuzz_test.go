package collector

import (
	"slices"
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
