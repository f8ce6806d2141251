package agent

import "math/rand/v2"

// probabilities are those with which processes of these sizes, their CPU time of late,
// are drawn so that the mean number drawn is m, or all if there are fewer: proportional to
// size, and 1 for those for whom that would be more. A small part is the same for
// all, so that one which was idle and begins to work does not stand for thousands.
func probabilities(sizes []float64, m float64) []float64 {
	const alike = .05
	n := len(sizes)
	p := make([]float64, n)
	if n == 0 || !(m > 0) {
		return p
	}
	total := 0.0
	for _, s := range sizes {
		total += s
	}
	mixed := make([]float64, n)
	for i, s := range sizes {
		mixed[i] = 1 / float64(n)
		if total > 0 {
			mixed[i] = (1-alike)*s/total + alike/float64(n)
		}
	}
	// Those that would have more than 1 have 1, and the others share what is left, until
	// nobody is new among them.
	certain := make([]bool, n)
	for again := true; again; {
		again = false
		left, rest := m, 0.0
		for i := range mixed {
			if certain[i] {
				left--
			} else {
				rest += mixed[i]
			}
		}
		for i := range mixed {
			switch {
			case certain[i]:
				p[i] = 1
			case left <= 0:
				p[i] = 0
			default:
				p[i] = left * mixed[i] / rest
				if p[i] >= 1 {
					certain[i], again = true, true
				}
			}
		}
	}
	return p
}

// draw chooses by systematic sampling: the probabilities in a row, in random order, and a
// mark at each integer from a random start on. Each is drawn with its own probability
// whatever the others are, at most one more or less than their sum in all (Madow 1949).
func draw(p []float64, r *rand.Rand) []int {
	var drawn []int
	at := r.Float64()
	for _, i := range r.Perm(len(p)) {
		before := at
		at += p[i]
		if int(at) > int(before) {
			drawn = append(drawn, i)
		}
	}
	return drawn
}
