package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// law is a distribution of reuse times, with total mass 1.
type law struct {
	points  []point
	endless float64 // mass never reused
}

type point struct{ time, mass float64 }

// said is what a pattern tells of itself: nanoseconds an access, on average and
// by level, and how long its laps took and how many took so long.
type said struct {
	ns, hot, cold float64
	laps, far     []laps
}

// laps are count of them that took a time and so many accesses each.
type laps struct{ time, accesses, count float64 }

func parse(line string) (s said) {
	for f := range strings.FieldsSeq(line) {
		k, v, _ := strings.Cut(f, "=")
		var l laps
		switch k {
		case "ns":
			fmt.Sscan(v, &s.ns)
		case "hot_ns":
			fmt.Sscan(v, &s.hot)
		case "cold_ns":
			fmt.Sscan(v, &s.cold)
		case "lap", "far":
			fmt.Sscanf(v, "%f:%f:%f", &l.time, &l.accesses, &l.count)
			if k == "lap" {
				s.laps = append(s.laps, l)
			} else {
				s.far = append(s.far, l)
			}
		}
	}
	return s
}

// inAccesses is the same pattern on a clock of accesses.
func (s said) inAccesses() said {
	s.ns, s.hot, s.cold = 1, 1, 1
	for _, all := range [][]laps{s.laps, s.far} {
		for i := range all {
			all[i].time = all[i].accesses
		}
	}
	return s
}

// byTime is the law of the laps that moments of the clock fall into.
func byTime(all []laps, share float64) []point {
	var sum float64
	for _, l := range all {
		sum += l.time * l.count
	}
	var out []point
	for _, l := range all {
		out = append(out, point{l.time, share * l.time * l.count / sum})
	}
	return out
}

// cyclic: what is used in the last lap is not used again before the program ends, which
// rdx sees, too.
func cyclic(s said, _ float64) law {
	var n float64
	for _, l := range s.laps {
		n += l.count
	}
	return law{points: byTime(s.laps, 1-1/n), endless: 1 / n}
}

// random: a word comes up again by the exponential law, whose mean is as long
// as n accesses take.
func random(s said, n float64) law {
	const quantiles = 1000
	var l law
	for i, p := range byTime(s.laps, 1) {
		mean := p.time / s.laps[i].accesses * n
		for i := range quantiles {
			l.points = append(l.points, point{-mean * math.Log((float64(i)+0.5)/quantiles), p.mass / quantiles})
		}
	}
	return l
}

// twolevel: the shares of the two times are those of CPU time, by which the
// clock source samples, and not those of accesses. A sample of a hot word falls
// into each round alike, as the hot part takes alike in each.
func twolevel(s said, _ float64) law {
	hot := s.hot / (s.hot + s.cold)
	l := law{points: byTime(s.far, 1-hot)}
	var rounds float64
	for _, r := range s.laps {
		rounds += r.count
	}
	for _, r := range s.laps {
		l.points = append(l.points, point{r.time, hot * r.count / rounds})
	}
	return l
}

func stream(said, float64) law { return law{endless: 1} }

// near is the most of the measured mass that can be paired with true mass within
// half an octave.
func near(measured, truth law) float64 {
	const reach = math.Sqrt2
	byTime := func(a, b point) int {
		switch {
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		}
		return 0
	}
	m, t := slices.SortedFunc(slices.Values(measured.points), byTime), slices.SortedFunc(slices.Values(truth.points), byTime)
	sum := min(measured.endless, truth.endless)
	for len(m) > 0 && len(t) > 0 {
		switch {
		case t[0].time*reach < m[0].time:
			t = t[1:]
		case m[0].time*reach < t[0].time:
			m = m[1:]
		default: // the shortest first: what it leaves is of more use to the others
			both := min(m[0].mass, t[0].mass)
			sum += both
			if m[0].mass -= both; m[0].mass <= 0 {
				m = m[1:]
			}
			if t[0].mass -= both; t[0].mass <= 0 {
				t = t[1:]
			}
		}
	}
	return sum
}

// octaves is 1 - sum|R-R^|/2 on log2 bins.
func octaves(measured, truth law) float64 {
	bins := func(l law) map[int]float64 {
		b := map[int]float64{}
		for _, p := range l.points {
			b[int(math.Floor(math.Log2(p.time)))] += p.mass
		}
		return b
	}
	sum, want := min(measured.endless, truth.endless), bins(truth)
	for b, m := range bins(measured) {
		sum += min(m, want[b])
	}
	return sum
}

// byChance is the mean score of n pairs drawn from the truth itself.
func byChance(truth law, score func(measured, truth law) float64, n int) float64 {
	const trials = 100
	if n == 0 {
		return score(truth, truth)
	}
	cumulative := make([]float64, len(truth.points))
	var sum float64
	for i, p := range truth.points {
		sum += p.mass
		cumulative[i] = sum
	}
	r := rand.New(rand.NewPCG(1, 2))
	var mean float64
	for range trials {
		drawn := law{endless: truth.endless}
		for range n {
			i, _ := slices.BinarySearch(cumulative, r.Float64()*sum)
			drawn.points = append(drawn.points, point{truth.points[min(i, len(cumulative)-1)].time, (1 - truth.endless) / float64(n)})
		}
		mean += score(drawn, truth) / trials
	}
	return mean
}
