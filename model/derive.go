package model

import (
	"fmt"
	"math"
)

// Derive fills the derived fields of every record from what was observed.
//
// A record stands for Accesses accesses. Censored and Pruned ones hide how
// they would have ended, so their weight is redistributed by Kaplan & Meier
// to the reuses and invalidations of greater age (see KaplanMeier); what
// outlives the last of them stays on the records cut off after it, as weight
// never seen to be reused. Stack distances come from SSX by epochs and threads,
// see TimeLocal. Then, per record:
//
//   - Reuses: for Reuse records the estimated accesses; 0 for all others.
//   - Misses[i]: expected accesses with a stack distance of at least
//     Caches[i].Size/Block blocks in a fully associative LRU cache. Cold and
//     Invalidated records, and weight never seen to be reused, miss at every
//     size.
//   - Distance: Reuses in units of Observations, times the expected stack
//     distance, times Block: bytes.
//
// Lost and FalseSharing records get zeros. Each
// kind of stack has an estimate of its own: where the profile has several, see OnStack.
//
// Known bias: that of SSX (an epoch is stationary) and of Kaplan-Meier, which
// is one for all threads and epochs (being cut off must say nothing about the
// reuse time). Weight that outlives the last
// reuse is counted as missing, so for caches that hold more than what the
// longest observation touched the miss ratio is an upper bound. Where a time
// is below the clock's resolution it is only known to lie in 1..Time, and is
// taken as spread evenly over the logarithm of that range.
//
// Times are used with the resolution of BinsPerOctave, so deriving before
// writing a profile and after reading it gives the same.
//
// Where distances are exact there is nothing to derive, and nothing changes.
//
// It errs, and changes nothing, if Block is not positive, a kind is unknown
// or a weight is negative or not finite.
func (p *Profile) Derive() error {
	kinds := p.StackKinds()
	if len(kinds) < 2 {
		return p.derive()
	}
	for _, kind := range kinds {
		var own []int
		q := *p
		q.Records = nil
		for i, r := range p.Records {
			if r.Stack == kind {
				own = append(own, i)
				q.Records = append(q.Records, r)
			}
		}
		if err := q.derive(); err != nil {
			return err
		}
		for i, k := range own {
			p.Records[k] = q.Records[i]
		}
	}
	return nil
}

func (p *Profile) derive() error {
	e, err := p.estimate()
	if err != nil {
		return fmt.Errorf("derive: %w", err)
	}
	if p.ExactDistances {
		return nil
	}
	var x *local
	if !e.empty() {
		if x, err = p.local(e); err != nil {
			return fmt.Errorf("derive: %w", err)
		}
	}
	// Per epoch and bin, so that records that share them do not repeat the work.
	sizes := p.cacheBlocks()
	type place struct{ epoch, bin int }
	type result struct {
		distance float64
		miss     []float64
	}
	known := map[place]*result{}
	at := func(r *Record, i int) *result {
		k := place{x.group(r), i}
		b := known[k]
		if b == nil {
			b = &result{miss: make([]float64, len(sizes))}
			known[k] = b
			x.spreads(k.epoch, i, func(p *spread, share float64) {
				b.distance += share * (p.c0 + p.c1) / 2
				for k, s := range sizes {
					b.miss[k] += share * (1 - p.below(float64(s)))
				}
			})
		}
		return b
	}
	for n := range p.Records {
		r := &p.Records[n]
		r.Reuses, r.Distance = 0, 0
		r.Misses = make([]float64, len(sizes))
		everywhere := 0.0 // weight that misses at every size
		switch r.Kind {
		case Reuse:
			perObservation := 0.0
			if r.Accesses > 0 {
				perObservation = float64(r.Observations) / r.Accesses * float64(p.Block)
			}
			if blocks, ok := r.counted(); ok {
				r.Reuses = r.Accesses * e.grow[e.bins.Index(r.Time)]
				r.Distance = r.Reuses * perObservation * float64(blocks)
				for k, s := range sizes {
					if blocks >= s {
						r.Misses[k] = r.Reuses
					}
				}
				break
			}
			e.each(r, func(i int, share float64) {
				w := r.Accesses * share * e.grow[i]
				if w == 0 {
					return
				}
				b := at(r, i)
				r.Reuses += w
				r.Distance += w * perObservation * b.distance
				for k, m := range b.miss {
					r.Misses[k] += w * m
				}
			})
		case Invalidated:
			everywhere = r.Accesses * e.grow[e.bins.Index(max(r.Time, 1))]
		case Cold:
			everywhere = r.Accesses * e.never
		case Censored, Pruned:
			if e.bins.Index(max(r.Time, 1)) >= e.tail {
				everywhere = r.Accesses * e.never
			}
		}
		for k := range r.Misses {
			r.Misses[k] += everywhere
		}
	}
	return nil
}

