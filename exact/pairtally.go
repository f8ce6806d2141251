package exact

import (
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// PairTally counts the touches of an exact analysis by the use -> reuse pair
// they end, the reuse time and the stack distance, and makes a Profile of
// them: what a sampled profile estimates, without chance.
//
// Memory is 14 bytes a block and less than 200 MB for the combinations: when
// there are too many, the rarer half of them loses its places and counts for
// [rare pairs]. The histograms stay exact. A PairTally is for one goroutine.
type PairTally struct {
	limit        int    // of cells
	rare         uint64 // touches that lost their places
	block        int
	private      bool
	times, dists *model.Bins
	perOctave    int
	caches       []model.Cache

	last    map[int32]*blockIndex // by thread; all share 0 unless private. Block -> number of the place that used it last
	places  []pairPlace
	place   map[pairPlace]uint32
	recent  [1 << 12]uint32 // 1 + number of a place, by hash
	cells   []pairCell
	cell    map[pairKey]uint32
	cached  [1 << 14]uint32 // 1 + index into cells, by hash
	cold    []uint64        // by place
	touches uint64
}

type pairPlace struct {
	pc     uint64
	thread int32
	op     model.Op
}

type pairKey struct {
	use, reuse uint32 // places
	kind       model.Kind
	time, dist uint16 // bins
}

type pairCell struct {
	key       pairKey
	n         uint64
	distances float64 // sum, in blocks; exact below 2^53
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
		if blocks := uint64(max(c.Size, 0)) / uint64(blockBytes); blocks > 0 {
			edges = append(edges, blocks)
		}
	}
	b := model.LogBins(perOctave)
	p := &PairTally{limit: maxCells, block: blockBytes, private: private, times: b, dists: b.With(edges), perOctave: perOctave, caches: caches,
		last: map[int32]*blockIndex{}, place: map[pairPlace]uint32{}, cell: map[pairKey]uint32{}}
	p.placeOf(pairPlace{}) // rarePlace
	return p, nil
}

const (
	maxCells  = 1 << 21
	rarePlace = 0
)

// Add counts one touch.
func (p *PairTally) Add(t *Touch) {
	p.touches++
	now := p.placeOf(pairPlace{t.PC, t.Thread, t.Op})
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
	if t.Kind == model.Cold {
		p.cold[now]++
		return
	}
	k := pairKey{use: use, kind: t.Kind}
	dist := 0.0
	if t.Kind == model.Reuse {
		k.reuse, k.time, k.dist = now, uint16(p.times.Index(t.Time)), uint16(p.dists.Index(t.Dist))
		dist = float64(t.Dist)
	}
	c := &p.cells[p.cellOf(k)]
	c.n++
	c.distances += dist
}

func (p *PairTally) placeOf(at pairPlace) uint32 {
	recent := &p.recent[hashBlock(at.pc^uint64(at.thread)<<48^uint64(at.op)<<62)%uint64(len(p.recent))]
	if *recent != 0 && p.places[*recent-1] == at {
		return *recent - 1
	}
	n, ok := p.place[at]
	if !ok {
		n = uint32(len(p.places))
		p.places = append(p.places, at)
		p.cold = append(p.cold, 0)
		p.place[at] = n
	}
	*recent = n + 1
	return n
}

func (p *PairTally) cellOf(k pairKey) uint32 {
	h := hashBlock(uint64(k.use)<<32 | uint64(k.reuse) ^ uint64(k.time)<<16 ^ uint64(k.dist)<<48)
	cached := &p.cached[h%uint64(len(p.cached))]
	if *cached != 0 && p.cells[*cached-1].key == k {
		return *cached - 1
	}
	n, ok := p.cell[k]
	if !ok {
		if len(p.cells) >= p.limit && k.use != rarePlace {
			p.forgetRare()
			return p.cellOf(k)
		}
		n = uint32(len(p.cells))
		p.cells = append(p.cells, pairCell{key: k})
		p.cell[k] = n
	}
	*cached = n + 1
	return n
}

// forgetRare takes their places from the cells with the smallest counts, so
// that no more than half of them is left.
func (p *PairTally) forgetRare() {
	counts := make([]uint64, 0, len(p.cells))
	for i := range p.cells {
		counts = append(counts, p.cells[i].n)
	}
	slices.Sort(counts)
	least := counts[len(counts)/2] + 1
	old := p.cells
	p.cells, p.cell = nil, map[pairKey]uint32{}
	clear(p.cached[:])
	for _, c := range old {
		if c.n < least && c.key.use != rarePlace {
			p.rare += c.n
			c.key.use, c.key.reuse = rarePlace, rarePlace
		}
		to := &p.cells[p.cellOf(c.key)]
		to.n += c.n
		to.distances += c.distances
	}
}

// Rare is how many touches are counted without the places of their pair.
func (p *PairTally) Rare() uint64 { return p.rare }

// Profile is what was counted. A touch counts as an access; locate gives the
// location of an instruction, the same one for the same address.
func (p *PairTally) Profile(locate func(pc uint64) *model.Location) *model.Profile {
	out := &model.Profile{
		Source:         "instrumentation",
		Period:         1,
		Clock:          model.Clock{Name: "instrumentation", Unit: "accesses", Rate: 1, RateSource: "counted"},
		Block:          p.block,
		BinsPerOctave:  p.perOctave,
		Caches:         p.caches,
		ExactDistances: true,
	}
	rare := &model.Location{Lines: []model.Line{{Function: "[rare pairs]", SystemName: "[rare pairs]"}}}
	at := func(place uint32) []*model.Location {
		if place == rarePlace {
			return []*model.Location{rare}
		}
		return []*model.Location{locate(p.places[place].pc)}
	}
	record := func(kind model.Kind, place uint32, n uint64) model.Record {
		use := p.places[place]
		return model.Record{Kind: kind, Use: at(place), Op: use.op, TID: int(use.thread), Exact: kind == model.Reuse,
			Observations: int64(n), Accesses: float64(n), Misses: make([]float64, len(p.caches))}
	}
	for i := range p.cells {
		c := &p.cells[i]
		r := record(c.key.kind, c.key.use, c.n)
		if r.Kind == model.Reuse {
			r.Reuse = at(c.key.reuse)
			r.Time = p.times.Mid(int(c.key.time))
			r.Native = r.Time
			r.Reuses = r.Accesses
			r.Distance = c.distances * float64(p.block)
		}
		for k, cache := range p.caches {
			if r.Kind != model.Reuse || p.dists.Lo(int(c.key.dist)) >= uint64(max(cache.Size, 0))/uint64(p.block) {
				r.Misses[k] = r.Accesses
			}
		}
		out.Records = append(out.Records, r)
	}
	for i, n := range p.cold {
		if n == 0 {
			continue
		}
		r := record(model.Cold, uint32(i), n)
		for k := range r.Misses {
			r.Misses[k] = r.Accesses
		}
		out.Records = append(out.Records, r)
	}
	return out
}
