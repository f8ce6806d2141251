package web

import (
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

const (
	perOctave   = 8       // sizes of the grid
	leastSize   = 1 << 10 // bytes
	largestSize = 1 << 50
)

// grid is the cache sizes in bytes that pages can show: perOctave to an octave, powers of two
// among them, from 1 KiB or 16 blocks on to where all that was seen fits, the profile's caches, and those asked for. All are whole
// numbers of blocks. e is nil where nothing can be estimated.
func grid(p *model.Profile, e *model.Estimated, asked []uint64) []uint64 {
	block := uint64(max(p.Block, 1))
	largest := uint64(1 << 20)
	var sizes []uint64
	add := func(s uint64) {
		if s -= s % block; s > 0 && s <= largestSize {
			sizes = append(sizes, s)
		}
	}
	for _, c := range p.Caches {
		add(uint64(max(c.Size, 0)))
		largest = max(largest, uint64(max(c.Size, 0)))
	}
	for _, s := range asked {
		add(s)
	}
	if e != nil {
		largest = max(largest, e.Farthest(1<<40)*block)
	}
	least := max(leastSize, 16*block)
	for k := 0; ; k++ {
		s := uint64(math.Round(math.Exp2(10 + float64(k)/perOctave)))
		if s > min(2*largest, largestSize) {
			break
		}
		if s >= least {
			add(s)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}
