package model

// MeanDistance is the mean stack distance of the record's reuses, in bytes;
// ok is false if it has none. It undoes the weighting of Distance, which is
// per observation while Reuses is per access.
func (r *Record) MeanDistance() (bytes float64, ok bool) {
	if r.Kind != Reuse || !(r.Reuses > 0) || !(r.Accesses > 0) || r.Observations <= 0 {
		return 0, false
	}
	return r.Distance / r.Reuses * (r.Accesses / float64(r.Observations)), true
}
