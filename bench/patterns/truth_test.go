package main

import (
	"math"
	"testing"
)

func TestNear(t *testing.T) {
	for _, c := range []struct {
		name            string
		measured, truth law
		want            float64
	}{
		{"same", law{points: []point{{100, 1}}}, law{points: []point{{100, 1}}}, 1},
		{"within half an octave", law{points: []point{{140, 1}}}, law{points: []point{{100, 1}}}, 1},
		{"beyond", law{points: []point{{142, 1}}}, law{points: []point{{100, 1}}}, 0},
		// The pair at 100 must leave 140's mass to the one at 190.
		{"shortest first", law{points: []point{{100, .5}, {190, .5}}}, law{points: []point{{140, .5}, {80, .5}}}, 1},
		{"one at most", law{points: []point{{100, 1}}}, law{points: []point{{90, .3}, {110, .3}, {900, .4}}}, .6},
		{"endless", law{points: []point{{100, .4}}, endless: .6}, law{points: []point{{100, .5}}, endless: .5}, .9},
	} {
		if got := near(c.measured, c.truth); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Pairs that are all right score 1 where there is one time, and what chance
// leaves of them where there are many.
func TestByChance(t *testing.T) {
	one := law{points: []point{{100, 1}}}
	if got := byChance(one, near, 50); math.Abs(got-1) > 1e-12 {
		t.Errorf("one time: %v, want 1", got)
	}
	two := law{points: []point{{1, .5}, {1000, .5}}}
	// The mean of |B/n - 1/2| for a fair coin is about sqrt(1/(2 pi n)).
	const n = 100
	if got, want := byChance(two, octaves, n), 1-math.Sqrt(1/(2*math.Pi*n)); math.Abs(got-want) > .015 {
		t.Errorf("two times: %v, want %v", got, want)
	}
}

func TestParse(t *testing.T) {
	s := parse("hot_ns=2.5 cold_ns=7.5 accesses=9 ns=5.0 sink=3 lap=100:20:3 lap=200:20:1 far=5000:1000:2\n")
	if s.ns != 5 || s.hot != 2.5 || s.cold != 7.5 || len(s.laps) != 2 || s.laps[1] != (laps{200, 20, 1}) || len(s.far) != 1 {
		t.Errorf("parsed %+v", s)
	}
	// Four laps, the last of which is not used again.
	if l := cyclic(s, 0); math.Abs(l.points[0].mass-.75*.6) > 1e-12 || l.endless != .25 {
		t.Errorf("by time: %+v, want 0.45, 0.3 and 0.25 never", l)
	}
	if l := twolevel(s.inAccesses(), 0); l.points[0] != (point{1000, .5}) || l.points[1].time != 20 {
		t.Errorf("in accesses: %+v", l.points)
	}
}
