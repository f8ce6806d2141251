package pprofout

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// partGroups are to records in parts what groups are to others. There are millions of them, and they say little: they
// are summed, sorted and encoded in a fraction of the time.
type partGroups struct {
	e      *encoder
	use    *profile.Location // of the part
	keys   []partKey
	sums   []partSum
	misses []float64 // by sum, and of it by cache

	located map[*model.Location]*profile.Location
	pseudos [model.NumKinds]*profile.Location
	reuse   *model.Location // of the record before
	reuseIs *profile.Location

	sample group // the one that is encoded, reused
	stack  [3]*profile.Location
	labels [2]label
	fixed  partLabels
}

// A partKey tells a record of a part from those of other samples, and orders it as compareGroups does.
type partKey struct {
	stack uint64 // the frame between, and in the lower half the reuse; 0: none
	who   uint64 // direction and thread
	bins  uint64 // of time and of distance, and in the lowest bit whether the time is exact
	kind  model.Kind
	sum   uint32
}

func comparePartKeys(a, b partKey) int {
	switch {
	case a.stack != b.stack:
		return cmp.Compare(a.stack, b.stack)
	case a.who != b.who:
		return cmp.Compare(a.who, b.who)
	}
	return cmp.Compare(a.bins, b.bins)
}

const (
	tidBits   = 32
	tidSign   = 1 << (tidBits - 1) // flipped, negative ones are the lower
	exactBit  = 1
	distShift = 1
	timeShift = 32
)

func (k *partKey) op() model.Op { return model.Op(k.who >> tidBits) }
func (k *partKey) tid() int     { return int(int32(uint32(k.who) ^ tidSign)) }
func (k *partKey) time() int    { return int(k.bins >> timeShift) }
func (k *partKey) exact() bool  { return k.bins&exactBit != 0 }

// partSum has of a record what a group has.
type partSum struct {
	reuse                      *profile.Location
	observations               int64
	accesses, reuses, distance float64 // weights
	reused, distances          float64
}

// partLabels are the labels that samples of the same kind, direction and thread share, encoded.
type partLabels struct {
	kind  model.Kind
	who   uint64
	exact bool
	is    []byte
}

// plain is an error if a record says more than those of parts can.
func (e *encoder) plain(r *model.Record) error {
	switch {
	case len(r.Use) != 1 || len(r.Reuse) > 1 || r.Kind >= model.NumKinds || len(r.Reuse) > 0 && !r.Kind.Parts().Ended:
		return errors.New("its stacks are not of one frame")
	case r.Data != nil || r.DataSource != "" || r.Words() != model.Words{}:
		return errors.New("it tells of data")
	case r.Epoch != 0 || r.Stack != 0 || r.Cluster != model.Cluster{} || r.Squares != 0:
		return errors.New("it is of a sample")
	case r.BelowResolution || r.Lookahead != model.Lookahead{} || r.Half:
		return errors.New("it is timed")
	case r.TID != int(int32(r.TID)):
		return fmt.Errorf("thread %d", r.TID)
	case len(r.Misses) != len(e.p.Caches):
		return fmt.Errorf("misses of %d cache levels, the profile has %d", len(r.Misses), len(e.p.Caches))
	case r.Observations < 0:
		return fmt.Errorf("%d observations: want 0 or more", r.Observations)
	}
	for _, w := range r.Misses {
		if !isWeight(w) {
			return fmt.Errorf("weight %v: want finite numbers >= 0", w)
		}
	}
	for _, w := range [...]float64{r.Accesses, r.Reuses, r.Distance} {
		if !isWeight(w) {
			return fmt.Errorf("weight %v: want finite numbers >= 0", w)
		}
	}
	return nil
}

func isWeight(w float64) bool { return w >= 0 && w <= math.MaxFloat64 }

// newPartGroups makes the locations of all parts known.
func newPartGroups(e *encoder) *partGroups {
	g := &partGroups{e: e, located: make(map[*model.Location]*profile.Location, len(e.parts.Locations))}
	for _, l := range e.parts.Locations {
		g.located[l] = e.intern(l, true)
	}
	for _, k := range e.parts.Kinds {
		g.pseudos[k] = e.pseudo(pseudoFrame(k))
	}
	return g
}

// partsInOrder are the indices of the parts in the order of their uses' numbers.
func (g *partGroups) partsInOrder() []int {
	uses := g.e.parts.Uses
	order, id := make([]int, len(uses)), make([]uint64, len(uses))
	for i, l := range uses {
		order[i] = i
		if use := g.located[l]; use != nil { // nil: it has no records
			id[i] = use.ID
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(id[a], id[b]) })
	return order
}

