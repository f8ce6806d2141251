// Needs: nothing; the machines are made up.
package sampler

import (
	"testing"
	"testing/fstest"
)

// Some virtual machines have no folder of caches in sysfs: rdx goes by what the processor tells, and says what it assumes.
func TestCachesWithoutSysfs(t *testing.T) {
	for _, tc := range []struct {
		l1d, l2, l3 int
		want        []Cache
	}{
		{48 << 10, 1 << 20, -1, []Cache{{"L1d", 48 << 10, 0, 64, false}, {"L2", 1 << 20, 0, 64, false}, {"L3", 32 << 20, 0, 64, true}}},
		{48 << 10, 2 << 20, 16 << 20, []Cache{{"L1d", 48 << 10, 0, 64, false}, {"L2", 2 << 20, 0, 64, false}, {"L3", 16 << 20, 0, 64, false}}},
		{-1, -1, -1, []Cache{{"L1d", 32 << 10, 0, 64, true}, {"L2", 1 << 20, 0, 64, true}, {"L3", 32 << 20, 0, 64, true}}},
		{64 << 10, 64 << 20, 0, []Cache{{"L1d", 64 << 10, 0, 64, false}, {"L2", 64 << 20, 0, 64, false}, {"L3", 128 << 20, 0, 64, true}}},
	} {
		got := toldCaches(tc.l1d, tc.l2, tc.l3)
		for i := range tc.want {
			if got[i] != tc.want[i] {
				t.Errorf("told %d, %d, %d: %+v, want %+v", tc.l1d, tc.l2, tc.l3, got[i], tc.want[i])
			}
		}
	}
	got, err := Caches(fstest.MapFS{})
	if err != nil || len(got) != 3 {
		t.Fatalf("no caches in sysfs: %v, %v", got, err)
	}
	for i, c := range got {
		if c.Size <= 0 || i > 0 && c.Size <= got[i-1].Size {
			t.Errorf("%+v after %+v", c, got[max(i-1, 0)])
		}
	}
}
