package exact

import (
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

// pairCells is a hash table of cells. It is at most three quarters full.
type pairCells struct {
	limit int // of cells
	cells []pairCell
	shift uint
	used  int
	rare  uint64 // touches that lost their places
}

const (
	maxCells   = 1 << 21
	rarePlace  = 0
	firstCells = 12 // as a power of two
)

func newPairCells(limit int) pairCells {
	return pairCells{limit: limit, cells: make([]pairCell, 1<<firstCells), shift: 64 - firstCells}
}

func (k pairKey) hash() uint64 {
	return (k.pair*0x9e3779b97f4a7c15 ^ k.bins) * 0xd6e8feb86659fd93
}

// add counts n touches, whose distances sum to that.
func (p *pairCells) add(k pairKey, n, distances uint64) {
	mask := uint64(len(p.cells) - 1)
	for i := k.hash() >> p.shift; ; i++ {
		c := &p.cells[i&mask]
		if c.n != 0 && c.key == k {
			c.n += n
			c.distances += distances
			return
		}
		if c.n == 0 {
			break
		}
	}
	p.enter(k, n, distances)
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
	i := k.hash() >> p.shift
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
