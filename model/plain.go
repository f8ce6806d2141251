package model

import "fmt"

// PlainMissRatios are the miss ratios at the given cache sizes, in blocks, without bands, as if all epochs were one. It errs as
// MissRatios does.
func (p *Profile) PlainMissRatios(sizes []uint64) ([]float64, error) {
	e, err := p.estimate()
	if err == nil && e.empty() {
		err = errNoObservations
	}
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	conv, err := p.newConverter(e, CurveOptions{Model: ModelNames[0]})
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	out := make([]float64, len(sizes))
	return out, conv.missRatios(out, e.mass, e.net, sizes)
}

// Footprint converts times in touches to how many different blocks are touched in them, by SSX. It errs on a broken profile or
// one with no observations.
func (p *Profile) Footprint() (*SSX, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("footprint: %w", err)
	}
	x := new(SSX)
	if err := x.Reset(e.net); err != nil {
		return nil, fmt.Errorf("footprint: %w", err)
	}
	return x, nil
}
