package model

// Squares is the sum of the squares of what the independent observations behind a record
// stand for. Unlike their number it can be added up where records of sessions of different
// weight are merged, so that bands are known of the sum: (sum w)^2 / sum w^2 is how many
// equally weighted ones a merge is worth.
func (p *Profile) Squares(r *Record) float64 { return r.Accesses * r.Accesses / p.independent(r) }

// SetDesignEffect sets it from the records' squares, of a profile that was merged by them.
func (p *Profile) SetDesignEffect() {
	var n, sum, squares float64
	for i := range p.Records {
		if r := &p.Records[i]; r.outcome() {
			n += float64(r.Observations)
			sum += r.Accesses
			squares += p.Squares(r)
		}
	}
	if squares > 0 && sum > 0 {
		p.DesignEffect = max(1, n/(sum*sum/squares))
	}
}
