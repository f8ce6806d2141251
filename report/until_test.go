package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

func TestParseUntil(t *testing.T) {
	for s, want := range map[string]float64{"20%": 0.2, "20": 0.2, "0.2": 0.2, "1%": 0.01} {
		if got, err := ParseUntil(s); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%q is %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "%", "0", "100%", "-5%", "0.1%", "NaN", "x"} {
		if got, err := ParseUntil(s); err == nil || !strings.Contains(err.Error(), "such as 20%") {
			t.Errorf("%q is %v, %v, want an error with an example", s, got, err)
		}
	}
}

// What a session ends with says where it is not what was asked for, and what would be.
func TestUntilEnded(t *testing.T) {
	at := func(half float64) *model.Point {
		return &model.Point{MissRatio: 0.02, Low: 0.02 * (1 - half), High: 0.02 * (1 + half)}
	}
	for _, c := range []struct {
		halves []float64 // one a second
		want   string
	}{
		{nil, "misses at 1.00MiB: not within 20%, as was asked: profile longer"},
		{[]float64{.5}, "misses at 1.00MiB: 2% [1, 3], within 50%; not within 20%, as was asked: profile longer"},
		{[]float64{.5, .1}, "misses at 1.00MiB: 2% [1.8, 2.2], within 10%"},
		{[]float64{.5, .5, .5, .5, .5, .5, .5, .5}, "misses at 1.00MiB: 2% [1, 3], within 50%; it will not come below 50% (--access-rate, if you know it); not within 20%, as was asked"},
	} {
		u := &Until{Within: 0.2, Size: 1 << 20}
		for s, half := range c.halves {
			u.See(time.Duration(s+1)*time.Second, at(half))
		}
		if got := u.Ended(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := (&Until{}).Ended(); got != "" {
		t.Errorf("nothing was asked for: %q", got)
	}
}

// A band whose chance part shrinks with the root of the time, beside a part that stays: the time left is foretold, or that
// it never comes.
func TestUntil(t *testing.T) {
	at := func(seconds, stays float64) *model.Point {
		half := math.Hypot(1/math.Sqrt(seconds), stays) // at 1 s as much as the ratio
		return &model.Point{MissRatio: 0.02, Low: 0.02 * (1 - half), High: 0.02 * (1 + half)}
	}
	see := func(u *Until, stays float64, upTo int) (enough bool) {
		for s := 1; s <= upTo && !enough; s++ {
			enough = u.See(time.Duration(s)*time.Second, at(float64(s), stays))
		}
		return enough
	}
	u := &Until{Within: 0.2, Size: 1 << 20}
	if u.String() != "" {
		t.Errorf("before anything was seen: %q", u)
	}
	if see(u, 0, 10) {
		t.Error("enough after 10 s of 25")
	}
	if more, _, known := u.left(); !known || math.Abs(more.Seconds()-15) > 1 {
		t.Errorf("%v left, want 15 s", more)
	}
	if want := "misses at 1.00MiB: 2% [1.4, 2.6], within 32%; about 15s more"; u.String() != want {
		t.Errorf("it says %q, want %q", u, want)
	}
	if u = (&Until{Within: 0.2}); !see(u, 0, 26) {
		t.Error("not enough after 26 s of 25")
	}
	if u = (&Until{Within: 0.2}); see(u, 0.3, 100) || !strings.Contains(u.String(), "will not come below 30%") {
		t.Errorf("a band that stays at 30%%: %q", u)
	}
	if u = (&Until{Within: 0.2}); !u.See(time.Second, &model.Point{High: 0.0009, Quote: model.TooRare}) {
		t.Error("a ratio below 0.1 % is not enough")
	}
	if u.See(time.Second, nil) || (&Until{}).See(time.Second, at(1e6, 0)) {
		t.Error("enough of nothing")
	}
}
