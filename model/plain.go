package model

import "fmt"

// PlainMissRange is the miss ratios at the given cache sizes, in blocks, without bands, as if all epochs were one: as high as they are
// taken to be, and as low as they are if all hit that may, as it was not followed for long enough. It errs as MissRatios does.
func (p *Profile) PlainMissRange(sizes []uint64) (low, high []float64, err error) {
	e, err := p.estimate()
	if err == nil && e.empty() {
		err = errNoObservations
	}
	if err != nil {
		return nil, nil, fmt.Errorf("miss ratios: %w", err)
	}
	conv, err := p.newConverter(e, CurveOptions{Model: ModelNames[0]})
	if err != nil {
		return nil, nil, fmt.Errorf("miss ratios: %w", err)
	}
	low, high = make([]float64, len(sizes)), make([]float64, len(sizes))
	if err := conv.missRatios(high, e.mass, e.net, sizes); err != nil {
		return nil, nil, fmt.Errorf("miss ratios: %w", err)
	}
	for i, late := range e.maybeReused(sizes) {
		low[i] = max(high[i]-late/e.mass.Total(), 0)
		if i > 0 {
			low[i] = min(low[i], low[i-1])
		}
	}
	return low, high, nil
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
