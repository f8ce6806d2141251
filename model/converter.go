package model

import (
	"fmt"
	"math"
)

// converter makes miss ratios and stack distances of an estimate's masses.
type converter struct {
	e      *estimate
	local  *local // nil unless that is the model; m is then SSX
	m      Model
	ways   int
	most   uint64  // blocks that the program has, 0 if that is not known
	last   float64 // uses at most that none of their block follows, +Inf if that is not known
	stacks *Hist
}

func (p *Profile) newConverter(e *estimate, o CurveOptions) (*converter, error) {
	var l *local
	var err error
	if o.Model == "" || o.Model == Local {
		if l, err = p.local(e); err != nil {
			return nil, err
		}
		o.Model = ModelNames[0]
	}
	m, err := NewModel(o.Model)
	if err != nil {
		return nil, err
	}
	if o.Ways < 0 {
		return nil, fmt.Errorf("%d ways", o.Ways)
	}
	return &converter{e: e, local: l, m: m, ways: o.Ways, most: p.residentBlocks(), last: p.lastUses(), stacks: NewHist(LogBins(20))}, nil
}

// missRatios fills out for the given sizes, as if all epochs were one.
func (c *converter) missRatios(out []float64, mass, net *Hist, sizes []uint64) error {
	if err := c.m.Reset(net); err != nil {
		return err
	}
	if c.ways == 0 {
		for i, s := range sizes {
			out[i] = c.m.MissRatio(mass, s)
		}
		c.bound(out, mass, sizes)
		return nil
	}
	c.stacks.Reset()
	if err := c.m.Stacks(c.stacks, mass); err != nil {
		return err
	}
	for i, s := range sizes {
		out[i] = SetAssociative(c.stacks, s, c.ways)
	}
	return nil
}

// best fills out for the given sizes, by epochs where that is the model.
func (c *converter) best(out []float64, sizes []uint64) error {
	switch {
	case c.local == nil:
		return c.missRatios(out, c.e.mass, c.e.net, sizes)
	case c.ways > 0:
		c.stacks.Reset()
		if err := c.local.stacks(c.stacks); err != nil {
			return err
		}
		c.stacks.addEndless(c.e.mass)
		for i, s := range sizes {
			out[i] = SetAssociative(c.stacks, s, c.ways)
		}
		return nil
	}
	c.local.missed(out, sizes)
	for i := range out {
		out[i] = (out[i] + c.e.mass.Endless()) / c.e.mass.Total()
	}
	c.bound(out, c.e.mass, sizes)
	return nil
}

// bound has nothing but what is not reused miss in a cache that holds all the program has: no more of it than there is.
func (c *converter) bound(out []float64, mass *Hist, sizes []uint64) {
	for i, s := range sizes {
		if c.most > 0 && s >= c.most {
			out[i] = (mass.Invalidated + min(mass.Endless()-mass.Invalidated, c.last)) / mass.Total()
		}
	}
}

// lastUses is how many uses at most none of their block follows, in accesses: each block has one at most. +Inf if that is
// not known.
func (p *Profile) lastUses() float64 {
	if n := p.touchedBlocks(); n > 0 {
		return n
	}
	return math.Inf(1)
}
