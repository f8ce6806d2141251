package target

import (
	"math"
	"testing"
)

// Between two points CPU time goes evenly, and beyond them as next to them.
func TestCPUBetween(t *testing.T) {
	p := &Process{CPU: []CPUPoint{{0, 0}, {100, 200}, {200, 250}}}
	for _, c := range []struct{ from, to, want float64 }{{0, 50, 100}, {50, 150, 125}, {100, 200, 50}, {200, 300, 50}, {-50, 0, 100}} {
		if got := p.CPUBetween(c.from, c.to); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if got := new(Process).CPUBetween(10, 30); got != 20 {
		t.Errorf("without points: %v, want 20", got)
	}
}

// A shared stack's clock goes as fast as threads run at the moment.
func TestCPUTimeOfAll(t *testing.T) {
	p := &Process{}
	if n := p.Running(5e9); n != 1 {
		t.Errorf("%v threads before anything is known, want 1", n)
	}
	p.CPU = []CPUPoint{{0, 0}, {100e6, 50e6}, {200e6, 250e6}}
	for at, want := range map[float64]float64{50e6: 1, 150e6: 2} {
		if n := p.Running(at); math.Abs(n-want) > 1e-9 {
			t.Errorf("%v threads at %v, want %v", n, at, want)
		}
	}
}