// collect takes the records of a part in the place of those of the one before.
func (g *partGroups) collect(part int) error {
	e := g.e
	use := e.parts.Uses[part]
	g.use = g.located[use]
	g.keys, g.sums, g.misses = g.keys[:0], g.sums[:0], g.misses[:0]
	for r := range e.parts.Records(part) {
		if err := g.check(r, use); err != nil {
			return fmt.Errorf("records in parts: %w", err)
		}
		k := partKey{stack: g.pseudos[r.Kind].ID << 32, who: uint64(r.Op)<<tidBits | uint64(uint32(r.TID)^tidSign), kind: r.Kind, sum: uint32(len(g.sums))}
		var reuse *profile.Location
		if len(r.Reuse) > 0 {
			reuse = g.reuseIs // by check
			k.stack |= reuse.ID
		}
		s := partSum{reuse: reuse, observations: r.Observations, accesses: r.Accesses, reuses: r.Reuses, distance: r.Distance}
		if r.Kind.Parts().Timed {
			k.bins = uint64(e.bins.Index(r.Time)) << timeShift
			if r.Exact {
				k.bins |= exactBit
			}
		}
		if mean, ok := r.MeanDistance(); ok {
			if e.p.ExactDistances {
				k.bins |= uint64(e.bins.Index(uint64(math.Round(mean/float64(max(e.p.Block, 1)))))) << distShift
			}
			s.reused = float64(r.Observations) * (r.Reuses / r.Accesses)
			s.distances = s.reused * mean
		}
		g.keys, g.sums, g.misses = append(g.keys, k), append(g.sums, s), append(g.misses, r.Misses...)
	}
	return nil
}

// check is an error if a record is not one of its part, and finds its reuse.
func (g *partGroups) check(r *model.Record, use *model.Location) error {
	if err := g.e.plain(r); err != nil {
		return err
	}
	if r.Use[0] != use {
		return errors.New("one is of another part")
	}
	if len(r.Reuse) > 0 && r.Reuse[0] != g.reuse {
		g.reuse, g.reuseIs = r.Reuse[0], g.located[r.Reuse[0]]
	}
	if g.use == nil || len(r.Reuse) > 0 && g.reuseIs == nil || g.pseudos[r.Kind] == nil {
		return errors.New("a location or kind is not among those of all")
	}
	return nil
}

// each gives the samples in their order to f, each until the next.
func (g *partGroups) each(f func(*group, *partKey) error) error {
	slices.SortFunc(g.keys, comparePartKeys)
	s, caches := &g.sample, len(g.e.p.Caches)
	if s.weights == nil {
		s.weights = make([]float64, caches+3)
	}
	for from := 0; from < len(g.keys); {
		k := &g.keys[from]
		clear(s.weights)
		s.observations, s.reused, s.distance = 0, 0, 0
		for ; from < len(g.keys) && comparePartKeys(*k, g.keys[from]) == 0; from++ {
			at := int(g.keys[from].sum)
			x := &g.sums[at]
			if x.observations > math.MaxInt64-s.observations {
				return fmt.Errorf("observations add up to more than %d", int64(math.MaxInt64))
			}
			s.observations += x.observations
			s.reused += x.reused
			s.distance += x.distances
			s.weights[0] += x.accesses
			s.weights[1] += x.reuses
			for i, m := range g.misses[at*caches : (at+1)*caches] {
				s.weights[2+i] += m
			}
			s.weights[2+caches] += x.distance
		}
		s.stack = g.stack[:0]
		if reuse := g.sums[k.sum].reuse; reuse != nil {
			s.stack = append(s.stack, reuse)
		}
		s.stack = append(s.stack, g.pseudos[k.kind], g.use)
		if err := f(s, k); err != nil {
			return err
		}
	}
	return nil
}

// encode gives a sample as encoder.labels and sampleWriter.encode do.
func (g *partGroups) encode(to *sampleWriter, s *group, k *partKey) []byte {
	e, fixed := g.e, &g.fixed
	if fixed.is == nil || fixed.kind != k.kind || fixed.who != k.who || fixed.exact != k.exact() {
		*fixed = partLabels{kind: k.kind, who: k.who, exact: k.exact(), is: fixed.is[:0]}
		for _, l := range e.labels(&group{kind: k.kind, op: k.op(), tid: k.tid(), exact: k.exact()}) {
			if l.key != reuseTime {
				fixed.is = to.appendLabel(fixed.is, l, 0)
			}
		}
	}
	labels := g.labels[:0]
	if k.kind.Parts().Timed {
		labels = append(labels, label{key: reuseTime, unit: "accesses", number: int64(e.bins.Mid(k.time()))})
	}
	if l, ok := s.distanceLabel(); ok {
		labels = append(labels, l)
	}
	return to.encode(s, fixed.is, labels)
}