// Times is the estimated histogram of reuse times, on LogBins(BinsPerOctave),
// in accesses: the reuses after Kaplan-Meier; Cold, what was never seen to be
// reused; Invalidated; Lost, as recorded.
func (p *Profile) Times() (*Hist, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("reuse times: %w", err)
	}
	return e.mass, nil
}

// Stacks is the histogram of stack distances on the given bins, in blocks and
// accesses, estimated by the model of Derive unless distances are exact; the masses are those
// of Times.
func (p *Profile) Stacks(b *Bins) (*Hist, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	h := NewHist(b)
	if p.ExactDistances {
		p.addExact(h)
		h.addEndless(e.mass)
		return h, nil
	}
	if e.empty() {
		h.addEndless(e.mass)
		return h, nil
	}
	x, err := p.local(e)
	if err == nil {
		err = x.stacks(h)
	}
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	h.addEndless(e.mass)
	return h, nil
}

// counted is the record's stack distance in blocks, if it was counted and not
// only its time.
func (r *Record) counted() (blocks uint64, ok bool) {
	return r.Distinct - 1, r.Kind == Reuse && r.Exact && r.Distinct > 0 && r.Time > 0
}

// addExact adds the exact distances of the records' reuses.
func (p *Profile) addExact(h *Hist) {
	for i := range p.Records {
		r := &p.Records[i]
		if bytes, ok := r.MeanDistance(); ok {
			h.W[h.Bins.Index(uint64(math.Round(bytes/float64(p.Block))))] += r.Reuses
		}
	}
}

// Survival is S(t), the fraction of accesses whose block is not touched again
// by the same thread within t accesses, nor invalidated: the function all
// conversions start from. As a histogram: S(t) = Survival().Above(t).
func (p *Profile) Survival() (*Hist, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("survival: %w", err)
	}
	return e.net, nil
}

// Longest is the greatest age, in accesses, to which any observation was
// followed: beyond it nothing is known.
func (p *Profile) Longest() uint64 {
	var t uint64
	for i := range p.Records {
		switch r := &p.Records[i]; r.Kind {
		case Reuse, Censored, Invalidated, Pruned:
			t = max(t, r.Time)
		}
	}
	return t
}

// cacheBlocks is the size of each cache in blocks.
func (p *Profile) cacheBlocks() []uint64 {
	s := make([]uint64, len(p.Caches))
	for i, c := range p.Caches {
		s[i] = uint64(max(c.Size, 0)) / uint64(p.Block)
	}
	return s
}

// endings is the weight of a profile's observations by how and in which bin
// they ended.
type endings struct {
	bins                *Bins
	reuse, invalid, cut []float64
	cold                float64
	raise               []float64 // of reuses: see raisedKaplanMeier
	ended               []float64 // after solve: estimated weight that ends in each bin, either way
}

func newEndings(b *Bins) *endings {
	n := b.Len()
	return &endings{bins: b, reuse: make([]float64, n), invalid: make([]float64, n), cut: make([]float64, n),
		ended: make([]float64, n)}
}

func (t *endings) reset() {
	clear(t.reuse)
	clear(t.invalid)
	clear(t.cut)
	t.cold = 0
}

// add counts weight of a kind other than Lost.
func (t *endings) add(k Kind, bin int, weight float64) {
	switch k {
	case Reuse:
		t.reuse[bin] += weight
	case Invalidated:
		t.invalid[bin] += weight
	case Cold:
		t.cold += weight
	default:
		t.cut[bin] += weight
	}
}

