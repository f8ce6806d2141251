package model

import "slices"

// longestWait is how long an access waits for its data at most, in ns, as a mean: for memory, one after the other.
const longestWait = 80

// waits is the miss ratios by the stationary conversion if an open access waited so long, in ns. A timer finds
// code that waits too often, and each hold stands for as many accesses as fit into its time.
func (x *bander) waits(ns float64) ([]float64, error) {
	if x.p.Clock.WaitNS == 0 || x.p.Clock.PlainNS == 0 {
		return x.base, nil
	}
	return x.of(x.p.waiting(ns))
}

// waiting is the profile were that how long they wait.
func (p *Profile) waiting(ns float64) *Profile {
	q := *p
	q.Records = slices.Clone(p.Records)
	for i := range q.Records {
		r := &q.Records[i]
		r.Accesses *= (p.Clock.PlainNS + r.Open*p.Clock.WaitNS) / (p.Clock.PlainNS + r.Open*ns)
	}
	return &q
}
