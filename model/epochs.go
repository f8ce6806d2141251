package model

import (
	"cmp"
	"maps"
	"slices"
)

// Epochs of fewer observations than leastEpoch are too noisy to use, and more
// than mostEpochs of them cost time and gain nothing: on traces of real
// programs 50, 100 and 200 observations each do equally well.
const (
	leastEpoch = 50
	mostEpochs = 128
)

type epochKey struct{ tid, epoch int }

func (k epochKey) compare(o epochKey) int {
	return cmp.Or(cmp.Compare(k.tid, o.tid), cmp.Compare(k.epoch, o.epoch))
}

// epochGroups are the epochs that estimates use: a thread's joined until they
// have leastEpoch independent observations or, in a large profile, one in mostEpochs of
// all. What is left at a thread's end belongs to the group before it. Threads
// with less than that in all, of which nothing can be told one by one, share
// the last group.
type epochGroups struct {
	of    map[epochKey]int // the group of each epoch
	first []epochKey       // of each group, in order; {} of the shared one
	rest  int              // number of the shared group, -1 if there is none
	found recentEpochs
}

// recentEpochs are some epochs and their numbers: records of one follow each other, or those of few take turns.
type recentEpochs [1024]struct {
	key    epochKey
	number int
	known  bool
}

func (x *recentEpochs) of(k epochKey, look func() int) int {
	e := &x[uint(k.tid*mostEpochs+k.epoch)%uint(len(x))]
	if !e.known || e.key != k {
		e.key, e.number, e.known = k, look(), true
	}
	return e.number
}

func (p *Profile) epochGroups() *epochGroups {
	numbers, sums := map[epochKey]int{}, []float64{}
	var found recentEpochs
	all := 0.0
	for i := range p.Records {
		if r := &p.Records[i]; r.outcome() {
			k := epochOf(r)
			n := found.of(k, func() int {
				n, ok := numbers[k]
				if !ok {
					n = len(sums)
					numbers[k], sums = n, append(sums, 0)
				}
				return n
			})
			sums[n] += p.independent(r)
			all += p.independent(r)
		}
	}
	keys := make([]epochKey, 0, len(sums))
	for k, n := range numbers {
		if sums[n] > 0 {
			keys = append(keys, k)
		}
	}
	seen := func(k epochKey) float64 { return sums[numbers[k]] } // independent observations
	slices.SortFunc(keys, epochKey.compare)
	g := &epochGroups{of: map[epochKey]int{}, rest: -1}
	least := max(leastEpoch, all/mostEpochs)
	for len(keys) > 0 {
		end := 1
		for end < len(keys) && keys[end].tid == keys[0].tid {
			end++
		}
		thread := keys[:end]
		keys = keys[end:]
		group, begin, n := g.rest, 0, 0.0 // group of the thread so far
		for i, k := range thread {
			if n += seen(k); n < least {
				continue
			}
			group = len(g.first)
			g.first = append(g.first, thread[begin])
			for _, j := range thread[begin : i+1] {
				g.of[j] = group
			}
			begin, n = i+1, 0
		}
		for _, j := range thread[begin:] {
			g.of[j] = group
		}
	}
	for k, n := range g.of {
		if n < 0 {
			g.rest = len(g.first)
			g.of[k] = g.rest
		}
	}
	if g.rest >= 0 {
		g.first = append(g.first, epochKey{})
	}
	return g
}

func (g *epochGroups) group(r *Record) int {
	k := epochOf(r)
	return g.found.of(k, func() int { return g.of[k] })
}

// epochOf is the epoch that a record belongs to. All threads share the one
// shared stack, and their epochs have nothing to do with each other.
func epochOf(r *Record) epochKey {
	if r.Stack == StackShared {
		return epochKey{}
	}
	return epochKey{r.TID, r.Epoch}
}

// JoinEpochs numbers the records' epochs anew, so that there are no more than
// estimates use, which do not change: each epoch makes more samples in a file.
func (p *Profile) JoinEpochs() {
	g := p.epochGroups()
	for i := range p.Records {
		if r := &p.Records[i]; r.outcome() {
			r.Epoch = g.first[g.group(r)].epoch
		}
	}
}

// local is the time-local conversion of a profile.
type local struct {
	*TimeLocal
	*epochGroups
	times []*Hist // per group: its estimated reuses; with those below they add up to estimate.mass
	// counted are the stack distances of the reuses for which they are known: no
	// more values than are read ahead, however many records.
	counted Sparse
	// begun are those of which it is known for the beginning of their window.
	begun map[begunReuse]float64 // their weight
}

type begunReuse struct {
	group, bin int
	beginning
}

