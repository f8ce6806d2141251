package web

import (
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/report"
)

// TestMissesOfCells: a cell has the misses that the model gives its record, and at the profile's caches those that are in the file.
func TestMissesOfCells(t *testing.T) {
	for _, exact := range []bool{false, true} {
		p := large(3000, 3)
		if exact {
			p.ExactDistances = true
			for i := range p.Records {
				r := &p.Records[i]
				r.Hold, r.Distinct, r.Exact = 0, 0, false
				r.Reuses, r.Distance = r.Accesses, float64(r.Time)
			}
		}
		raw := written(t, p)
		d, err := New(raw, "x", "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p, err = report.Ready(raw, ""); err != nil {
			t.Fatal(err)
		}
		cell, behind := 0, 0
		scratch := make([]float64, len(d.Sizes))
		err = p.MissesAt(d.blocks(), func(i int, misses []float64) {
			r := &p.Records[i]
			if !shown(r) {
				return
			}
			want := slices.Clone(misses)
			for k, c := range d.Caches {
				if c.At >= 0 && k < len(r.Misses) {
					want[c.At] = r.Misses[k]
				}
			}
			if z := slices.Index(misses, 0); z >= 0 && slices.ContainsFunc(misses[z:], func(v float64) bool { return v != 0 }) {
				behind++
			}
			var s steps
			s.add(want)
			if got, one := d.Cells.Misses.values(cell, scratch), s.values(0, make([]float64, len(want))); !slices.Equal(got, one) {
				t.Errorf("exact %v, cell %d: %v, want %v", exact, cell, got, one)
			}
			cell++
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("exact %v: %d cells, of %d there are misses behind a size without", exact, cell, behind)
		if cell != len(d.Cells.Pair) {
			t.Errorf("%d cells, want %d", len(d.Cells.Pair), cell)
		}
	}
}
