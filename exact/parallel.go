package exact

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/rdx-profiler/rdx/model"
)

// Parallel is Analysis on several processors, after HP-RDA (Cui et al.,
// "A Highly Parallel Reuse Distance Analysis Algorithm on GPUs"): the stream is
// cut into pieces, each is analysed on its own as if it were the whole stream,
// and their results are merged in the order of the stream.
//
// A reuse whose use lies in the same piece is final. Of the rest a piece leaves
// two lists: the blocks in the order of their first touch, and the places of
// their last touches. The merge is exact where the paper's is not (its formula
// 1 counts a block once in each piece that touches it): it keeps one bitmap
// over the last touches of all pieces before, and for each first touch of a
// piece, in order,
//
//	distance = bits set after the block's last touch + first touches before this one
//
// and then clears the block's bit. A block touched between use and reuse has
// its last touch either before this piece, and not been touched in it yet: then
// it is one of the bits; or in this piece: then its bit was cleared and it is
// one of the first touches before. So each is counted once. At the end of a
// piece the bits of its own last touches are set. Only first touches are merged
// in sequence; the look-up of their blocks is cut by block number and runs in
// parallel too, and pieces further on are analysed meanwhile.
//
// Where many touches of a piece are first touches, analysing it on its own gains
// little and costs as much as all the rest. One piece in measureEvery tells; the
// others are then merged touch by touch, as if each were a first touch: the
// look-ups, the distances and the histograms of three pieces run side by side.
// Where there is a filter and not more than three jobs, all are merged so, but for
// what filters find, of which there is one for each job; see pieceFilter and relay.
//
// Results are those of Analysis, to the last touch. Memory is that of an Analysis and
// about 2 MB for each piece under way, of which there are morePieces more than jobs, or with filters
// 1 MB for each of filterPieces more; the stream is not kept. Add and Finish are for one goroutine.
type Parallel struct {
	Counts
	jobs    int
	split   splitter
	filled  *piece       // being filled by Add
	through *pieceFilter // which it is taken through meanwhile, nil if that is done later or not at all
	merge   merger
	relay   *relay        // instead of the channels, if there is a filter
	spare   chan *piece   // free pieces
	queue   chan *piece   // filled ones, in order
	work    chan struct{} // one token for each processor in use
	done    chan struct{} // closed when the merge has seen the last piece
	pieces  []*piece
	ended   bool
	err     error

	handed    uint
	manyFirst atomic.Bool // see piece.manyFirst, of the piece that told

	measureEvery uint // pieces
}

// PieceTouches is the length of a piece in touches. Longer ones leave fewer
// first touches to merge; shorter ones keep their tables in a processor's
// second-level cache.
const PieceTouches = 1 << 15

// morePieces are under way than there are jobs, and with filters, where a piece needs no stack of its own, filterPieces
// more: while positions are moved together or a table grows others can be filled and taken through filters, and a program that runs
// meanwhile makes its accesses in bursts.
const (
	morePieces   = 4
	filterPieces = 24
)

// measureEvery is how many pieces there are to one that tells how many of its
// touches are first touches.
const measureEvery = 16

// ParallelConfig says how a Parallel works.
type ParallelConfig struct {
	Jobs int // processors to use, 1 or more; what calls Add is on one of them if there is a filter
	// Approximate merges by formula 1 of the paper instead of exactly; Factor
	// then applies the effective factor, formulas 2 and 3.
	Approximate, Factor bool
	// PieceTouches is the length of a piece; 0 is 32768. The exact result does
	// not depend on it.
	PieceTouches int

	withoutFilter bool // as without AVX2
}

