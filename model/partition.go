package model

import (
	"fmt"
	"math"
)

// Partition divides the units of a cache (its ways, say) among programs so
// that the sum of their costs is least. cost[i][k] is program i's cost with k
// units, for k = 0 to the number of units: misses per unit of time, or
// anything else that adds. Each program gets at least least units.
//
// It is dynamic programming over programs and units, O(programs * units^2),
// right for costs of any shape; a greedy choice is so only for convex ones.
func Partition(cost [][]float64, least int) (units []int, total float64, err error) {
	if len(cost) == 0 {
		return nil, 0, fmt.Errorf("partition: no programs")
	}
	n := len(cost[0]) - 1
	for i, c := range cost {
		if len(c) != n+1 {
			return nil, 0, fmt.Errorf("partition: program %d has %d costs, the first one %d", i, len(c), n+1)
		}
		for k, x := range c {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, 0, fmt.Errorf("partition: program %d: cost %v with %d units, want a finite one", i, x, k)
			}
		}
	}
	if least < 0 || len(cost)*least > n {
		return nil, 0, fmt.Errorf("partition: %d units are too few for %d programs with at least %d each", n, len(cost), least)
	}
	// best[k] is the least cost of the programs so far with k units;
	// given[i][k] what program i gets of them then.
	best := make([]float64, n+1)
	for k := 1; k <= n; k++ {
		best[k] = math.Inf(1) // all units are given to someone
	}
	given := make([][]int, len(cost))
	for i, c := range cost {
		next := make([]float64, n+1)
		given[i] = make([]int, n+1)
		for k := range next {
			next[k] = math.Inf(1)
			for g := least; g <= k; g++ {
				if t := best[k-g] + c[g]; t < next[k] {
					next[k], given[i][k] = t, g
				}
			}
		}
		best = next
	}
	units = make([]int, len(cost))
	for i, k := len(cost)-1, n; i >= 0; i-- {
		units[i] = given[i][k]
		k -= units[i]
	}
	return units, best[n], nil
}
