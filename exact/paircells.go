package exact

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// pairKey says which touches are counted together: those of a pair of places whose
// times, distances and kinds are in the same bins. 0 is none.
type pairKey uint64

// pairPacking is how a pairKey has them: the number of the use's place, that of the reuse's, and in the lowest bits one
// more than the number of what the bins say.
type pairPacking struct {
	times, dists uint64 // bins
	bits, place  uint   // of what the bins say, and of a place
	mostPlaces   uint32
	// What to multiply places by: to shift by what is not known takes several steps.
	oneUse, oneReuse pairKey
}

func newPairPacking(times, dists int) pairPacking {
	p := pairPacking{times: uint64(times), dists: uint64(dists)}
	p.bits = uint(bits.Len64(p.times*p.dists + uint64(model.NumKinds)))
	p.room((64 - p.bits) / 2)
	return p
}

// room gives so many bits to a place.
func (p *pairPacking) room(place uint) {
	p.place, p.mostPlaces, p.oneUse, p.oneReuse = place, 1<<place, 1<<(p.bits+place), 1<<p.bits
}

// reuse is what the bins of a reuse say.
func (p *pairPacking) reuse(time, dist int) pairKey {
	return pairKey(uint64(time)*p.dists + uint64(dist) + 1)
}

// other is what they say of another kind.
func (p *pairPacking) other(kind model.Kind) pairKey {
	return pairKey(p.times*p.dists + uint64(kind))
}

// key is none if there are more places than it has room for.
func (p *pairPacking) key(use, reuse uint32, says pairKey) pairKey {
	if use|reuse >= p.mostPlaces {
		return 0
	}
	return pairKey(use)*p.oneUse | pairKey(reuse)*p.oneReuse | says
}

func (p *pairPacking) uses(k pairKey) uint32   { return uint32(k >> (p.bits + p.place)) }
func (p *pairPacking) reuses(k pairKey) uint32 { return uint32(k >> p.bits & (1<<p.place - 1)) }
func (p *pairPacking) says(k pairKey) pairKey  { return k & (1<<p.bits - 1) }

// bins are the kind and the bins of a key; those of other kinds than reuses are 0.
func (p *pairPacking) bins(k pairKey) (kind model.Kind, time, dist int) {
	says := uint64(p.says(k)) - 1
	if reuses := p.times * p.dists; says >= reuses {
		return model.Kind(says - reuses + 1), 0, 0
	}
	return model.Reuse, int(says / p.dists), int(says % p.dists)
}

// pairCell is a quarter of a cache line.
type pairCell struct {
	key pairKey // none: free
	sum pairSum
}

// pairSum is a number of touches and the sum of their distances in blocks, in one word. The highest bit of each is
// clear, so that two can be added.
type pairSum uint64

const (
	sumBits  = 36 // of distances
	sumFull  = pairSum(1<<63 | 1<<(sumBits-1))
	oneTouch = pairSum(1 << sumBits)
)

func (s pairSum) wide() wideSum { return wideSum{uint64(s >> sumBits), uint64(s & (1<<sumBits - 1))} }

// wideSum is what a cell has counted besides, where that is more than a pairSum holds.
type wideSum struct{ touches, distances uint64 }

func (w wideSum) and(o wideSum) wideSum {
	return wideSum{w.touches + o.touches, w.distances + o.distances}
}

// pairCells is a hash table of cells. It is at most three quarters full. Four cells are a bucket, a cache line, which
// is filled from its first on. What does not fit is in the next bucket.
type pairCells struct {
	pairPacking
	limit int // of cells
	cells []pairCell
	shift uint
	used  int
	wide  map[pairKey]wideSum
	rare  uint64 // touches that lost their places

	// hot has the cells of a few keys, by their hash, those counted last: most touches are of them, and they fit into a
	// cache together. What they count is added to the others when another takes their place.
	hot   *[1 << hotCells]pairCell
	away  pairsAway
	ahead pairKey // so that what is read ahead is read
}

// pairsAway are cells that others took the place of, added together, so that the processor waits for many at a time.
type pairsAway struct {
	n     int
	cells [batch]pairCell
}

const (
	hotCells   = 14 // as a power of two
	maxCells   = 1 << 21
	rarePlace  = 0
	bucket     = 4  // cells
	firstCells = 12 // as a power of two
)

func newPairCells(limit int, packing pairPacking) pairCells {
	return pairCells{pairPacking: packing, limit: limit, cells: make([]pairCell, 1<<firstCells), shift: 64 - firstCells, wide: map[pairKey]wideSum{}, hot: new([1 << hotCells]pairCell)}
}

func (k pairKey) hash() uint64 {
	h := uint64(k) * 0x9e3779b97f4a7c15
	return (h ^ h>>32) * 0xd6e8feb86659fd93
}

// find is the cell of a key, or the free one where it is to be.
func (p *pairCells) find(k pairKey, hash uint64) *pairCell {
	for i := hash >> p.shift; ; i += bucket {
		b := (*[bucket]pairCell)(p.cells[i&uint64(len(p.cells)-1)&^(bucket-1):])
		// Which of them it is cannot be foretold: no branch.
		at := 0
		if b[1].key == k {
			at = 1
		}
		if b[2].key == k {
			at = 2
		}
		if b[3].key == k {
			at = 3
		}
		if b[at].key == k {
			return &b[at]
		}
		if b[bucket-1].key != 0 {
			continue
		}
		for at = range b {
			if b[at].key == 0 {
				return &b[at]
			}
		}
	}
}

