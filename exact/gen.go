package exact

import (
	"fmt"
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/model"
)

// Generator makes a stream of block numbers whose stack distances follow a
// law: Shen & Shaw, Algorithm 3, O(log N) an access. The stream is determined
// by the law, n and the seed.
//
// As in the paper the stream starts with each of n blocks once, in order;
// these n accesses are cold. Every later one draws a distance and repeats the
// block that lies there on the LRU stack, so that its measured stack distance
// is the one drawn, exactly. With n = 0 the stream starts with nothing: a draw
// of the law's cold mass, or of a distance that is not there yet, makes a new
// block. Block numbers are 0, 1, 2, ... in the order of first accesses.
type Generator struct {
	law   *DistanceLaw
	rand  *rand.PCG
	order recency
	block []uint32 // by position
	made  uint32   // blocks so far
	n     uint32
	short uint64

	// Draws ahead of their use: they do not depend on each other, so that
	// the cache misses of a large law overlap.
	draws [batch]uint64
	drawn int // draws[drawn:] are left
}

// genSpread is a compromise: the order costs half a byte a position, the block
// numbers four.
const genSpread = 2

// NewGenerator returns a generator over n distinct blocks, or over as many as
// the law makes if n is 0. The law must fit: no distance of n or more, and
// cold mass only if n is 0.
func NewGenerator(law *DistanceLaw, n uint64, seed uint64) (*Generator, error) {
	if n > maxLive/genSpread {
		return nil, fmt.Errorf("generate trace: %d distinct blocks, at most %d are supported", n, maxLive/genSpread)
	}
	if n > 0 && law.reach > n {
		return nil, fmt.Errorf("generate trace: the distances reach %d, which needs at least %d distinct blocks, not %d", law.reach-1, law.reach, n)
	}
	if n > 0 && law.cold {
		return nil, fmt.Errorf("generate trace: the law has cold accesses beside the first %d (consider: 0 distinct blocks, which lets cold accesses make them)", n)
	}
	g := &Generator{law: law, n: uint32(n), rand: rand.NewPCG(seed, 0x7264785f67656e), drawn: batch}
	g.order.reset(0, genSpread)
	g.block = make([]uint32, g.order.end)
	return g, nil
}

// Blocks is the number of distinct blocks made so far.
func (g *Generator) Blocks() uint64 { return uint64(g.order.live) }

// Short is how many draws asked for a distance that did not exist yet and
// made a new block instead; always 0 if n is not.
func (g *Generator) Short() uint64 { return g.short }

// Fill sets every element of blocks to the next access of the stream. The
// only error is that the law has made too many blocks.
func (g *Generator) Fill(blocks []uint64) error {
	var from [batch]uint32
	for len(blocks) > 0 {
		if g.order.full() {
			if err := g.compact(); err != nil {
				return err
			}
		}
		now := g.order.now
		n := min(len(blocks), batch, int(g.order.end-now))
		for i := range from[:n] {
			from[i] = g.step()
		}
		// The look-ups are apart from the steps so that they do not wait for
		// each other.
		for i, p := range from[:n] {
			b := g.made
			if p == 0 {
				g.made++
			} else {
				b = g.block[p]
			}
			g.block[now+uint32(i)] = b
			blocks[i] = uint64(b)
		}
		blocks = blocks[n:]
	}
	return nil
}

// step makes the next access and returns the position of the block it repeats,
// 0 for a new block.
func (g *Generator) step() uint32 {
	if g.order.live >= g.n {
		if g.drawn == batch {
			g.law.draw(g.rand, g.draws[:])
			g.drawn = 0
		}
		d := g.draws[g.drawn]
		g.drawn++
		if d < uint64(g.order.live) {
			p := g.order.nth(uint32(d))
			g.order.move(p)
			return p
		}
		if d != model.Infinite {
			g.short++
		}
	}
	g.order.push()
	return 0
}

func (g *Generator) compact() error {
	if g.order.live > maxLive/genSpread {
		return fmt.Errorf("generate trace: more than %d distinct blocks (consider: less cold mass, or a shorter trace)", maxLive/genSpread)
	}
	to := uint32(1)
	g.order.each(func(p uint32) {
		g.block[to] = g.block[p]
		to++
	})
	g.order.reset(g.order.live, genSpread)
	if int(g.order.end) > len(g.block) {
		block := make([]uint32, g.order.end)
		copy(block, g.block[:to])
		g.block = block
	}
	return nil
}
