package model

// ExactPipe is an Exact that keeps the stack on the goroutine that adds touches
// and its histograms on another one. It does not more work than an Exact, as
// ParallelExact does, but knows no use for a third processor. Finish must be
// called, after which its results are those of an Exact.
type ExactPipe struct {
	*Exact
	full, spare chan *pipeBatch
	done        chan struct{}
}

// pipeBatch is what the stack has found.
type pipeBatch struct {
	runs         []uint8
	dists, times []uint64
	before       uint64 // touches
}

const (
	pipeChunk   = 1 << 15 // runs of a batch at most
	pipeBatches = 4
)

// NewExactPipe is NewExact.
func NewExactPipe(blockBytes int, bins *Bins) (*ExactPipe, error) {
	e, err := NewExact(blockBytes, bins)
	if err != nil {
		return nil, err
	}
	p := &ExactPipe{Exact: e, full: make(chan *pipeBatch, pipeBatches), spare: make(chan *pipeBatch, pipeBatches), done: make(chan struct{})}
	for range pipeBatches {
		p.spare <- &pipeBatch{make([]uint8, pipeChunk), make([]uint64, pipeChunk), make([]uint64, pipeChunk), 0}
	}
	go func() {
		defer close(p.done)
		for b := range p.full {
			p.tally(b.runs, b.dists, b.times, b.before)
			p.spare <- b
		}
	}()
	return p, nil
}

// Add is Exact.Add.
func (p *ExactPipe) Add(accesses []Access) error {
	for len(accesses) > 0 {
		var n int
		n, accesses = p.split.fill(p.gran, accesses, p.blocks[:], p.runs[:], exactChunk*maxRun)
		if err := p.add(p.blocks[:n], p.runs[:n]); err != nil {
			return err
		}
	}
	return nil
}

// AddTouches is Exact.AddTouches.
func (p *ExactPipe) AddTouches(t *Touches) error {
	p.split.add(t)
	return p.add(t.Blocks, t.Runs)
}

func (p *ExactPipe) add(blocks []uint64, runs []uint8) error {
	for len(blocks) > 0 {
		b := <-p.spare
		n := min(len(blocks), pipeChunk)
		b.runs, b.dists, b.times = b.runs[:n], b.dists[:n], b.times[:n]
		copy(b.runs, runs)
		b.before = p.olken.Accesses()
		if err := p.olken.touch(blocks[:n], b.runs, b.dists, b.times); err != nil {
			p.spare <- b
			return err
		}
		p.full <- b
		blocks, runs = blocks[n:], runs[n:]
	}
	return nil
}

// Finish waits for the histograms. Nothing can be added any more.
func (p *ExactPipe) Finish() {
	close(p.full)
	<-p.done
	p.split.counted(&p.ExactCounts)
}
