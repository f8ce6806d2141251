package exact

import (
	"cmp"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// pairKey says which touches are counted together: those of a pair of places whose
// times, distances and kinds are in the same bins.
type pairKey struct {
	pair uint64 // use<<32 | reuse
	bins uint64 // kind<<32 | time<<16 | distance
}

func newPairKey(use, reuse uint32, kind model.Kind, time, dist int) pairKey {
	return pairKey{uint64(use)<<32 | uint64(reuse), uint64(kind)<<32 | uint64(uint16(time))<<16 | uint64(uint16(dist))}
}

func (k pairKey) use() uint32      { return uint32(k.pair >> 32) }
func (k pairKey) reuse() uint32    { return uint32(k.pair) }
func (k pairKey) kind() model.Kind { return model.Kind(k.bins >> 32) }
func (k pairKey) time() int        { return int(k.bins >> 16 & 0xffff) }
func (k pairKey) dist() int        { return int(k.bins & 0xffff) }

// pairCell is half a cache line.
type pairCell struct {
	key       pairKey
	n         uint64 // 0: free
	distances uint64 // sum, in blocks
}

// pairCells is a hash table of cells. It is at most three quarters full. Two cells are a bucket, a cache line, of which the
// second is free if the first is. What does not fit is in the next bucket.
type pairCells struct {
	limit int // of cells
	cells []pairCell
	shift uint
	used  int
	rare  uint64 // touches that lost their places

	// hot has the cells of a few keys, by their hash, those counted last: most touches are of them, and they fit into a
	// cache together. What they count is added to the others when another takes their place.
	hot   []pairCell
	away  pairsAway
	ahead uint64 // so that what is read ahead is read
}

// pairsAway are cells that others took the place of, added together, so that the processor waits for many at a time.
type pairsAway struct {
	n      int
	cells  [batch]pairCell
	hashes [batch]uint64
}

const (
	hotCells   = 13 // as a power of two
	maxCells   = 1 << 21
	rarePlace  = 0
	firstCells = 12 // as a power of two
)

func newPairCells(limit int) pairCells {
	return pairCells{limit: limit, cells: make([]pairCell, 1<<firstCells), shift: 64 - firstCells, hot: make([]pairCell, 1<<hotCells)}
}

func (k pairKey) hash() uint64 {
	return (k.pair*0x9e3779b97f4a7c15 ^ k.bins) * 0xd6e8feb86659fd93
}

// other is 0 if the cell's key is k.
func (c *pairCell) other(k pairKey) uint64 { return (c.key.pair ^ k.pair) | (c.key.bins ^ k.bins) }

// add counts n touches, whose distances sum to that.
func (p *pairCells) add(k pairKey, n, distances uint64) { p.addHashed(k, k.hash(), n, distances) }

func (p *pairCells) addHashed(k pairKey, hash, n, distances uint64) {
	for i := hash >> p.shift &^ 1; ; i += 2 {
		i &= uint64(len(p.cells) - 1)
		// Which of the two it is cannot be foretold: no branch.
		other := p.cells[i].other(k)
		c := &p.cells[i+(other|-other)>>63]
		if c.n == 0 {
			break
		}
		if c.other(k) == 0 {
			c.n += n
			c.distances += distances
			return
		}
	}
	p.enter(k, n, distances)
}

// count counts a touch at that distance.
func (p *pairCells) count(k pairKey, distance uint64) {
	hash := k.hash()
	c := &p.hot[hash>>(64-hotCells)]
	if c.other(k) == 0 {
		c.n++
		c.distances += distance
		return
	}
	if c.n > 0 {
		p.takeAway(c)
	}
	*c = pairCell{k, 1, distance}
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
	ahead, mask := uint64(0), uint64(len(p.cells)-1)
	for i := range a.cells[:n] {
		h := a.cells[i].key.hash()
		a.hashes[i] = h
		ahead ^= p.cells[h>>p.shift&mask].n
	}
	p.ahead = ahead
	for i := range a.cells[:n] {
		c := &a.cells[i]
		p.addHashed(c.key, a.hashes[i], c.n, c.distances)
	}
}

// settle empties hot.
func (p *pairCells) settle() {
	p.enterAway()
	for i := range p.hot {
		if c := &p.hot[i]; c.n > 0 {
			p.add(c.key, c.n, c.distances)
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
			if c.n != 0 {
				p.cells[n] = c
				n++
			}
		}
		p.cells = p.cells[:n]
		slices.SortFunc(p.cells, func(a, b pairCell) int {
			if a.key.pair != b.key.pair {
				return cmp.Compare(a.key.pair, b.key.pair)
			}
			return cmp.Compare(a.key.bins, b.key.bins)
		})
	}
	return p.cells
}

// enter is add for a key that has no cell.
func (p *pairCells) enter(k pairKey, n, distances uint64) {
	if p.used >= p.limit && k.use() != rarePlace {
		p.forgetRare()
		p.add(k, n, distances)
		return
	}
	if 4*(p.used+1) > 3*len(p.cells) {
		old := p.cells
		p.cells, p.shift = make([]pairCell, 2*len(old)), p.shift-1
		for i := range old {
			if old[i].n != 0 {
				*p.free(old[i].key) = old[i]
			}
		}
	}
	*p.free(k) = pairCell{k, n, distances}
	p.used++
}

// free is where a key that has no cell is to have one.
func (p *pairCells) free(k pairKey) *pairCell {
	mask := uint64(len(p.cells) - 1)
	i := k.hash() >> p.shift &^ 1
	for p.cells[i&mask].n != 0 {
		i++
	}
	return &p.cells[i&mask]
}

// forgetRare takes their places from the cells with the smallest counts, so
// that no more than half of them is left.
func (p *pairCells) forgetRare() {
	counts := make([]uint64, 0, p.used)
	for i := range p.cells {
		if n := p.cells[i].n; n != 0 {
			counts = append(counts, n)
		}
	}
	slices.Sort(counts)
	least := counts[len(counts)/2] + 1
	old := p.cells
	p.cells, p.used = make([]pairCell, len(old)), 0
	for _, c := range old {
		if c.n == 0 {
			continue
		}
		if c.n < least && c.key.use() != rarePlace {
			p.rare += c.n
			c.key.pair = rarePlace
		}
		p.add(c.key, c.n, c.distances)
	}
}