// NewParallel returns an analysis with blocks of the given number of
// bytes, a power of two, whose histograms have the given bins. Finish must be
// called.
func NewParallel(blockBytes int, bins *model.Bins, config ParallelConfig) (*Parallel, error) {
	if config.Jobs < 1 {
		return nil, fmt.Errorf("parallel analysis: %d jobs, want 1 or more", config.Jobs)
	}
	if config.PieceTouches == 0 {
		config.PieceTouches = PieceTouches
	}
	if config.PieceTouches < 1 || config.PieceTouches > 1<<24 {
		return nil, fmt.Errorf("parallel analysis: pieces of %d touches, want 1 to %d", config.PieceTouches, 1<<24)
	}
	c, err := newCounts(blockBytes, bins)
	if err != nil {
		return nil, err
	}
	filter := haveAVX2 && !config.withoutFilter && !config.Approximate && config.Jobs < 4
	n := config.Jobs + morePieces
	if filter {
		n = config.Jobs + filterPieces
		if config.Jobs == 1 {
			n = 1 // nobody fills one meanwhile
		}
	}
	p := &Parallel{
		Counts: c, jobs: config.Jobs,
		spare: make(chan *piece, n), queue: make(chan *piece, n),
		work: make(chan struct{}, config.Jobs), done: make(chan struct{}), measureEvery: measureEvery,
	}
	for range n {
		x := &piece{blocks: make([]uint64, config.PieceTouches), runs: make([]uint8, config.PieceTouches)}
		p.pieces = append(p.pieces, x)
		if filter {
			x.counts, x.whole = &p.Counts, true
			continue
		}
		counts, err := newCounts(blockBytes, bins)
		if err != nil {
			return nil, err
		}
		x.counts, x.olken, x.ready = &counts, NewOlken(), make(chan struct{}, 1)
		p.spare <- x
	}
	p.merge.init(&p.Counts, config)
	if filter {
		if p.merge.missed, err = newCounts(blockBytes, bins); err != nil {
			return nil, err
		}
		filters := make([]*pieceFilter, config.Jobs)
		for i := range filters {
			if filters[i], err = newPieceFilter(blockBytes, bins); err != nil {
				return nil, err
			}
		}
		p.relay = newRelay(&p.merge, p.pieces, filters)
	} else {
		go p.run()
	}
	return p, nil
}

// Add analyses the next accesses of the stream. The only error is
// ErrTooManyBlocks, which may come late.
func (p *Parallel) Add(accesses []model.Access) error {
	for len(accesses) > 0 && p.err == nil {
		x := p.piece()
		var n, touches int
		if f := p.through; f != nil {
			n, touches, accesses = p.split.fill(p.gran, accesses, f.newBlocks[:], f.newRuns[:], len(x.blocks)-x.touches)
			f.touch(&x.output, f.newBlocks[:n], f.newRuns[:n])
		} else {
			n, touches, accesses = p.split.fill(p.gran, accesses, x.blocks[x.n:], x.runs[x.n:], len(x.blocks)-x.touches)
		}
		x.n, x.touches = x.n+n, x.touches+touches
		if x.full() {
			p.hand()
		}
	}
	return p.err
}

// AddTouches is Add for accesses that were cut into touches of blocks of the
// same size.
func (p *Parallel) AddTouches(t *model.Touches) error {
	p.split.add(t)
	blocks, runs := t.Blocks, t.Runs
	for len(blocks) > 0 && p.err == nil {
		x := p.piece()
		var n int
		if f := p.through; f != nil {
			n = x.add(runs[:min(len(runs), vectorChunk)])
			f.touch(&x.output, blocks[:n], runs[:n])
		} else {
			at := x.n
			n = x.add(runs[:min(len(runs), len(x.blocks)-at)])
			copy(x.blocks[at:], blocks[:n])
			copy(x.runs[at:], runs[:n])
		}
		blocks, runs = blocks[n:], runs[n:]
		if x.full() {
			p.hand()
		}
	}
	return p.err
}

// piece is the one that is filled.
func (p *Parallel) piece() *piece {
	if p.filled == nil {
		if p.relay != nil {
			p.filled, p.through = p.relay.take()
		} else {
			p.filled = <-p.spare
		}
		p.filled.n, p.filled.touches = 0, 0
		if p.through != nil {
			p.through.begin(&p.filled.output)
		}
		p.err = p.filled.err
	}
	return p.filled
}

