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
// Where reading ahead counted the different blocks of a window's beginning, only the rest
// of it is the model's.
//
// Lost records and those beside others get zeros. Each
// kind of stack has an estimate of its own: where the profile has several, see OnStack.
//
// Known bias: that of SSX (an epoch is stationary) and of Kaplan-Meier, which
// each thread with leastStratum observations has its own of (being cut off must
// say nothing about the reuse time). Weight that outlives the last
// reuse is counted as missing, so for caches that hold more than what the
// longest observation touched the miss ratio is an upper bound. Where a time
// is below the clock's resolution it is only known to lie in After+1..Time, and is
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
	d, err := p.newDeriver(e, p.cacheBlocks())
	if err != nil {
		return fmt.Errorf("derive: %w", err)
	}
	for n := range p.Records {
		r := &p.Records[n]
		r.Misses = make([]float64, len(d.sizes))
		d.fill(r)
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

// beginning is what reading ahead counted before a reuse that came later.
func (r *Record) beginning() beginning {
	if r.Kind != Reuse || r.Exact || r.After == 0 || r.Distinct == 0 {
		return beginning{}
	}
	return beginning{r.After + 1, r.Distinct - 1}
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
