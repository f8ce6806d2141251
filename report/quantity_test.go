// Needs: nothing.
package report

import "testing"

// A bound below what is shown is said once.
func TestBounds(t *testing.T) {
	for part, want := range map[float64][2]string{0.031: {"<3.1%", "at most 3.1%"}, 1e-6: {"<0.1%", "less than 0.1%"}, 0: {"<0.0%", "at most 0.0%"}} {
		if got := below(part); got != want[0] {
			t.Errorf("%v: %q, want %q", part, got, want[0])
		}
		if got := atMost(Percent(part, 1)); got != want[1] {
			t.Errorf("%v: %q, want %q", part, got, want[1])
		}
	}
}