// local makes the conversion.
func (p *Profile) local(e *estimate) (*local, error) {
	l := &local{epochGroups: e.groups, begun: map[begunReuse]float64{}}
	epochs := make([]Epoch, len(l.first))
	cut := make([][]float64, len(l.first))
	for i, k := range l.first {
		epochs[i] = Epoch{Thread: k.tid, Times: NewHist(e.bins)}
		if i == l.rest {
			epochs[i].Thread = -1
		}
		cut[i] = make([]float64, e.bins.Len())
		l.times = append(l.times, NewHist(e.bins))
	}
	for i := range p.Records {
		r := &p.Records[i]
		if !r.outcome() {
			continue
		}
		n, grow := l.group(r), e.of(r).grow
		x := &epochs[n]
		x.Length += r.Accesses
		x.Times.N += r.Observations
		e.each(r, func(b int, share float64) {
			w := r.Accesses * share
			switch r.Kind {
			case Reuse:
				x.Times.W[b] += w
				if blocks, ok := r.counted(); ok {
					l.counted.Add(blocks, w*grow[b])
				} else if begin := r.beginning(); begin.time > 0 {
					l.begun[begunReuse{n, b, begin}] += w * grow[b]
				} else {
					l.times[n].W[b] += w * grow[b]
				}
			case Invalidated: // gives up its room, see endings.solve
				x.Times.W[b] += w
			case Cold:
				x.Times.Cold += w
			default:
				cut[n][b] += w
			}
		})
	}
	sums := make([]*Hist, len(e.strata))
	for i := range sums {
		sums[i] = NewHist(e.bins)
	}
	for i := range epochs {
		epochs[i].Length = max(epochs[i].Length, 1)
		s := e.stratum[i]
		e.strata[s].redistribute(epochs[i].Times, cut[i])
		if err := sums[s].Merge(epochs[i].Times); err != nil {
			return nil, err
		}
	}
	for i := range epochs {
		s := e.stratum[i]
		scaleTo(epochs[i].Times, sums[s], e.strata[s].net)
	}
	var err error
	l.TimeLocal, err = NewTimeLocal(epochs)
	return l, err
}

// scaleTo changes a part of sum, bin by bin, so that all its parts add up to
// whole: Kaplan-Meier lets some of what is cut off in a bin end in it, too.
func scaleTo(part, sum, whole *Hist) {
	for i, w := range part.W {
		if w > 0 {
			part.W[i] = w * whole.W[i] / sum.W[i]
		}
	}
	if part.Cold > 0 {
		part.Cold *= whole.Cold / sum.Cold
	}
}

// redistribute hands what was cut off in one epoch to later ends as
// Kaplan-Meier does, but in proportion to the whole stratum's: an epoch alone has
// too few.
func (s *stratum) redistribute(h *Hist, cut []float64) {
	later := s.net.Finite()
	carry := 0.0 // weight cut off so far, per weight of the stratum's later ends
	for i, w := range s.net.W {
		h.W[i] += carry * w
		if later -= w; cut[i] == 0 {
			continue
		}
		if rest := later + s.net.Cold; rest > 1e-12*s.net.Total() {
			carry += cut[i] / rest
		} else {
			h.Cold += cut[i]
		}
	}
	h.Cold += carry * s.net.Cold
}

// stacks adds the stack distances of all reuses to dst.
func (l *local) stacks(dst *Hist) error {
	l.counted.addTo(dst)
	dst.N += l.counted.N
	l.eachBegun(func(b begunReuse, w float64) {
		l.spreads(b.group, b.bin, b.beginning, func(p *spread, share float64) { p.add(dst, w*share) })
		dst.N++
	})
	for i, h := range l.times {
		if err := l.Stacks(dst, i, h); err != nil {
			return err
		}
	}
	return nil
}

// eachBegun goes over begun in an order of its own: sums must not depend on that of
// a map.
func (l *local) eachBegun(f func(b begunReuse, weight float64)) {
	keys := slices.SortedFunc(maps.Keys(l.begun), func(a, b begunReuse) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.bin, b.bin), cmp.Compare(a.time, b.time), cmp.Compare(a.blocks, b.blocks))
	})
	for _, k := range keys {
		f(k, l.begun[k])
	}
}

// missed fills out with the weight of the reuses that miss in caches of the given numbers of blocks, of what is converted in those of
// shifted ones.
func (l *local) missed(out []float64, sizes, shifted []uint64) {
	for k, s := range sizes {
		out[k] = l.counted.from(s)
	}
	add := func(group, bin int, begin beginning, w float64) {
		l.spreads(group, bin, begin, func(p *spread, share float64) {
			for k, s := range shifted {
				if begin.time > 0 && begin.blocks >= sizes[k] {
					out[k] += w * share
				} else {
					out[k] += w * share * (1 - p.below(float64(s)))
				}
			}
		})
	}
	l.eachBegun(func(b begunReuse, w float64) { add(b.group, b.bin, b.beginning, w) })
	for n, h := range l.times {
		for i, w := range h.W {
			if w > 0 {
				add(n, i, beginning{}, w)
			}
		}
	}
}
