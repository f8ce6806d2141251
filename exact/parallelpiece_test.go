package exact

import "testing"

func TestTouchesIn(t *testing.T) {
	r := seededRand(t)
	for n := range 2000 {
		runs := make([]uint8, n)
		want := 0
		for i := range runs {
			runs[i] = 2*maxRun - 1 // the most that there is
			if n%2 == 0 {
				runs[i] = uint8(r.IntN(2 * maxRun))
			}
			want += int(runs[i]>>1) + 1
		}
		if got := touchesIn(runs); got != want {
			t.Fatalf("%d runs: %d touches, want %d", n, got, want)
		}
	}
}
