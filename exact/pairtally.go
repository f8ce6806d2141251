package exact

import (
	"iter"

	"github.com/rdx-profiler/rdx/model"
)

// PairTally counts the touches of an exact analysis by the use -> reuse pair
// they end, the reuse time and the stack distance, and makes a Profile of
// them: what a sampled profile estimates, without chance.
//
// Memory is 43 to 86 bytes a combination, of which there are at most 2 million: when
// there are too many, the rarer half of them loses its places and counts for
// [rare pairs]. The histograms stay exact. A PairTally is for one goroutine.
type PairTally struct {
	pairCells
	block        int
	private      bool
	times, dists *model.Bins
	perOctave    int
	caches       []model.Cache

	places []model.Place
	cold   []uint64 // by place

	// Of Add alone.
	last   map[int32]*blockIndex // by thread; all share 0 unless private. Block -> number of the place that used it last
	place  map[model.Place]uint32
	recent [1 << 12]uint32 // 1 + number of a place, by hash
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
	p := &PairTally{pairCells: newPairCells(maxCells), block: blockBytes, private: private, times: b, dists: b.With(edges), perOctave: perOctave, caches: caches,
		last: map[int32]*blockIndex{}, place: map[model.Place]uint32{}}
	p.newPlaces([]model.Place{{}}) // rarePlace
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
		p.add(newPairKey(use, 0, t.Kind, 0, 0), 1, 0)
	}
}

// reused counts a reuse.
func (p *PairTally) reused(use, now uint32, time, dist uint64) {
	p.add(newPairKey(use, now, model.Reuse, p.times.Index(time), p.dists.Index(dist)), 1, dist)
}

// newPlaces makes places known; they get the next numbers.
func (p *PairTally) newPlaces(at []model.Place) {
	p.places = append(p.places, at...)
	p.cold = append(p.cold, make([]uint64, len(at))...)
}

func (p *PairTally) placeOf(at model.Place) uint32 {
	recent := &p.recent[hashBlock(at.PC^uint64(at.Thread)<<48^uint64(at.Op)<<62)%uint64(len(p.recent))]
	if *recent != 0 && p.places[*recent-1] == at {
		return *recent - 1
	}
	n, ok := p.place[at]
	if !ok {
		n = uint32(len(p.places))
		p.newPlaces([]model.Place{at})
		p.place[at] = n
	}
	*recent = n + 1
	return n
}

// Rare is how many touches are counted without the places of their pair.
func (p *PairTally) Rare() uint64 { return p.rare }

// Kinds is how many records there are.
func (p *PairTally) Kinds() int {
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
	for r := range p.Records(locate) {
		own := misses[:len(p.caches):len(p.caches)]
		misses = misses[len(own):]
		copy(own, r.Misses)
		x := *r
		x.Misses = own
		out.Records = append(out.Records, x)
	}
	return out
}

// Records are those of Profile. Each is valid until the next.
func (p *PairTally) Records(locate func(pc uint64) *model.Location) iter.Seq[*model.Record] {
	return func(yield func(*model.Record) bool) {
		stacks := make([][]*model.Location, len(p.places))
		stacks[rarePlace] = []*model.Location{{Lines: []model.Line{{Function: "[rare pairs]", SystemName: "[rare pairs]"}}}}
		at := func(place uint32) []*model.Location {
			if stacks[place] == nil {
				stacks[place] = []*model.Location{locate(p.places[place].PC)}
			}
			return stacks[place]
		}
		misses := make([]float64, len(p.caches))
		record := func(kind model.Kind, place uint32, n uint64) model.Record {
			use := p.places[place]
			return model.Record{Kind: kind, Use: at(place), Op: use.Op, TID: int(use.Thread), Exact: kind == model.Reuse,
				Observations: int64(n), Accesses: float64(n), Misses: misses}
		}
		for i := range p.cells {
			c := &p.cells[i]
			if c.n == 0 {
				continue
			}
			r := record(c.key.kind(), c.key.use(), c.n)
			if r.Kind == model.Reuse {
				r.Reuse = at(c.key.reuse())
				r.Time = p.times.Mid(c.key.time())
				r.Native = r.Time
				r.Reuses = r.Accesses
				r.Distance = float64(c.distances) * float64(p.block)
			}
			for k, cache := range p.caches {
				misses[k] = 0
				if r.Kind != model.Reuse || p.dists.Lo(c.key.dist()) >= cacheBlocks(cache, p.block) {
					misses[k] = r.Accesses
				}
			}
			if !yield(&r) {
				return
			}
		}
		for i, n := range p.cold {
			if n == 0 {
				continue
			}
			r := record(model.Cold, uint32(i), n)
			for k := range misses {
				misses[k] = r.Accesses
			}
			if !yield(&r) {
				return
			}
		}
	}
}
