package model

// Quotable is the index of the largest cache with predicted misses worth
// looking at: at least 10 in n observations, below which a miss ratio is
// chance. It is -1 if there is none. Derive must have run.
func (p *Profile) Quotable() int {
	var n int64
	var accesses float64
	misses := make([]float64, len(p.Caches))
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == Lost || r.Kind == FalseSharing {
			continue
		}
		n += r.Observations
		accesses += r.Accesses
		for c := range min(len(misses), len(r.Misses)) {
			misses[c] += r.Misses[c]
		}
	}
	for c := len(misses) - 1; c >= 0; c-- {
		if n > 0 && misses[c] > 0 && misses[c]*float64(n) >= 10*accesses {
			return c
		}
	}
	return -1
}
