package model

import (
	"fmt"
	"math"
	"slices"
)

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

// less makes t all less a part of it.
func (t *endings) less(all, part *endings) {
	subtract(t.reuse, all.reuse, part.reuse)
	subtract(t.invalid, all.invalid, part.invalid)
	subtract(t.cut, all.cut, part.cut)
	t.cold = remainder(all.cold, part.cold)
}

func subtract(to, all, part []float64) {
	for i, w := range all {
		to[i] = remainder(w, part[i])
	}
}

// remainder is all less part, where what rounding leaves is nothing.
func remainder(all, part float64) float64 {
	if rest := all - part; rest > 1e-9*all {
		return rest
	}
	return 0
}

// total is all weight.
func (t *endings) total() float64 {
	s := t.cold
	for i, w := range t.reuse {
		s += w + t.invalid[i] + t.cut[i]
	}
	return s
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

// leastStratum is how many ended observations a thread must have for an estimate of
// its own, beside enough for an epoch group (see epochGroups). What is too few is shown by TestStrataAlike: with as many and half of
// them cut off, threads that are all alike lose nothing by being told apart.
const leastStratum = 200

// estimate is what Kaplan-Meier makes of a profile's records: for each thread
// that has enough of them by itself, and one for the others. Threads differ in
// their reuse times, and in when observations are cut off, too, by how long they
// live and how busy their slots are: together that would break the condition of
// Kaplan-Meier.
type estimate struct {
	bins      *Bins
	mass, net *Hist // of all strata, see endings.solve
	// unfinished is the part of mass.Cold that was cut off, not seen cold.
	unfinished float64

	groups  *epochGroups
	strata  []*stratum
	stratum []int // of each of groups
	halves  *halfLines
	reuse   []float64 // observed weight of reuses, of all strata
	counted *counted

	// Of exact profiles, of which these take one look each: their holds, and once asked for stack distances on bins.
	holds     holdCount
	distances *Hist
}

// stratum is the estimate from the records of one thread, or of all that have
// too few.
type stratum struct {
	mass, net *Hist     // see endings.solve
	grow      []float64 // per bin, estimated weight per observed weight
	lastUse   []float64 // per bin, what share of a cut-off's weight there is never reused, and last of a cold record's
	endless   float64   // the same for cold records and cut-offs from bin tail on
	tail      int
	// unfinished is the part of mass.Cold that was cut off, not seen cold.
	unfinished float64
	seen       *endings
	squares    *endings // of the weight of single observations, summed
	far        []farUse
	longest    int  // bin in which the last of them was
	timed      bool // something was followed farther than it was read ahead
}

// farUse is a use that was cut off in a bin, which misses in caches of up to so many blocks for all that comes.
type farUse struct {
	bin    int
	blocks uint64
	weight float64
}

func (e *estimate) empty() bool { return !(e.mass.Total() > 0) }

// of is the stratum of a record that has an outcome.
func (e *estimate) of(r *Record) *stratum { return e.strata[e.stratum[e.groups.group(r)]] }

// seen is the observed weight of all outcomes.
func (e *estimate) seen() (w float64) {
	for _, s := range e.strata {
		w += s.seen.total()
	}
	return w
}

// defaultPerOctave is used for profiles that do not say how finely their
// times are binned.
const defaultPerOctave = 32

// check says whether records can be worked with.
func (p *Profile) check() error {
	if p.Block <= 0 {
		return fmt.Errorf("the profile has a block size of %d bytes (8, 64 or 4096 are usual)", p.Block)
	}
	for k := range p.Records {
		r := &p.Records[k]
		if !(r.Accesses >= 0) || math.IsInf(r.Accesses, 0) {
			return fmt.Errorf("record %d stands for %v accesses (weights are finite and not negative)", k, r.Accesses)
		}
		if r.Kind >= NumKinds {
			return fmt.Errorf("record %d is of unknown kind %d", k, r.Kind)
		}
	}
	return nil
}

func (p *Profile) estimate() (*estimate, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	perOctave := p.BinsPerOctave
	if perOctave <= 0 {
		perOctave = defaultPerOctave
	}
	b := LogBins(perOctave)
	e := &estimate{bins: b, mass: NewHist(b), net: NewHist(b), groups: p.epochGroups()}
	e.stratify(p)
	e.reuse = make([]float64, b.Len())
	e.halves = newHalfLines(b, p.firstHalf(b))
	for k := range p.Records {
		r := &p.Records[k]
		if r.Kind == Lost {
			e.mass.Lost += r.Accesses
		}
		if !r.outcome() {
			continue
		}
		if p.ExactDistances {
			e.holds.add(p, r)
		}
		s := e.of(r)
		s.mass.N += r.Observations
		s.timed = s.timed || !r.Exact
		if r.Distinct > 0 && (r.Kind == Censored || r.Kind == Pruned) {
			bin := e.bins.Index(max(r.Time, 1))
			s.far, s.longest = append(s.far, farUse{bin, r.least(), r.Accesses}), max(s.longest, bin)
		}
		each := r.Accesses * r.Accesses / p.independent(r)
		e.each(r, func(i int, share float64) {
			s.seen.add(r.Kind, i, r.Accesses*share)
			s.squares.add(r.Kind, i, each*share)
			if r.Kind == Reuse {
				e.reuse[i] += r.Accesses * share
			}
		})
		e.halves.add(e, r, 1)
	}
	raise := e.halves.raise(e.reuse)
	for _, s := range e.strata {
		s.seen.raise = raise
		s.solve()
		e.unfinished += s.unfinished
		if err := e.mass.Merge(s.mass); err != nil {
			return nil, err
		}
		if err := e.net.Merge(s.net); err != nil {
			return nil, err
		}
	}
	e.counted = newCounted(b)
	// By time and with all threads watched nobody asks.
	if p.countedAlone(e) || slices.ContainsFunc(e.strata, func(s *stratum) bool { return !s.timed }) {
		for k := range p.Records {
			e.counted.add(e, &p.Records[k], 1)
		}
		e.counted.sort()
	}
	return e, nil
}

// stratify makes a stratum for each thread with enough observations, and last
// one for the others.
func (e *estimate) stratify(p *Profile) {
	count := map[int]float64{} // observations that ended, of each thread with groups of its own
	for i := range p.Records {
		if r := &p.Records[i]; r.outcome() {
			if g := e.groups.group(r); g != e.groups.rest && r.Kind != Censored && r.Kind != Pruned {
				count[e.groups.first[g].tid] += p.independent(r)
			}
		}
	}
	of := map[int]int{}
	add := func() int {
		n := e.bins.Len()
		e.strata = append(e.strata, &stratum{mass: NewHist(e.bins), net: NewHist(e.bins), grow: make([]float64, n),
			seen: newEndings(e.bins), squares: newEndings(e.bins)})
		return len(e.strata) - 1
	}
	e.stratum = make([]int, len(e.groups.first))
	var others []int // groups
	for g, first := range e.groups.first {
		if g == e.groups.rest || count[first.tid] < leastStratum {
			others = append(others, g)
			continue
		}
		if _, ok := of[first.tid]; !ok {
			of[first.tid] = add()
		}
		e.stratum[g] = of[first.tid]
	}
	if len(others) > 0 {
		last := add()
		for _, g := range others {
			e.stratum[g] = last
		}
	}
}

// solve fills in all but what was seen.
func (s *stratum) solve() {
	s.net.N = s.mass.N
	s.seen.solve(s.mass, s.net)

	// Observed and estimated weight are proportional within a bin.
	last := -1
	for i, w := range s.seen.reuse {
		if w += s.seen.invalid[i]; w > 0 {
			s.grow[i] = s.seen.ended[i] / w
			last = i
		}
	}
	// Who keeps the rest: those not redistributed to any later end.
	s.tail = last + 1
	var cut float64
	for _, w := range s.seen.cut[s.tail:] {
		cut += w
	}
	if cut+s.seen.cold == 0 && last >= 0 {
		s.tail, cut = last, s.seen.cut[last]
	}
	if keep := cut + s.seen.cold; keep > 0 {
		s.endless = s.mass.Cold / keep
	}
	s.unfinished = s.endless * cut
	s.shareLastUses()
}

// shareLastUses gives what is never reused to all that were cut off, each as likely to be so as one is that has no reuse so far: the
// self-consistent form of the estimate (Efron, The two sample problem with censored data, 1967).
func (s *stratum) shareLastUses() {
	n := len(s.seen.cut)
	s.lastUse = make([]float64, n+1)
	later, all := s.mass.Cold, s.seen.cold
	s.lastUse[n] = 1
	for i := n - 1; i >= 0; i-- {
		if later > 0 {
			s.lastUse[i] = s.mass.Cold / later
		}
		all += s.seen.cut[i] * s.lastUse[i]
		later += s.seen.ended[i]
	}
	if !(all > 0) {
		return
	}
	for i := range s.lastUse {
		s.lastUse[i] *= s.mass.Cold / all
	}
}

// each calls f with the bins in which the record's time can lie and the share
// of each, which add up to 1.
func (e *estimate) each(r *Record, f func(i int, share float64)) {
	last := e.bins.Index(max(r.Time, 1))
	if r.Kind != Reuse || !r.BelowResolution || r.Time <= r.After+1 {
		f(last, 1)
		return
	}
	least := float64(r.After + 1)
	all := math.Log(float64(e.bins.Hi(last)) / least)
	for i := e.bins.Index(r.After + 1); i <= last; i++ {
		f(i, math.Log(float64(e.bins.Hi(i))/max(float64(e.bins.Lo(i)), least))/all)
	}
}
