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
// outlives the last of them stays on all that were cut off, more on those that
// were followed longer, as weight never seen to be reused. Stack distances come from SSX by epochs and threads,
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
		var numbers []int
		q := *p
		q.Records = nil
		for i, r := range p.Records {
			if r.Stack == kind {
				numbers = append(numbers, i)
				q.Records = append(q.Records, r)
			}
		}
		if err := q.derive(); err != nil {
			return err
		}
		for i, k := range numbers {
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
	e, err := p.Estimated()
	if err != nil {
		return nil, fmt.Errorf("stack distances: %w", err)
	}
	return e.Stacks(b)
}

// Estimated is what Kaplan-Meier makes of a profile, for who asks for several things made of it: it takes several looks
// through all records. The profile must not change meanwhile, and nobody else may ask at the same time.
type Estimated struct {
	p *Profile
	e *estimate
}

// Estimated makes it. It errs on a broken profile.
func (p *Profile) Estimated() (*Estimated, error) {
	e, err := p.estimate()
	if err != nil {
		return nil, err
	}
	return &Estimated{p, e}, nil
}

// Stacks is Profile.Stacks.
func (x *Estimated) Stacks(b *Bins) (*Hist, error) { return x.p.stacks(x.e, b) }

// Farthest is a number of blocks, a power of two, that holds all that was seen, as far as these are less than most; 0 if that is not known.
func (x *Estimated) Farthest(most uint64) (blocks uint64) {
	octaves := LogBins(1)
	far := func(h *Hist) {
		for i, w := range h.W {
			if hi := octaves.Hi(octaves.Index(h.Bins.Lo(i))); w > 0 && hi < most {
				blocks = max(blocks, hi)
			}
		}
	}
	if x.p.ExactDistances { // its bins nest in octaves
		far(x.e.exact(x.p))
	} else if h, err := x.Stacks(octaves); err == nil {
		far(h)
	}
	return blocks
}

// exact are the distances of an exact profile.
func (e *estimate) exact(p *Profile) *Hist {
	if e.distances == nil {
		e.distances = NewHist(e.bins)
		p.addExact(e.distances)
	}
	return e.distances
}

// MissRatios is Profile.MissRatios.
func (x *Estimated) MissRatios(sizes []uint64, o CurveOptions) (*Curve, error) {
	c, err := x.p.curve(x.e, sizes, o)
	if err != nil {
		return nil, fmt.Errorf("miss ratios: %w", err)
	}
	c.MaybeHits = x.e.maybeReused(x.p.cacheBlocks())
	return c, nil
}

