package ahead

import "testing"

// Holds read farther from the eighth on where more than three in four touch fewer lines than the first cache has, and go on to; those that end
// early tell nothing.
func TestFarther(t *testing.T) {
	const cache, few, many = 32 << 10, 100, 1000
	for name, tc := range map[string]struct {
		lines []int
		from  int // the hold that reads farther first, 0: none does
	}{
		"few":        {[]int{few}, 8},
		"many":       {[]int{many}, 0},
		"a cacheful": {[]int{cache/64*5/4 - 1}, 8},
		"half":       {[]int{few, many}, 0},
		"most":       {[]int{few, few, few, few, few, many}, 8},
	} {
		var f Farther
		f.Begin(cache)
		from := 0
		for i := range 64 {
			for range 10 {
				f.Note(few, false)
			}
			if f.Note(tc.lines[i%len(tc.lines)], true); f.On() && from == 0 {
				from = i + 1
			}
		}
		if from != tc.from || f.On() != (from > 0) {
			t.Errorf("%s: from hold %d on, want %d", name, from, tc.from)
		}
	}
	var none Farther
	for range 64 {
		none.Note(few, true)
	}
	if none.On() {
		t.Error("holds read farther where nothing is to be settled")
	}
}
