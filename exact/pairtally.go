package exact

import (
	"iter"

	"github.com/rdx-profiler/rdx/model"
)

// PairTally counts the touches of an exact analysis by the use -> reuse pair
// they end, the reuse time and the stack distance, and makes a Profile of
// them: what a sampled profile estimates, without chance.
//
// Memory is 21 to 43 bytes a combination, of which there are at most 2 million, and half a megabyte: when
// there are too many, the rarer half of them loses its places and counts for
// [rare pairs]. The histograms stay exact. A PairTally is for one goroutine.
type PairTally struct {
	pairCells
	block        int
	private      bool
	times, dists *model.Bins
	perOctave    int
	caches       []model.Cache

	byNumber []model.Place
	cold     []uint64 // by place
	// Most touches right after one of the same block are by the place that came there the last time: they are counted
	// without a look-up.
	followers            []follower // by place
	again                pairKey    // what the bins of these touches say
	smallTime, smallDist smallBins
	counting             countedPairs // by addSome

	// Of Add alone.
	last   map[int32]*blockIndex // by thread; all share 0 unless private. Block -> number of the place that used it last
	place  map[model.Place]uint32
	recent [1 << 12]uint32 // 1 + number of a place, by hash
}

// follower is a place that has touched a block right after another one, n times since it was entered.
type follower struct {
	place uint32
	n     uint64
}

// smallBins has the bin of each small value.
type smallBins [smallValues]uint16

func (s *smallBins) init(b *model.Bins) {
	for v := range s {
		s[v] = uint16(b.Index(uint64(v)))
	}
}

// of is b.Index(v).
func (s *smallBins) of(b *model.Bins, v uint64) int {
	if v < smallValues {
		return int(s[v])
	}
	return b.Index(v)
}

// NewPairTally counts for blocks of a size in bytes, with times and distances
// on LogBins(perOctave). private says that the touches are of PrivateStacks.
// Misses are counted for the caches exactly.
func NewPairTally(blockBytes, perOctave int, private bool, caches []model.Cache) (*PairTally, error) {
	if _, err := model.NewGranularity(blockBytes); err != nil {
		return nil, err
	}
	edges := []uint64{}
	for _, c := range caches {
		if blocks := cacheBlocks(c, blockBytes); blocks > 0 {
			edges = append(edges, blocks)
		}
	}
	b := model.LogBins(perOctave)
	dists := b.With(edges)
	p := &PairTally{pairCells: newPairCells(maxCells, newPairPacking(b.Len(), dists.Len())), block: blockBytes, private: private, times: b, dists: dists, perOctave: perOctave, caches: caches,
		last: map[int32]*blockIndex{}, place: map[model.Place]uint32{}}
	p.newPlaces([]model.Place{{}}) // rarePlace
	p.smallTime.init(p.times)
	p.smallDist.init(p.dists)
	p.again = p.reuse(p.times.Index(1), p.dists.Index(0))
	return p, nil
}

// cacheBlocks is how many blocks a cache holds.
func cacheBlocks(c model.Cache, blockBytes int) uint64 {
	return uint64(max(c.Size, 0)) / uint64(blockBytes)
}

// Add counts one touch. It is not for a tally that a Pairs has.
func (p *PairTally) Add(t *Touch) {
	now := p.placeOf(model.Place{PC: t.PC, Thread: t.Thread, Op: t.Op})
	stack := int32(0)
	if p.private {
		stack = t.Thread
	}
	last := p.last[stack]
	if last == nil {
		last = new(blockIndex)
		last.init()
		p.last[stack] = last
	}
	slot := last.slot(t.Block)
	use := *slot - 1 // a blockIndex keeps 0 for itself
	*slot = now + 1
	switch t.Kind {
	case model.Cold:
		p.cold[now]++
	case model.Reuse:
		p.reused(use, now, t.Time, t.Dist)
	default:
		p.count(p.pair(use, rarePlace, p.other(t.Kind), 1), 0)
	}
}

// reused counts a reuse.
func (p *PairTally) reused(use, now uint32, time, dist uint64) {
	if time == 1 {
		p.repeated(use, now, 1)
		return
	}
	p.count(p.pair(use, now, p.reuse(p.smallTime.of(p.times, time), p.smallDist.of(p.dists, dist)), 1), dist)
}