// add counts what is in a sum.
func (p *pairCells) add(k pairKey, hash uint64, sum pairSum) {
	c := p.find(k, hash)
	if c.key != k {
		c = p.enter(k, hash)
	}
	if c.sum += sum; c.sum&sumFull != 0 {
		p.widen(c)
	}
}

// addWide counts touches that may be too many for a sum.
func (p *pairCells) addWide(k pairKey, n wideSum) {
	if n.touches>>(63-sumBits)|n.distances>>(sumBits-1) == 0 {
		p.add(k, k.hash(), pairSum(n.touches<<sumBits|n.distances))
		return
	}
	p.add(k, k.hash(), 0)
	p.wide[k] = p.wide[k].and(n)
}

// widen moves what a cell has counted to where there is room for more.
func (p *pairCells) widen(c *pairCell) {
	p.wide[c.key] = p.of(c)
	c.sum = 0
}

// of is all that a cell has counted.
func (p *pairCells) of(c *pairCell) wideSum { return p.wide[c.key].and(c.sum.wide()) }

// count counts a touch at that distance.
func (p *pairCells) count(k pairKey, dist uint64) {
	if c := &p.hot[k.hash()>>(64-hotCells)]; !c.count(k, dist) {
		p.countAnew(c, k, dist)
	}
}

// count counts a touch if the cell is of that key and has room.
func (c *pairCell) count(k pairKey, dist uint64) bool {
	sum := c.sum + (oneTouch | pairSum(dist))
	if c.key != k || sum&sumFull != 0 {
		return false
	}
	c.sum = sum
	return true
}

// countAnew is count where the hot cell of the key has another one, or no room.
func (p *pairCells) countAnew(c *pairCell, k pairKey, dist uint64) {
	if c.key != k {
		if c.key != 0 {
			p.takeAway(c)
		}
		*c = pairCell{key: k}
	}
	if c.sum += oneTouch | pairSum(dist); c.sum&sumFull != 0 {
		p.addWide(k, c.sum.wide())
		c.sum = 0
	}
}

func (p *pairCells) takeAway(c *pairCell) {
	a := &p.away
	a.cells[a.n%batch] = *c
	if a.n++; a.n == batch {
		p.enterAway()
	}
}

func (p *pairCells) enterAway() {
	a := &p.away
	n := a.n
	a.n = 0
	ahead, mask := pairKey(0), uint64(len(p.cells)-1)
	var hashes [batch]uint64
	for i := range a.cells[:n] {
		h := a.cells[i].key.hash()
		hashes[i] = h
		ahead ^= p.cells[h>>p.shift&mask].key
	}
	p.ahead = ahead
	for i := range a.cells[:n] {
		p.add(a.cells[i].key, hashes[i], a.cells[i].sum)
	}
}

// settle empties hot.
func (p *pairCells) settle() {
	p.enterAway()
	for i := range p.hot {
		if c := &p.hot[i]; c.key != 0 {
			p.add(c.key, c.key.hash(), c.sum)
			*c = pairCell{}
		}
	}
}

// sorted puts the cells in the order of their keys, without the free ones. Nothing can be counted after it.
func (p *pairCells) sorted() []pairCell {
	p.settle()
	if len(p.cells) > p.used {
		n := 0
		for _, c := range p.cells {
			if c.key != 0 {
				p.cells[n] = c
				n++
			}
		}
		p.cells = p.cells[:n]
		p.sort()
	}
	return p.cells
}

// sort puts the cells in order: first each of them where those of its use belong, which leaves little to compare.
func (p *pairCells) sort() {
	var ends []int // by use
	for _, c := range p.cells {
		use := int(p.uses(c.key))
		if use >= len(ends) {
			ends = append(ends, make([]int, use+1-len(ends))...)
		}
		ends[use]++
	}
	next, n := make([]int, len(ends)), 0
	for use, k := range ends {
		next[use] = n
		n += k
		ends[use] = n
	}
	from := 0
	for use, end := range ends {
		for next[use] < end {
			c := &p.cells[next[use]]
			to := &next[p.uses(c.key)]
			*c, p.cells[*to] = p.cells[*to], *c
			*to++
		}
		slices.SortFunc(p.cells[from:end], func(a, b pairCell) int { return cmp.Compare(a.key, b.key) })
		from = end
	}
}

// enter makes a cell for a key that has none.
func (p *pairCells) enter(k pairKey, hash uint64) *pairCell {
	if p.used >= p.limit && p.uses(k) != rarePlace {
		p.forgetRare()
	}
	if 4*(p.used+1) > 3*len(p.cells) {
		old := p.cells
		p.cells, p.shift = huge(make([]pairCell, 2*len(old))), p.shift-1
		for i := range old {
			if k := old[i].key; k != 0 {
				*p.find(k, k.hash()) = old[i]
			}
		}
	}
	c := p.find(k, hash)
	if c.key != k { // what is rare may have it by now
		c.key = k
		p.used++
	}
	return c
}

// forgetRare takes their places from the cells with the smallest counts, so
// that no more than half of them is left.
func (p *pairCells) forgetRare() {
	counts := make([]uint64, 0, p.used)
	for i := range p.cells {
		if c := &p.cells[i]; c.key != 0 {
			counts = append(counts, p.of(c).touches)
		}
	}
	slices.Sort(counts)
	least := counts[len(counts)/2] + 1
	old, wide := p.cells, p.wide
	p.cells, p.wide, p.used = huge(make([]pairCell, len(old))), map[pairKey]wideSum{}, 0
	for _, c := range old {
		if c.key == 0 {
			continue
		}
		k, w := c.key, wide[c.key].and(c.sum.wide())
		if w.touches < least && p.uses(k) != rarePlace {
			p.rare += w.touches
			k = p.says(k)
		}
		p.addWide(k, w)
	}
}
