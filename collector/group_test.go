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

// Between two points CPU time goes evenly, and beyond them as next to them.
func TestCPUBetween(t *testing.T) {
	p := &process{cpu: []cpuPoint{{0, 0}, {100, 200}, {200, 250}}}
	for _, c := range []struct{ from, to, want float64 }{{0, 50, 100}, {50, 150, 125}, {100, 200, 50}, {200, 300, 50}, {-50, 0, 100}} {
		if got := p.cpuBetween(c.from, c.to); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if got := new(process).cpuBetween(10, 30); got != 20 {
		t.Errorf("without points: %v, want 20", got)
	}
}