func (p *Profile) stacks(e *estimate, b *Bins) (*Hist, error) {
	h := NewHist(b)
	if p.ExactDistances {
		if b == e.bins {
			copy(h.W, e.exact(p).W)
		} else {
			p.addExact(h)
		}
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

// least is the least stack distance, in blocks, that a use without a reuse so far can have: what was seen to be touched
// since.
func (r *Record) least() uint64 { return max(r.Distinct, 1) - 1 }

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

// deriver fills derived fields for caches of the given sizes, in blocks.
type deriver struct {
	p     *Profile
	e     *estimate
	x     *local
	sizes []uint64

	// Per epoch, bin and what is known of the window's beginning, so that
	// records that share them do not repeat the work.
	known   map[derivedPlace]*derivedBin
	most    uint64   // blocks that the program has at most, 0 if that is not known
	lasting float64  // share of what is never reused that misses a cache that holds all
	hot     []uint64 // by size: blocks of the hot set by which its misses are bounded, 0: by none
	scratch []float64
}

type derivedPlace struct {
	epoch, bin int
	begin      beginning
}

// derivedBin is what a reuse there has: its mean distance in blocks, and its probability of
// missing in each size. That is whole for sizes before from, and 0 behind the part that is kept.
type derivedBin struct {
	distance float64
	whole    float64
	from     int
	miss     []float64
}

func (p *Profile) newDeriver(e *estimate, sizes []uint64) (*deriver, error) {
	d := &deriver{p: p, e: e, sizes: sizes, known: map[derivedPlace]*derivedBin{}, most: p.residentBlocks(), lasting: 1, scratch: make([]float64, len(sizes))}
	if unreused := e.mass.Endless() - e.mass.Invalidated; unreused > 0 {
		d.lasting = min(1, p.lastUses()/unreused)
	}
	if e.empty() || p.ExactDistances {
		return d, nil
	}
	var err error
	if d.x, err = p.local(e); err == nil {
		d.hot, err = p.hotAt(e, sizes)
	}
	return d, err
}

// within is a distance, in blocks, that is no more than the program has.
func (d *deriver) within(distance float64) float64 {
	if d.most == 0 {
		return distance
	}
	return min(distance, float64(d.most))
}

func (d *deriver) at(r *Record, i int) *derivedBin {
	k := derivedPlace{d.x.group(r), i, r.beginning()}
	if b := d.known[k]; b != nil {
		return b
	}
	b := &derivedBin{}
	d.known[k] = b
	clear(d.scratch)
	d.x.spreads(k.epoch, i, k.begin, func(p *spread, share float64) {
		b.distance += share * d.within((p.c0+p.c1)/2)
		b.whole += share
		for k, s := range d.sizes {
			if d.most == 0 || s < d.most {
				d.scratch[k] += share * (1 - p.below(float64(s)))
			}
		}
	})
	to := len(d.scratch)
	for to > 0 && d.scratch[to-1] == 0 {
		to--
	}
	for b.from < to && d.scratch[b.from] == b.whole {
		b.from++
	}
	b.miss = append(b.miss, d.scratch[b.from:to]...)
	return b
}

// fill sets what is derived of one record, whose Misses have len(sizes).
func (d *deriver) fill(r *Record) {
	clear(r.Misses)
	r.Reuses, r.Distance = 0, 0
	if !r.outcome() {
		return
	}
	everywhere, unreused := 0.0, 0.0 // weight that misses at every size, and that is not reused
	numbers := d.e.of(r)
	switch r.Kind {
	case Reuse:
		d.fillReuse(r)
	case Invalidated:
		everywhere = r.Accesses * numbers.grow[d.e.bins.Index(max(r.Time, 1))]
	case Cold:
		unreused = r.Accesses * numbers.lastUse[len(numbers.lastUse)-1]
	case Censored, Pruned:
		unreused = r.Accesses * numbers.lastUse[d.e.bins.Index(max(r.Time, 1))]
	}
	for k, s := range d.sizes {
		r.Misses[k] += everywhere
		if d.most > 0 && s >= d.most {
			r.Misses[k] += unreused * d.lasting
		} else {
			r.Misses[k] += unreused
		}
	}
	d.keep(r)
}

func (d *deriver) fillReuse(r *Record) {
	numbers := d.e.of(r)
	perObservation := 0.0
	if r.Accesses > 0 {
		perObservation = float64(r.Observations) / r.Accesses * float64(d.p.Block)
	}
	if blocks, ok := r.counted(); ok {
		r.Reuses = r.Accesses * numbers.grow[d.e.bins.Index(r.Time)]
		r.Distance = r.Reuses * perObservation * float64(blocks)
		for k, s := range d.sizes {
			if blocks >= s {
				r.Misses[k] = r.Reuses
			}
		}
		return
	}
	d.e.each(r, func(i int, share float64) {
		w := r.Accesses * share * numbers.grow[i]
		if w == 0 {
			return
		}
		b := d.at(r, i)
		r.Reuses += w
		r.Distance += w * perObservation * b.distance
		for k := range min(b.from, len(r.Misses)) {
			r.Misses[k] += w * b.whole
		}
		for k, m := range b.miss {
			r.Misses[b.from+k] += w * m
		}
	})
}

// MissesAt calls f with each record's expected misses in fully associative LRU caches of the
// given sizes, in blocks and increasing: Record.Misses as Derive makes them, or, where distances
// are exact, as MissWeights counts them. misses is of len(sizes), decreases where distances are exact, and is not to be
// kept. Records that tell no outcome have none. As Derive, it is for profiles of one kind of stack.
func (p *Profile) MissesAt(sizes []uint64, f func(i int, misses []float64)) error {
	of, err := p.MissesBy(sizes)
	if err != nil {
		return err
	}
	misses := make([]float64, len(sizes))
	for i := range p.Records {
		of(i, misses)
		f(i, misses)
	}
	return nil
}

// MissesBy is MissesAt for records in any order: what it returns sets misses to those of record i. Where distances are exact
// several goroutines may call it at once.
func (p *Profile) MissesBy(sizes []uint64) (of func(i int, misses []float64), err error) {
	if p.ExactDistances {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("misses: %w", err)
		}
		return func(i int, misses []float64) {
			weight, n := p.Records[i].exactReach(p.Block, sizes)
			for k := range misses[:n] {
				misses[k] = weight
			}
			clear(misses[n:])
		}, nil
	}
	e, err := p.estimate()
	if err != nil {
		return nil, fmt.Errorf("misses: %w", err)
	}
	d, err := p.newDeriver(e, sizes)
	if err != nil {
		return nil, fmt.Errorf("misses: %w", err)
	}
	return func(i int, misses []float64) {
		r := p.Records[i]
		r.Misses = misses
		d.fill(&r)
	}, nil
}

// ClusterSquares is the sum over clusters of the square of what values, by record of the list, add
// up to in each: of PerAccess's band the part that depends on them. values has n numbers for each
// record, such as its misses in n caches.
func (p *Profile) ClusterSquares(records []*Record, n int, values func(k int) []float64) []float64 {
	out := make([]float64, n)
	var holds byHold[[]float64]
	var groups [JackknifeGroups + 1][]float64
	add := func(sum []float64, v []float64) []float64 {
		if sum == nil {
			sum = make([]float64, n)
		}
		for i, x := range v {
			sum[i] += x
		}
		return sum
	}
	last := 0
	for k, r := range records {
		v := values(k)
		if r.Group > 0 && r.Group <= JackknifeGroups {
			groups[r.Group] = add(groups[r.Group], v)
			last = max(last, r.Group)
		}
		if r.Hold != 0 {
			sum := holds.of(r.Hold)
			*sum = add(*sum, v)
			continue
		}
		by := 1 / p.independent(r)
		for i, x := range v {
			out[i] += x * x * by
		}
	}
	for _, sum := range holds.all {
		for i, x := range sum {
			out[i] += x * x
		}
	}
	parts := make([]float64, last)
	for i := range out {
		for g := range parts {
			if parts[g] = 0; groups[g+1] != nil {
				parts[g] = groups[g+1][i]
			}
		}
		out[i] = max(out[i], groupVariance(parts))
	}
	return out
}

// CountBand is the exact 95 % band of the mean of a Poisson count of which k were seen; k need not
// be whole (Garwood 1936).
func CountBand(k float64) (low, high float64) { return garwood(k, 0.05) }
