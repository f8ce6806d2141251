package model

// StackKinds lists in which stacks the profile's records were observed.
func (p *Profile) StackKinds() []StackKind {
	var seen [numStackKinds]bool
	for i := range p.Records {
		if r := &p.Records[i]; r.Stack < numStackKinds && r.Kind != Lost {
			seen[r.Stack] = true
		}
	}
	var out []StackKind
	for k, yes := range seen {
		if yes {
			out = append(out, StackKind(k))
		}
	}
	return out
}

// OnStack is the profile as observed in one stack: the records of that stack,
// their weights scaled so that they stand for as many accesses as the whole
// profile, of which each sample was observed in one stack, chosen by chance.
// Records of which none is the outcome of an access, see Kind.OfLine, are left
// out, and so are derived fields. Locations, counts and comments are shared
// with p.
func (p *Profile) OnStack(kind StackKind) *Profile {
	q := *p
	q.Records = nil
	scale := p.StackScale(kind)
	for _, r := range p.Records {
		if r.Stack == kind && !r.Kind.OfLine() {
			r.Accesses *= scale
			r.Reuses, r.Misses, r.Distance = 0, nil, 0
			q.Records = append(q.Records, r)
		}
	}
	return &q
}

// StackScale is how many accesses one stands for that was observed in a stack
// of this kind.
func (p *Profile) StackScale(kind StackKind) float64 {
	all, ofKind := 0.0, 0.0
	for i := range p.Records {
		if r := &p.Records[i]; r.outcome() {
			all += r.Accesses
			if r.Stack == kind {
				ofKind += r.Accesses
			}
		}
	}
	if !(ofKind > 0) {
		return 1
	}
	return all / ofKind
}
