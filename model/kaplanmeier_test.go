package model

import (
	"math"
	"testing"
)

// Freireich's leukaemia data (treated group), the example of every textbook:
// remission times in weeks, with ties and cut-offs at event times.
func TestKaplanMeierTextbook(t *testing.T) {
	b := LinearBins(1, 40)
	ev, cut, mass := make([]float64, b.Len()), make([]float64, b.Len()), make([]float64, b.Len())
	for _, v := range []int{6, 6, 6, 7, 10, 13, 16, 22, 23} {
		ev[v]++
	}
	for _, v := range []int{6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35} {
		cut[v]++
	}
	rest := KaplanMeier(mass, b, ev, cut, 0)
	s := 21.0
	want := map[int]float64{6: .857, 7: .807, 10: .753, 13: .690, 16: .627, 22: .538, 23: .448}
	for i, m := range mass {
		s -= m
		if w, ok := want[i]; ok {
			near(t, "S", s/21, w, 5e-4)
		}
	}
	near(t, "rest", rest/21, .448, 5e-4)
	near(t, "rest", rest, s, 1e-12)
}

// Redistribution to the right done literally, one observation at a time, is
// the same as the product limit, and the masses add up.
func TestKaplanMeierRedistributes(t *testing.T) {
	rng := newRand(t, 4)
	for range 200 {
		b := LinearBins(1, 30)
		n := b.Len()
		ev, cut, mass := make([]float64, n), make([]float64, n), make([]float64, n)
		total, endless := 0.0, float64(rng.IntN(3))
		for range 1 + rng.IntN(60) {
			v, w := 1+rng.IntN(29), 1+rng.Float64()
			if rng.IntN(2) == 0 {
				ev[v] += w
			} else {
				cut[v] += w
			}
			total += w
		}
		total += endless
		e, c, nv := append([]float64(nil), ev...), append([]float64(nil), cut...), endless
		for i := range n {
			later := nv
			for j := i + 1; j < n; j++ {
				later += e[j] + c[j]
			}
			if c[i] == 0 || later == 0 {
				continue
			}
			f := 1 + c[i]/later
			c[i] = 0
			nv *= f
			for j := i + 1; j < n; j++ {
				e[j] *= f
				c[j] *= f
			}
		}
		wantRest := nv
		for _, w := range c {
			wantRest += w
		}
		rest := KaplanMeier(mass, b, ev, cut, endless)
		sum := rest
		for i := range mass {
			near(t, "mass", mass[i], e[i], 1e-9)
			sum += mass[i]
		}
		near(t, "rest", rest, wantRest, 1e-9)
		near(t, "sum", sum, total, 1e-9)
	}
}

// Censoring that is independent of the reuse time leaves the survival curve
// where it is, on exact and on wide bins.
func TestKaplanMeierUnbiased(t *testing.T) {
	rng := newRand(t, 5)
	for _, b := range []*Bins{LinearBins(1, 5000), LogBins(10)} {
		n := b.Len()
		ev, cut, mass := make([]float64, n), make([]float64, n), make([]float64, n)
		const samples = 400000
		for range samples {
			x, c := 1+uint64(rng.ExpFloat64()*200), 1+uint64(rng.ExpFloat64()*150)
			if x <= c {
				ev[b.Index(x)]++
			} else {
				cut[b.Index(c)]++
			}
		}
		KaplanMeier(mass, b, ev, cut, 0)
		s := 1.0
		for i, m := range mass {
			s -= m / samples
			if hi := float64(b.Hi(i)) - 1; hi > 1 && hi < 400 {
				near(t, "S", s, math.Exp(-hi/200), 0.006)
			}
		}
	}
}
