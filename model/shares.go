package model

// Shares says what a profile's estimate rests on, as shares of all its mass
// that was not lost; they add up to 1.
type Shares struct {
	Exact        float64 `json:"exact"`        // reuses that were read ahead and counted
	Timed        float64 `json:"timed"`        // reuses that were seen and timed
	Interpolated float64 `json:"interpolated"` // reuses put in by Kaplan & Meier and from half lines to whole ones
	Unseen       float64 `json:"unseen"`       // of which no reuse was seen, by whatever reason
}

// Shares needs the derived fields. It is zero for an empty profile.
func (p *Profile) Shares() (s Shares) {
	var all, reused float64
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == Lost {
			continue
		}
		all += r.Accesses
		reused += r.Reuses
		if seen := min(r.Accesses, r.Reuses); r.Exact {
			s.Exact += seen
		} else {
			s.Timed += seen
		}
	}
	if !(all > 0) {
		return Shares{}
	}
	s.Exact /= all
	s.Timed /= all
	s.Interpolated = max(0, reused/all-s.Exact-s.Timed)
	s.Unseen = max(0, 1-s.Exact-s.Timed-s.Interpolated)
	return s
}
