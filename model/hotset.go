package model

import (
	"math"
	"math/bits"
)

// Hot sets bound the misses of what was read ahead of alone. A cache of s blocks with LRU misses at most s/(s-n+1) times as
// often as any way to use n blocks does, and n times more (Sleator and Tarjan, CACM 28, 1985, theorem 6). One way is to keep a
// hot set of k blocks for good and to use the rest, n-k, as LRU does: it misses what is neither in the set nor nearer than the
// rest. That has a band, as a miss ratio of a smaller cache in which the set always hits.

// hotRest is of how many blocks of a cache one is the rest.
const hotRest = 16

// hotMost is how many times as often as the other way LRU may miss, for the bound to be worth asking, and hotSpan how many
// cache sizes are asked of one set: in larger ones than these larger sets tell more.
const hotMost, hotSpan = 4, 5

// HotSetBlocks is how many blocks the hot set of a level, from 0 on, has at most: two levels an octave.
func HotSetBlocks(level int) uint64 { return uint64(math.Exp2(float64(level) / 2)) }

// hotSets are the sizes of the sets that records know of, in order: two an octave, up to that of the largest cache that is asked of.
func (p *Profile) hotSets() (sets []uint64) {
	var known [2 * hotSizes]bool
	for i := range p.Records {
		if hot := p.Records[i].Hot; hot > 0 {
			if level := int(math.Ceil(2 * math.Log2(float64(hot)))); level < len(known) {
				known[level] = true
			}
		}
	}
	for level, is := range known {
		if is {
			sets = append(sets, HotSetBlocks(level))
		}
	}
	return sets
}

// withHot is the profile were all that is in a hot set of so many blocks used again at once, but what was counted to be nearer than
// a number of blocks, which hits anyway. Of the others no distance is counted: that they could have missed widens bands.
func (p *Profile) withHot(set, near uint64) *Profile {
	q := p.copied()
	for i := range q.Records {
		r := &q.Records[i]
		blocks, counted := r.counted()
		if r.isHot(set) && !(counted && blocks < near) {
			r.Kind, r.Timing, r.HalfLine, r.Lookahead = Reuse, Timing{Time: 1, Native: 1, Exact: true}, HalfLine{}, Lookahead{}
		}
		r.Hot = 0
	}
	return q
}

// hotBound is what hot sets tell of a cache size: that at most so much misses, with 95 %, as of a set of so many blocks.
type hotBound struct {
	high float64
	set  uint64
}

// hotSizes are the caches of which hot sets are asked: those of 2, 4, 8 and so on blocks. What misses a smaller cache
// is at least what misses a larger one.
const hotSizes = 32

// hotBounds are by the logarithm of a cache's blocks, of a profile of so many accesses; nil where no hot set is known. ratios are those
// at the given sizes of a profile whose hot set always hits.
func (p *Profile) hotBounds(total float64, ratios func(q *Profile, sizes []uint64) ([]float64, error)) ([]hotBound, error) {
	sets := p.hotSets()
	if len(sets) == 0 || p.ExactDistances {
		return nil, nil
	}
	out := make([]hotBound, hotSizes)
	for i := range out {
		out[i].high = 1
	}
	for _, set := range sets {
		var rests []uint64
		var of []int
		for i := range out {
			if blocks := uint64(1) << i; blocks > hotRest && hotTimes(blocks, set) > 0 && len(of) < hotSpan {
				rests, of = append(rests, blocks/hotRest), append(of, i)
			}
		}
		if len(rests) == 0 {
			continue
		}
		missed, err := ratios(p.withHot(set, rests[0]), rests)
		if err != nil {
			return nil, err
		}
		for k, i := range of {
			most := hotTimes(1<<i, set)*missed[k] + float64(set+rests[k])/total*p.Clock.slowest()
			if most < out[i].high {
				out[i] = hotBound{most, set}
			}
		}
	}
	for i := 1; i < len(out); i++ { // so that no use that hits a smaller cache misses a larger one
		if out[i].high = min(out[i].high, out[i-1].high); out[i].set < out[i-1].set {
			out[i].set = out[i-1].set
		}
	}
	return out, nil
}

// boundByHotSets lowers the points, of total accesses, that can't be quoted.
func (p *Profile) boundByHotSets(points []Point, total float64, o CurveOptions) error {
	if o.Ways > 0 {
		return nil
	}
	bounds, err := p.hotBounds(total, func(q *Profile, sizes []uint64) ([]float64, error) {
		e, err := q.estimate()
		if err != nil {
			return nil, err
		}
		c, err := q.curve(e, sizes, o)
		if err != nil {
			return nil, err
		}
		high := make([]float64, len(sizes))
		for i := range high {
			high[i] = c.Points[i].High
		}
		return high, nil
	})
	if err != nil || bounds == nil {
		return err
	}
	for i := range points {
		q := &points[i]
		if b, ok := hotBoundAt(bounds, q.Blocks); ok && q.Quote != Quoted && b.high < q.High {
			q.High, q.hot = b.high, b.set
		}
	}
	return nil
}

// hotBoundAt is that of a cache of so many blocks, if there is one.
func hotBoundAt(bounds []hotBound, blocks uint64) (b hotBound, ok bool) {
	if blocks == 0 || len(bounds) == 0 {
		return b, false
	}
	return bounds[min(bits.Len64(blocks)-1, len(bounds)-1)], true
}

// hotTimes is how many times as often as with a hot set kept a cache misses at most, 0 where that is worth nothing.
func hotTimes(blocks, set uint64) float64 {
	n := set + blocks/hotRest
	if n >= blocks {
		return 0
	}
	if times := float64(blocks) / float64(blocks-n+1); times <= hotMost {
		return times
	}
	return 0
}

// withoutHot takes what is in its hot set out of each point's misses.
func (p *Profile) withoutHot(points []Point, total float64) error {
	var sizes []uint64
	var of []*Point
	for i := range points {
		if points[i].hot > 0 {
			sizes, of = append(sizes, points[i].Blocks), append(of, &points[i])
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	all, rest := make([]float64, len(sizes)), make([]float64, len(sizes))
	if err := p.withHot(0, 0).MissesAt(sizes, func(i int, misses []float64) {
		for k, m := range misses {
			if all[k] += m; !p.Records[i].isHot(of[k].hot) {
				rest[k] += m
			}
		}
	}); err != nil {
		return err
	}
	for k, q := range of {
		if all[k] > 0 {
			q.MissRatio = min(q.MissRatio*rest[k]/all[k], q.High)
		}
		q.Misses = q.MissRatio * total
		q.Low = min(q.Low, q.MissRatio)
		q.Quote = BeyondObservation
	}
	return nil
}

// isHot says whether the record is of blocks in a hot set of so many.
func (r *Record) isHot(set uint64) bool { return r.Hot > 0 && r.Hot <= set }

// hotAt is by cache size how many blocks the hot set has by which its misses are bounded; nil where none is.
func (p *Profile) hotAt(e *estimate, sizes []uint64) ([]uint64, error) {
	if len(p.hotSets()) == 0 {
		return nil, nil
	}
	points, err := p.points(e, sizes, CurveOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]uint64, len(sizes))
	for i := range points {
		out[i] = points[i].hot
	}
	return out, nil
}

// keep has what is in a size's hot set miss there no more, nor in larger caches.
func (d *deriver) keep(r *Record) {
	for k, set := range d.hot {
		if r.isHot(set) {
			clear(r.Misses[k:])
			return
		}
	}
}
