package model

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// The standard Normal distribution from a table, as Shen & Shaw (section 2.3)
// propose: conversions evaluate it several times per bin and edge.
//
// Cubic Hermite interpolation between knots 1/32 apart with the exact
// derivative keeps both functions within 1e-8 of distuv.UnitNormal.
const (
	normalStep  = 32 // knots per unit
	normalLimit = 8  // beyond it the tails are below 1e-15
	normalKnots = 2*normalLimit*normalStep + 1
)

var normalTable = func() (t [normalKnots]struct{ g, cdf, pdf float64 }) {
	for i := range t {
		z := float64(i)/normalStep - normalLimit
		t[i].pdf = math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		t[i].cdf = distuv.UnitNormal.CDF(z)
		t[i].g = z*t[i].cdf + t[i].pdf
	}
	return
}()

// normalCDF is P(Z <= z).
func normalCDF(z float64) float64 {
	if !(z > -normalLimit) {
		return 0
	}
	if z >= normalLimit {
		return 1
	}
	i, u := normalKnot(z)
	a, b := &normalTable[i], &normalTable[i+1]
	return hermite(u, a.cdf, b.cdf, a.pdf, b.pdf)
}

// normalRamp is the integral of normalCDF from -inf to z: z cdf(z) + pdf(z).
func normalRamp(z float64) float64 {
	if !(z > -normalLimit) {
		return 0
	}
	if z >= normalLimit {
		return z
	}
	i, u := normalKnot(z)
	a, b := &normalTable[i], &normalTable[i+1]
	return hermite(u, a.g, b.g, a.cdf, b.cdf)
}

func normalKnot(z float64) (int, float64) {
	x := (z + normalLimit) * normalStep
	i := min(int(x), normalKnots-2)
	return i, x - float64(i)
}

// hermite interpolates between f0 and f1 with slopes d0 and d1 per unit of z.
func hermite(u, f0, f1, d0, d1 float64) float64 {
	const h = 1.0 / normalStep
	v := 1 - u
	return v*v*(f0*(1+2*u)+h*d0*u) + u*u*(f1*(1+2*v)-h*d1*v)
}
