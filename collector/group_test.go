package collector

import (
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0\n": {0}, "0-3\n": {0, 1, 2, 3}, "0-1,4,6-7": {0, 1, 4, 6, 7}} {
		if got, err := parseCPUs(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"", "a", "1-"} {
		if got, err := parseCPUs(list); err == nil {
			t.Errorf("%q: %v, want an error", list, got)
		}
	}
}