// pair is the key of n touches. Of places beyond those that keys have room for it says nothing.
func (p *PairTally) pair(use, now uint32, says pairKey, n uint64) pairKey {
	k := p.key(use, now, says)
	if k == 0 {
		p.rare += n
		return says
	}
	return k
}

// repeated counts n touches of the block of the touch before.
func (p *PairTally) repeated(use, now uint32, n uint64) {
	f := &p.followers[use]
	if f.place == now {
		f.n += n
		return
	}
	p.repeatedBy(use)
	*f = follower{now, n}
}

// repeatedBy adds what was counted for the follower of a place.
func (p *PairTally) repeatedBy(use uint32) {
	if f := &p.followers[use]; f.n > 0 {
		p.addWide(p.pair(use, f.place, p.again, f.n), wideSum{touches: f.n})
		f.n = 0
	}
}

// settle adds to the cells all that is counted apart from them.
func (p *PairTally) settle() {
	for use := range p.followers {
		p.repeatedBy(uint32(use))
	}
	p.pairCells.settle()
}

// newPlaces makes places known; they get the next numbers.
func (p *PairTally) newPlaces(at []model.Place) {
	p.byNumber = append(p.byNumber, at...)
	p.cold = append(p.cold, make([]uint64, len(at))...)
	p.followers = append(p.followers, make([]follower, len(at))...)
}

func (p *PairTally) placeOf(at model.Place) uint32 {
	recent := &p.recent[hashBlock(at.PC^uint64(at.Thread)<<48^uint64(at.Op)<<62)%uint64(len(p.recent))]
	if *recent != 0 && p.byNumber[*recent-1] == at {
		return *recent - 1
	}
	n, ok := p.place[at]
	if !ok {
		n = uint32(len(p.byNumber))
		p.newPlaces([]model.Place{at})
		p.place[at] = n
	}
	*recent = n + 1
	return n
}

// Rare is how many touches are counted without the places of their pair.
func (p *PairTally) Rare() uint64 {
	p.settle()
	return p.rare
}

// Kinds is how many records there are.
func (p *PairTally) Kinds() int {
	p.settle()
	n := p.used
	for _, c := range p.cold {
		if c > 0 {
			n++
		}
	}
	return n
}

// Head is the profile of what was counted, without its records.
func (p *PairTally) Head() *model.Profile {
	return &model.Profile{
		Source:         "instrumentation",
		Period:         1,
		Clock:          model.Clock{Name: "instrumentation", Unit: "accesses", Rate: 1, RateSource: "counted"},
		Block:          p.block,
		BinsPerOctave:  p.perOctave,
		Caches:         p.caches,
		ExactDistances: true,
	}
}

// Profile is what was counted. A touch counts as an access; locate gives the
// location of an instruction, the same one for the same address.
func (p *PairTally) Profile(locate func(pc uint64) *model.Location) *model.Profile {
	out := p.Head()
	misses := make([]float64, p.Kinds()*len(p.caches))
	parts := p.Parts(locate)
	for i := range parts.Uses {
		for r := range parts.Records(i) {
			sums := misses[:len(p.caches):len(p.caches)]
			misses = misses[len(sums):]
			copy(sums, r.Misses)
			x := *r
			x.Misses = sums
			out.Records = append(out.Records, x)
		}
	}
	return out
}

// PairParts are the records of a PairTally by the instructions of their uses.
type PairParts struct {
	Uses []*model.Location
	// Locations are the uses and reuses of all records, and Kinds their kinds, each one once.
	Locations []*model.Location
	Kinds     []model.Kind

	tally       *PairTally
	stacks      [][]*model.Location // by place
	placesOfUse [][]uint32          // by use: those that are it
	starts      []uint32            // of the cells, by the place of their use
	// missing has by cache the first of the distances' bins that are no less than what it holds.
	missing []int
}

