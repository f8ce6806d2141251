package exact

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/model"
)

// DistanceLaw is a probability law of stack distances to generate from. It is
// immutable and may be shared.
//
// Draws take constant time: A. J. Walker's alias method (ACM TOMS 3, 1977).
// Each of m cells is split between a distance class of its own and one other.
type DistanceLaw struct {
	cells []lawCell
	// Class i holds the distances lo[i] up to lo[i]+width[i]-1, all as likely.
	// Where lo is nil it is the distance i.
	lo, width []uint64

	reach uint64 // every distance is below
	cold  bool   // first accesses are drawn too
}

type lawCell struct {
	keep  uint32 // share of the cell's own class, in units of 2^-32
	other uint32 // class of the rest
}

// maxLawSize bounds the memory of a law given by a formula (about 30 bytes a
// distance while it is built).
const maxLawSize = 1 << 28

// WeightLaw gives distance k the probability weights[k] / sum of weights.
func WeightLaw(weights []float64) (*DistanceLaw, error) {
	return newLaw(weights, nil, nil)
}

// NormalLaw is the Normal density at the distances 0 to n-1, renormalised.
// mean and sd (the standard deviation) are in blocks.
func NormalLaw(mean, sd float64, n uint64) (*DistanceLaw, error) {
	if !(sd > 0) || math.IsInf(sd, 0) || math.IsNaN(mean) || math.IsInf(mean, 0) {
		return nil, fmt.Errorf("normal law: mean %v and standard deviation %v, want finite ones and a deviation above 0", mean, sd)
	}
	return formulaLaw("normal", n, func(k float64) float64 {
		z := (k - mean) / sd
		return -z * z / 2
	})
}

// ExponentialLaw gives the distances 0 to n-1 probabilities proportional to
// exp(-rate k).
func ExponentialLaw(rate float64, n uint64) (*DistanceLaw, error) {
	if math.IsNaN(rate) || math.IsInf(rate, 0) {
		return nil, fmt.Errorf("exponential law: rate %v is not finite", rate)
	}
	return formulaLaw("exponential", n, func(k float64) float64 { return -rate * k })
}

// ZipfLaw gives the distances 0 to n-1 probabilities proportional to
// 1/(k+1)^s.
func ZipfLaw(s float64, n uint64) (*DistanceLaw, error) {
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return nil, fmt.Errorf("zipf law: exponent %v is not finite", s)
	}
	return formulaLaw("zipf", n, func(k float64) float64 { return -s * math.Log1p(k) })
}

// formulaLaw takes the logarithm of the density, so that a law that is tiny
// all over its range is scaled, not lost.
func formulaLaw(name string, n uint64, logDensity func(k float64) float64) (*DistanceLaw, error) {
	if n == 0 || n > maxLawSize {
		return nil, fmt.Errorf("%s law: %d distinct blocks, want 1 to %d", name, n, maxLawSize)
	}
	w := make([]float64, n)
	top := math.Inf(-1)
	for k := range w {
		w[k] = logDensity(float64(k))
		top = max(top, w[k])
	}
	for k := range w {
		w[k] = math.Exp(w[k] - top)
	}
	return WeightLaw(w)
}

// newLaw builds the alias table. A class with lo == Infinite is the cold mass.
func newLaw(weights []float64, lo, width []uint64) (*DistanceLaw, error) {
	var sum float64
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("distance law: weight %d is %v, want finite and not negative", i, w)
		}
		sum += w
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil, fmt.Errorf("distance law: the weights sum to %v, want a finite sum above 0", sum)
	}
	m := len(weights)
	l := &DistanceLaw{cells: make([]lawCell, m), lo: lo, width: width}
	// share[i] is class i's probability in cells; those with less than a
	// cell are filled up by those with more.
	share := make([]float64, m)
	var small, large []uint32
	for i, w := range weights {
		share[i] = w / sum * float64(m)
		if share[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
		switch {
		case w == 0:
		case lo == nil:
			l.reach = uint64(i) + 1
		case lo[i] == model.Infinite:
			l.cold = true
		default:
			l.reach = max(l.reach, lo[i]+width[i])
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, g := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		l.cells[s] = lawCell{uint32(share[s] * (1 << 32)), g}
		share[g] -= 1 - share[s]
		if share[g] < 1 {
			large = large[:len(large)-1]
			small = append(small, g)
		}
	}
	// What is left has a share of 1 but for rounding. A class of weight 0
	// must not gain one by it.
	for _, i := range append(small, large...) {
		l.cells[i].other = i
		if weights[i] == 0 {
			l.cells[i].other = largest(weights)
		}
	}
	return l, nil
}

func largest(weights []float64) uint32 {
	best := 0
	for i, w := range weights {
		if w > weights[best] {
			best = i
		}
	}
	return uint32(best)
}

// draw sets every element of d to a distance, or to Infinite for a cold access.
func (l *DistanceLaw) draw(r *rand.PCG, d []uint64) {
	var fraction [batch]uint32
	for len(d) > 0 {
		part := d[:min(len(d), batch)]
		d = d[len(part):]
		// The product's high word is a uniform cell, its low word, given the
		// cell, a uniform fraction.
		for i := range part {
			class, low := bits.Mul64(r.Uint64(), uint64(len(l.cells)))
			part[i], fraction[i] = class, uint32(low>>32)
		}
		// Apart from the above, so that the cache misses of a large law overlap.
		for i, class := range part {
			if c := l.cells[class]; fraction[i] >= c.keep {
				part[i] = uint64(c.other)
			}
		}
		if l.lo == nil {
			continue
		}
		for i, class := range part {
			part[i] = l.lo[class]
			if w := l.width[class]; w > 1 {
				at, _ := bits.Mul64(r.Uint64(), w)
				part[i] += at
			}
		}
	}
}