// hand starts the analysis of the piece that was filled.
func (p *Parallel) hand() {
	x := p.filled
	p.filled = nil
	if p.relay != nil {
		if p.through != nil {
			p.through.end(&x.output)
		}
		p.relay.hand(p.through != nil)
		return
	}
	x.whole = !p.merge.config.Approximate && p.handed%p.measureEvery != 0 && p.manyFirst.Load()
	p.handed++
	p.queue <- x
	if x.whole {
		x.ready <- struct{}{}
		return
	}
	go func() {
		p.work <- struct{}{}
		x.analyze()
		p.manyFirst.Store(x.manyFirst(p.jobs))
		<-p.work
		x.ready <- struct{}{}
	}()
}

// Finish waits for the analysis. The results are those of the whole stream
// after it, and not defined before; nothing can be added any more.
func (p *Parallel) Finish() error {
	if p.ended {
		return p.merge.err
	}
	p.ended = true
	if p.filled != nil {
		p.hand()
	}
	if p.relay != nil {
		p.relay.finish()
		for _, f := range p.relay.filters {
			f.addTo(&p.Counts)
		}
		p.Counts.add(&p.merge.missed)
	} else {
		close(p.queue)
		<-p.done
		for _, x := range p.pieces {
			p.Counts.add(x.counts)
		}
	}
	p.split.counted(&p.Counts)
	p.merge.finish()
	return p.merge.err
}

// run merges the pieces in their order: first the look-up of the blocks, then,
// while that of the next piece is under way, the counting.
func (p *Parallel) run() {
	located := make(chan *piece, cap(p.queue))
	var counting sync.WaitGroup // pieces located and not counted yet
	go func() {
		for x := range located {
			p.work <- struct{}{}
			p.merge.count(x)
			<-p.work
			if !x.whole {
				counting.Done()
				p.spare <- x
				continue
			}
			go func() {
				p.work <- struct{}{}
				p.merge.tally(x)
				<-p.work
				counting.Done()
				p.spare <- x
			}()
		}
		counting.Wait() // not deferred: a panic would wait here
		close(p.done)
	}()
	for x := range p.queue {
		<-x.ready
		if p.merge.full(x) {
			counting.Wait()
			p.merge.compact()
		}
		p.merge.locate(x, p.work)
		counting.Add(1)
		located <- x
	}
	close(located)
}

// Touches is the number of blocks touched, repetitions included.
func (p *Parallel) Touches() uint64 { return p.merge.touched }

// Blocks is the number of distinct blocks touched.
func (p *Parallel) Blocks() uint64 { return uint64(p.merge.order.live) }

// Bytes is the memory held for blocks, in bytes, without the pieces.
func (p *Parallel) Bytes() uint64 { return p.merge.bytes() }

// Times is Counts.Times; nil for an approximate merge, which has none.
func (p *Parallel) Times() *model.Hist {
	if p.merge.config.Approximate {
		return nil
	}
	return p.Counts.Times()
}

// Footprint is Analysis.Footprint; nil for an approximate merge.
func (p *Parallel) Footprint() []model.FootprintPoint {
	if p.merge.config.Approximate {
		return nil
	}
	return p.footprint(&p.merge.order)
}

// WindowError is Analysis.WindowError; not a number for an approximate merge.
func (p *Parallel) WindowError() float64 {
	if p.merge.config.Approximate {
		return math.NaN()
	}
	return p.windowError(p.Footprint())
}

// Factor is the effective factor of the paper's formula 3, for an approximate
// merge: distinct blocks of the stream by those of its pieces, added up.
func (p *Parallel) Factor() float64 {
	return float64(p.merge.order.live) / float64(max(p.merge.pieceBlocks, 1))
}