// Parts puts what was counted in order. Nothing must be counted after it.
func (p *PairTally) Parts(locate func(pc uint64) *model.Location) *PairParts {
	p.settle()
	out := &PairParts{tally: p, stacks: make([][]*model.Location, len(p.byNumber)), starts: make([]uint32, len(p.byNumber)+1)}
	for _, c := range p.caches {
		out.missing = append(out.missing, p.dists.Index(cacheBlocks(c, p.block)))
	}
	reused := out.begin()
	type place struct {
		stack []*model.Location
		use   int // index in Uses, -1 for none
	}
	known := map[*model.Location]*place{}
	for i, at := range p.byNumber {
		uses := out.starts[i] < out.starts[i+1] || p.cold[i] > 0
		if !uses && !reused[i] {
			continue
		}
		var l *model.Location
		if i == rarePlace {
			l = &model.Location{Lines: []model.Line{{Function: "[rare pairs]", SystemName: "[rare pairs]"}}}
		} else {
			l = locate(at.PC)
		}
		k := known[l]
		if k == nil {
			k = &place{[]*model.Location{l}, -1}
			known[l] = k
			out.Locations = append(out.Locations, l)
		}
		if uses && k.use < 0 {
			k.use = len(out.Uses)
			out.Uses, out.placesOfUse = append(out.Uses, l), append(out.placesOfUse, nil)
		}
		if uses {
			out.placesOfUse[k.use] = append(out.placesOfUse[k.use], uint32(i))
		}
		out.stacks[i] = k.stack
	}
	return out
}

// begin finds where the cells of each place begin, which places are reuses, and all kinds.
func (o *PairParts) begin() (reused []bool) {
	p := o.tally
	reused = make([]bool, len(p.byNumber))
	var is [model.NumKinds]bool
	for _, c := range p.sorted() {
		kind, _, _ := p.bins(c.key)
		is[kind] = true
		if kind == model.Reuse {
			reused[p.reuses(c.key)] = true
		}
		o.starts[p.uses(c.key)+1]++
	}
	for i, n := range p.cold {
		is[model.Cold] = is[model.Cold] || n > 0
		o.starts[i+1] += o.starts[i]
	}
	for kind, is := range is {
		if is {
			o.Kinds = append(o.Kinds, model.Kind(kind))
		}
	}
	return reused
}

// Records are those of a use. Each is valid until the next.
func (o *PairParts) Records(use int) iter.Seq[*model.Record] {
	return func(yield func(*model.Record) bool) {
		p := o.tally
		misses := make([]float64, len(p.caches))
		for _, place := range o.placesOfUse[use] {
			at := &p.byNumber[place]
			r := model.Record{Use: o.stacks[place], Op: at.Op, TID: int(at.Thread), Derived: model.Derived{Misses: misses}}
			cells := p.cells[o.starts[place]:o.starts[place+1]]
			for i := range cells {
				o.set(&r, &cells[i])
				if !yield(&r) {
					return
				}
			}
			if n := p.cold[place]; n > 0 {
				o.end(&r, model.Cold, n)
				if !yield(&r) {
					return
				}
			}
		}
	}
}

// end makes a record one of so many touches without a reuse, which miss in all caches.
func (o *PairParts) end(r *model.Record, kind model.Kind, n uint64) {
	r.Kind, r.Reuse, r.Timing = kind, nil, model.Timing{}
	r.Observations, r.Accesses, r.Reuses, r.Distance = int64(n), float64(n), 0, 0
	for k := range r.Misses {
		r.Misses[k] = r.Accesses
	}
}

// set makes a record that of a cell.
func (o *PairParts) set(r *model.Record, c *pairCell) {
	p := o.tally
	n := p.of(c)
	kind, time, dist := p.bins(c.key)
	if kind != model.Reuse {
		o.end(r, kind, n.touches)
		return
	}
	r.Kind, r.Reuse = kind, o.stacks[p.reuses(c.key)]
	mid := p.times.Mid(time)
	r.Timing = model.Timing{Time: mid, Native: mid, Exact: true}
	r.Observations, r.Accesses = int64(n.touches), float64(n.touches)
	r.Reuses, r.Distance = r.Accesses, float64(n.distances)*float64(p.block)
	for k, first := range o.missing {
		r.Misses[k] = 0
		if dist >= first {
			r.Misses[k] = r.Accesses
		}
	}
}
