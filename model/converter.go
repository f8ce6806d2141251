package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// converter makes miss ratios and stack distances of an estimate's masses.
type converter struct {
	e      *estimate
	local  *local // nil unless that is the model; m is then SSX
	m      Model
	ways   int
	counts bool    // what was counted is not converted
	most   uint64  // blocks that the program has, 0 if that is not known
	last   float64 // uses at most that none of their block follows, +Inf if that is not known
	stacks *Hist
	rest   *Hist // scratch: what was not counted
}

func (p *Profile) newConverter(e *estimate, o CurveOptions) (*converter, error) {
	var l *local
	var err error
	counts := false
	if o.Model == "" || o.Model == Local {
		if l, err = p.local(e); err != nil {
			return nil, err
		}
		o.Model, counts = ModelNames[0], p.countedAlone(e)
	}
	m, err := NewModel(o.Model)
	if err != nil {
		return nil, err
	}
	if o.Ways < 0 {
		return nil, fmt.Errorf("%d ways", o.Ways)
	}
	return &converter{e: e, local: l, m: m, ways: o.Ways, counts: counts, most: p.residentBlocks(), last: p.lastUses(), stacks: NewHist(LogBins(20)), rest: NewHist(e.bins)}, nil
}

// missRatios fills out for the given sizes, as if all epochs were one, where distances are so many times longer than they are converted to.
// What was counted is not converted, but where the caller names the model or the cache has sets.
func (c *converter) missRatios(out []float64, m masses, sizes []uint64, times float64) error {
	if err := c.m.Reset(m.net); err != nil {
		return err
	}
	shifted := c.shift(sizes, times)
	switch {
	case c.ways > 0:
		c.stacks.Reset()
		if err := c.m.Stacks(c.stacks, m.mass); err != nil {
			return err
		}
		c.setAssociative(out, shifted)
		return nil
	case !c.counts:
		for i, s := range shifted {
			out[i] = c.m.MissRatio(m.mass, s)
		}
	default:
		total := m.mass.Total()
		m.split(sizes, c.rest, func(i int, missed float64) {
			out[i] = min((c.rest.Total()*c.m.MissRatio(c.rest, shifted[i])+missed)/total, 1)
		})
	}
	c.bound(out, m.mass, shifted)
	return nil
}

// best is missRatios by epochs where that is the model.
func (c *converter) best(out []float64, sizes []uint64, times float64) error {
	shifted := c.shift(sizes, times)
	switch {
	case c.local == nil:
		return c.missRatios(out, c.e.masses(), sizes, times)
	case c.ways > 0:
		c.stacks.Reset()
		if err := c.local.stacks(c.stacks); err != nil {
			return err
		}
		c.stacks.addEndless(c.e.mass)
		c.setAssociative(out, shifted)
		return nil
	}
	exact := sizes
	if !c.counts {
		exact = shifted
	}
	c.local.missed(out, exact, shifted)
	for i := range out {
		out[i] = (out[i] + c.e.mass.Endless()) / c.e.mass.Total()
	}
	c.bound(out, c.e.mass, shifted)
	return nil
}

// shift is the sizes at which distances as they are converted miss as those that are so many times longer do at the given ones.
func (c *converter) shift(sizes []uint64, times float64) []uint64 {
	if times == 1 {
		return sizes
	}
	out := make([]uint64, len(sizes))
	for i, s := range sizes {
		out[i] = uint64(math.Round(float64(s) / times))
	}
	return out
}

func (c *converter) setAssociative(out []float64, sizes []uint64) {
	for i, s := range sizes {
		out[i] = SetAssociative(c.stacks, s, c.ways)
	}
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

// counted is the observed weight of reuses of which reading ahead counted the stack distance, or what it is at least: of caches of which
// that tells, no conversion, and no error of one, has a part in it.
type counted struct {
	times  []float64     // of those with a distance, by bin of the reuse time
	blocks Sparse        // their distances
	begun  []begunWeight // once sorted, those that tell of the largest caches first
}

// begunWeight is that of reuses that were not near: their time is in a bin, and their distance no less than so many blocks.
type begunWeight struct {
	least  uint64
	bin    int
	weight float64
}

func newCounted(b *Bins) *counted { return &counted{times: make([]float64, b.Len())} }

// add adds such a share of a record, once the estimate is solved: what stands for others, that were cut off, is left out.
func (c *counted) add(e *estimate, r *Record, share float64) {
	if blocks, ok := r.counted(); ok {
		i := e.bins.Index(r.Time)
		w := share * r.Accesses * min(e.of(r).grow[i], 1)
		c.times[i] += w
		c.blocks.Add(blocks, w)
	} else if b := r.beginning(); b.time > 0 {
		e.each(r, func(i int, at float64) {
			c.begun = append(c.begun, begunWeight{b.blocks, i, share * at * r.Accesses * min(e.of(r).grow[i], 1)})
		})
	}
}

// sort brings what was added into order, once that is all.
func (c *counted) sort() {
	slices.SortFunc(c.begun, func(a, b begunWeight) int { return cmp.Or(cmp.Compare(b.least, a.least), cmp.Compare(a.bin, b.bin)) })
}

// countedAlone says whether what was counted needs no conversion. Holds that came by time and tell of their first accesses alone,
// as others are watched for, do: code that waits and computes by turns of some hundred accesses is met where it waits, and what an
// error of the conversion makes of that is in the bands.
func (p *Profile) countedAlone(e *estimate) bool {
	return p.Clock.Unit != "nanoseconds" || !slices.ContainsFunc(e.strata, func(s *stratum) bool { return s.timed })
}

// masses are what miss ratios are made of: see endings.solve, and of the mass what was counted, but for a part that is left out.
type masses struct {
	mass, net     *Hist
	counted, left *counted // nil: nothing
}

func (e *estimate) masses() masses { return masses{e.mass, e.net, e.counted, nil} }

// split calls f for each size, the largest first, with its number, the weight that was counted to miss in a cache of so many blocks, and the
// mass of which nothing was counted, in h: f must not keep it.
func (m masses) split(sizes []uint64, h *Hist, f func(i int, missed float64)) {
	h.Reset()
	h.addEndless(m.mass)
	parts := [...]struct {
		*counted
		sign float64
		at   int     // beginnings passed
		far  float64 // their weight
	}{{counted: m.counted, sign: 1}, {counted: m.left, sign: -1}}
	known := make([]float64, len(h.W)) // of h
	for _, p := range parts {
		if p.counted != nil {
			for i, w := range p.times {
				known[i] += p.sign * w
			}
		}
	}
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, i := range order {
		missed := 0.0
		for k := range parts {
			p := &parts[k]
			if p.counted == nil {
				continue
			}
			for ; p.at < len(p.begun) && p.begun[p.at].least >= sizes[i]; p.at++ {
				known[p.begun[p.at].bin] += p.sign * p.begun[p.at].weight
				p.far += p.sign * p.begun[p.at].weight
			}
			missed += p.far + p.sign*p.blocks.from(sizes[i])
		}
		for b, w := range m.mass.W {
			h.W[b] = remainder(w, known[b])
		}
		f(i, max(missed, 0))
	}
}
