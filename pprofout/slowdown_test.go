package pprofout

import (
	"bytes"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// What a session found of how slow its program is travels with it; of sessions of which one found nothing, nothing is known.
func TestSlowdownTravels(t *testing.T) {
	file := func(low, high, off float64) *bytes.Buffer {
		p := windowProfile()
		p.Clock.WaitsLow, p.Clock.WaitsHigh, p.Clock.WaitsError = low, high, off
		var b bytes.Buffer
		if err := Write(&b, p); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	read := func(b *bytes.Buffer) *model.Profile {
		p, err := Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if c := read(file(.25, .5, .3)).Clock; c.WaitsLow != .25 || c.WaitsHigh != .5 || c.WaitsError != .3 {
		t.Errorf("%+v", c)
	}
	for _, c := range []struct{ second, want [3]float64 }{
		{[3]float64{.75, 1, .4}, [3]float64{.5, .75, .4}},
		{[3]float64{}, [3]float64{}},
	} {
		m := mergedClock{}
		first := read(file(.25, .5, .3)).Clock
		second := read(file(c.second[0], c.second[1], c.second[2])).Clock
		m.add(&first, 1)
		m.add(&second, 1)
		var out model.Clock
		m.mean(&out, 2)
		if got := [3]float64{out.WaitsLow, out.WaitsHigh, out.WaitsError}; got != c.want {
			t.Errorf("merged: %v, want %v", got, c.want)
		}
	}
}