// solve fills two empty histograms. mass: reuses per bin, the invalidated, and
// as Cold what never ends. net: the same with invalidations as ends like any
// other, for what S(t) needs is how long a block takes up room in the stack.
// One invalidated leaves a hole that the next block fills (Schuff et al.,
// section 3.2), so its room is given up then, and not when the thread itself
// touches the block again: a distance is the greatest number of valid blocks
// at any time since the use, and in a steady state the number at its end.
func (t *endings) solve(mass, net *Hist) {
	for i, w := range t.invalid {
		t.ended[i] = t.reuse[i] + w
	}
	mass.Cold = raisedKaplanMeier(mass.W, t.bins, t.ended, t.cut, t.cold, t.raise)
	copy(net.W, mass.W)
	net.Cold = mass.Cold
	for i, all := range t.ended {
		t.ended[i] = mass.W[i]
		if t.invalid[i] > 0 {
			mass.W[i] *= t.reuse[i] / all
			mass.Invalidated += t.ended[i] * t.invalid[i] / all
		}
	}
}

// estimate is what Kaplan-Meier makes of a profile's records.
type estimate struct {
	bins      *Bins
	mass, net *Hist     // see endings.solve
	grow      []float64 // per bin, estimated weight per observed weight
	never     float64   // the same for cold records and cut-offs from bin tail on
	tail      int
	// unfinished is the part of mass.Cold that was cut off, not seen cold.
	unfinished float64
	seen       *endings
	squares    *endings // of the weight of single observations, summed
}

func (e *estimate) empty() bool { return !(e.mass.Total() > 0) }

// defaultPerOctave is used for profiles that do not say how finely their
// times are binned.
const defaultPerOctave = 32

func (p *Profile) estimate() (*estimate, error) {
	if p.Block <= 0 {
		return nil, fmt.Errorf("the profile has a block size of %d bytes (8, 64 or 4096 are usual)", p.Block)
	}
	perOctave := p.BinsPerOctave
	if perOctave <= 0 {
		perOctave = defaultPerOctave
	}
	b := LogBins(perOctave)
	e := &estimate{bins: b, mass: NewHist(b), net: NewHist(b), grow: make([]float64, b.Len()),
		seen: newEndings(b), squares: newEndings(b)}
	for k := range p.Records {
		r := &p.Records[k]
		if !(r.Accesses >= 0) || math.IsInf(r.Accesses, 0) {
			return nil, fmt.Errorf("record %d stands for %v accesses (weights are finite and not negative)", k, r.Accesses)
		}
		if r.Kind >= numKinds {
			return nil, fmt.Errorf("record %d is of unknown kind %d", k, r.Kind)
		}
		switch r.Kind {
		case Lost:
			e.mass.Lost += r.Accesses
			continue
		case FalseSharing:
			continue
		}
		e.mass.N += r.Observations
		each := r.Accesses * r.Accesses / float64(max(r.Observations, 1))
		e.each(r, func(i int, share float64) {
			e.seen.add(r.Kind, i, r.Accesses*share)
			e.squares.add(r.Kind, i, each*share)
		})
	}
	e.net.N = e.mass.N
	e.seen.raise = p.halfRaise(b, e.seen.reuse)
	e.seen.solve(e.mass, e.net)

	// Observed and estimated weight are proportional within a bin.
	last := -1
	for i, w := range e.seen.reuse {
		if w += e.seen.invalid[i]; w > 0 {
			e.grow[i] = e.seen.ended[i] / w
			last = i
		}
	}
	// Who keeps the rest: those not redistributed to any later end.
	e.tail = last + 1
	var cut float64
	for _, w := range e.seen.cut[e.tail:] {
		cut += w
	}
	if cut+e.seen.cold == 0 && last >= 0 {
		e.tail, cut = last, e.seen.cut[last]
	}
	if keep := cut + e.seen.cold; keep > 0 {
		e.never = e.mass.Cold / keep
	}
	e.unfinished = e.never * cut
	return e, nil
}

// each calls f with the bins in which the record's time can lie and the share
// of each, which add up to 1.
func (e *estimate) each(r *Record, f func(i int, share float64)) {
	last := e.bins.Index(max(r.Time, 1))
	if r.Kind != Reuse || !r.BelowResolution || r.Time <= 1 {
		f(last, 1)
		return
	}
	all := math.Log(float64(e.bins.Hi(last)))
	for i := e.bins.Index(1); i <= last; i++ {
		f(i, math.Log(float64(e.bins.Hi(i))/float64(e.bins.Lo(i)))/all)
	}
}
