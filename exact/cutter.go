package exact

import (
	"math"

	"github.com/rdx-profiler/rdx/model"
)

// Cutter cuts accesses into Touches. It is for one goroutine.
type Cutter struct {
	gran  model.Granularity
	split splitter
	out   model.Touches
	piece int
	open  int // touches of the piece that is under way
}

// NewCutter returns one for blocks of the given number of bytes, a power of two, which makes up to so many runs at a time.
// None is in two pieces of so many touches, if that is not 0; see ParallelConfig.
func NewCutter(blockBytes, runs, piece int) (*Cutter, error) {
	g, err := model.NewGranularity(blockBytes)
	if err != nil {
		return nil, err
	}
	if piece == 0 {
		piece = math.MaxInt
	}
	return &Cutter{gran: g, piece: piece, out: model.Touches{Blocks: make([]uint64, runs), Runs: make([]uint8, runs)}}, nil
}

// Cut calls each with the touches of the accesses; they are overwritten after it. It returns the first error of each.
func (c *Cutter) Cut(accesses []model.Access, each func(*model.Touches) error) error {
	for len(accesses) > 0 {
		n := 0
		for n < len(c.out.Blocks) && len(accesses) > 0 {
			var runs, touches int
			runs, touches, accesses = c.split.fill(c.gran, accesses, c.out.Blocks[n:], c.out.Runs[n:], c.piece-c.open)
			n += runs
			if c.open += touches; c.open == c.piece {
				c.open = 0
			}
		}
		t := model.Touches{Blocks: c.out.Blocks[:n], Runs: c.out.Runs[:n], Repeats: c.split.count.Repeats, Ops: c.split.count.Ops}
		c.split.count = model.Touches{}
		if err := each(&t); err != nil {
			return err
		}
	}
	return nil
}
