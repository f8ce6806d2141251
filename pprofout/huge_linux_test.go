package pprofout

import (
	"os"
	"strings"
	"testing"
)

// TestHuge: memory that was asked for in large pages is in these, whole or not, where the kernel has any.
func TestHuge(t *testing.T) {
	const enabled = "/sys/kernel/mm/transparent_hugepage/enabled"
	if b, err := os.ReadFile(enabled); err != nil || strings.Contains(string(b), "[never]") {
		t.Skipf("needs large pages: %s: %.40s %v", enabled, b, err)
	}
	total := func() (kb string) {
		b, err := os.ReadFile("/proc/self/smaps_rollup")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "AnonHugePages:"); ok {
				kb = strings.TrimSpace(v)
			}
		}
		return kb
	}
	before := total()
	if s := huge(make([]int64, 3, 1000)); len(s) != 3 || cap(s) != 1000 {
		t.Errorf("a small one has %d of %d", len(s), cap(s))
	}
	s := huge(make([][3]byte, 5, leastHuge))
	if len(s) != 5 || cap(s) != leastHuge {
		t.Fatalf("a large one has %d of %d", len(s), cap(s))
	}
	s = s[:cap(s)]
	for i := range s {
		s[i][1] = 1
	}
	if after := total(); before == after {
		t.Errorf("large pages: %s before and after", before)
	}
	if s[len(s)-1][1] != 1 {
		t.Error("what was written is not there")
	}
}
