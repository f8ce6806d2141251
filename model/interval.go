package model

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// gammaBand is the 95 % band of a mean of weighted counts: value with variance, of which one more
// cluster would add unit at most. Fay & Feuer, Statistics in Medicine 16 (1997), equations 4 and 5:
// the band of a gamma distribution with that mean and variance, whose upper end allows for one
// more. Where nothing was seen it is three and a half units.
func gammaBand(value, variance, unit float64) (low, high float64) {
	if value > 0 && variance > 0 {
		low = variance / (2 * value) * chiSquared(2*value*value/variance, 0.025)
	} else if value > 0 {
		low = value
	}
	if v, m := variance+unit*unit, value+unit; v > 0 && m > 0 {
		high = v / (2 * m) * chiSquared(2*m*m/v, 0.975)
	}
	return min(low, value), max(high, value)
}

// chiSquared is a quantile; with many degrees of freedom by Wilson and Hilferty's cube root.
func chiSquared(k, q float64) float64 {
	if k > 2000 {
		z, v := distuv.UnitNormal.Quantile(q), 2/(9*k)
		return k * math.Pow(1-v+z*math.Sqrt(v), 3)
	}
	return distuv.ChiSquared{K: k}.Quantile(q)
}

// studentFactor is by how much a band of few clusters is wider than one whose variance is known:
// the quantile of Student's distribution by the normal one's.
func studentFactor(clusters int) float64 {
	if clusters < 2 {
		return math.Inf(1)
	}
	free := float64(min(clusters, JackknifeGroups) - 1)
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile(0.975) / distuv.UnitNormal.Quantile(0.975)
}
