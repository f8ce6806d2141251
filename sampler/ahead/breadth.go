package ahead

import "math/bits"

// breadth counts the blocks touched behind a window's first accesses, by a table of bits (linear counting: Whang,
// Vander-Zanden and Taylor 1990) whose ones are the count as long as they are few: up to a sixth of the table they are a tenth less
// at most.
type breadth struct {
	seen  [breadthBits / 64]uint64
	ones  int
	until int // so many accesses of the log were looked at
}

const breadthBits = 1 << 14

// MostBreadth is the largest number of blocks that a Window may ask for.
const MostBreadth = breadthBits / 6

func (b *breadth) reset() { *b = breadth{} }

// reaches says whether the log has as many blocks and accesses as the window asks for.
func (b *breadth) reaches(g *accessLog, w *Window) bool {
	if w.Blocks == 0 {
		return false
	}
	for i := max(b.until, w.First); i < len(g.all); i++ {
		a := &g.all[i]
		h := a.Addr >> (g.shift & 63) * 0x9e3779b97f4a7c15 // rows of blocks would share bits by one multiplication
		at := (h ^ h>>29) * 0xbf58476d1ce4e5b9 >> (64 - bits.Len(breadthBits-1))
		bit := uint64(1) << (at % 64)
		if word := &b.seen[at/64]; *word&bit == 0 {
			*word |= bit
			b.ones++
		}
	}
	b.until = len(g.all)
	return b.ones >= min(w.Blocks, MostBreadth) && len(g.all) >= w.Least
}
