package exact

import "github.com/rdx-profiler/rdx/model"

// Pairs is an exact analysis on one LRU stack that all threads share, which counts each touch
// with its use: a PairTally of a SharedStack's touches, several times as fast.
//
// The place of the last touch of a block is kept by its position in the order of last touches, as
// Olken has it: no table of blocks is looked up for it. Memory is that of an Olken and 32 bytes a block more, and
// that of the tally. With more than one job the tally is made on another goroutine. Add and Finish are for one goroutine.
type Pairs struct {
	tally *PairTally
	olken *Olken
	// used has by position the place of the touch that got it.
	used []uint32

	accesses, loads, stores uint64
	split                   *model.Placer
	batch                   model.PlacedTouches

	filled *pairBatch
	work   chan *pairBatch // to the tally, if it is made elsewhere
	spare  chan *pairBatch
	done   chan struct{}
}

// pairBatch is touches that were looked up.
type pairBatch struct {
	runs       []uint8
	uses       []uint32 // places of the uses, by run; noUse for none
	dist, time []uint64 // by run
	places     []uint32 // by touch, as model.PlacedTouches has them
	fresh      []model.Place
}

const (
	noUse       = ^uint32(0)
	pairBatches = 4
)

// NewPairs counts in the tally, which must be new, for shared stacks; a granularity of its blocks.
func NewPairs(tally *PairTally, jobs int) (*Pairs, error) {
	g, err := model.NewGranularity(tally.block)
	if err != nil {
		return nil, err
	}
	p := &Pairs{tally: tally, olken: NewOlken(), split: model.NewPlacer(g, false), filled: &pairBatch{}}
	p.olken.order.keepUses = true
	p.olken.moved = p.move
	if jobs > 1 {
		p.work, p.spare, p.done = make(chan *pairBatch, pairBatches), make(chan *pairBatch, pairBatches), make(chan struct{})
		for range pairBatches {
			p.spare <- &pairBatch{}
		}
		go func() {
			defer close(p.done)
			for b := range p.work {
				tally.addBatch(b)
				p.spare <- b
			}
		}()
	}
	return p, nil
}

// Add analyses the next accesses. The only error is ErrTooManyBlocks.
func (p *Pairs) Add(accesses []model.Access) error {
	return eachPlaced(p.split, &p.batch, accesses, p.AddTouches)
}

// eachPlaced cuts accesses into touches with their places, and gives them to f by batches.
func eachPlaced(split *model.Placer, batch *model.PlacedTouches, accesses []model.Access, f func(*model.PlacedTouches) error) error {
	for len(accesses) > 0 {
		n := min(len(accesses), 4096)
		split.Begin(batch)
		split.Add(accesses[:n])
		if err := f(batch); err != nil {
			return err
		}
		accesses = accesses[n:]
	}
	return nil
}

// AddTouches is Add for accesses that were cut into touches of blocks of the same size, all by one Placer.
func (p *Pairs) AddTouches(t *model.PlacedTouches) error {
	p.accesses += t.Ops[model.OpUnknown] + t.Ops[model.Load] + t.Ops[model.Store]
	p.loads += t.Ops[model.Load]
	p.stores += t.Ops[model.Store]
	b := p.filled
	if p.work != nil {
		b = <-p.spare
	}
	n := len(t.Blocks)
	b.uses, b.dist, b.time = sized(b.uses, n), sized(b.dist, n), sized(b.time, n)
	if p.work != nil { // t is filled anew meanwhile
		b.runs, b.places, b.fresh = append(b.runs[:0], t.Runs...), append(b.places[:0], t.Places...), append(b.fresh[:0], t.New...)
	} else {
		b.runs, b.places, b.fresh = t.Runs, t.Places, t.New
	}
	if err := p.look(t.Blocks, b); err != nil {
		return err
	}
	if p.work != nil {
		p.work <- b
	} else {
		p.tally.addBatch(b)
	}
	return nil
}

// sized is a slice of n, in the memory of s if that is large enough.
func sized[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n, n+n/4)
	}
	return s[:n]
}

// look finds the use, the distance and the time of each run's first touch.
func (p *Pairs) look(blocks []uint64, b *pairBatch) error {
	o := p.olken
	places := b.places
	for at := 0; at < len(blocks); {
		if o.tooMany {
			return ErrTooManyBlocks
		}
		if end := int(o.order.end); len(p.used) < end {
			p.used = append(p.used, make([]uint32, end-len(p.used))...)
		}
		pos, base := o.position(), o.order.base
		n := o.touchSome(blocks[at:], b.runs[at:], b.dist[at:], b.time[at:])
		old := o.order.oldUses
		runs, time, uses := b.runs[at:at+n], b.time[at:at+n], b.uses[at:at+n]
		for i, run := range runs {
			more := uint32(run >> 1)
			switch t := time[i]; {
			case t == model.Infinite:
				uses[i] = noUse
			case t <= uint64(pos-base):
				uses[i] = p.used[pos-uint32(t)]
			default:
				uses[i] = p.used[old[0]]
				old = old[1:]
			}
			p.used[pos+more] = places[more] &^ model.Continued
			places = places[more+1:]
			pos += more + 1
		}
		o.order.oldUses = o.order.oldUses[:0]
		at += n
		o.makeRoom()
	}
	return nil
}

// move takes the places along when positions are moved together: to lower ones, in their order.
func (p *Pairs) move(to *ranks) {
	n := 1
	p.olken.order.each(func(pos uint32) {
		p.used[n] = p.used[pos]
		n++
	})
}

// Finish ends the analysis: the tally has all touches after it.
func (p *Pairs) Finish() {
	if p.work != nil {
		close(p.work)
		<-p.done
		p.work = nil
	}
}

// Accesses is the number of accesses added. Loads and Stores are those of known direction.
func (p *Pairs) Accesses() uint64 { return p.accesses }
func (p *Pairs) Loads() uint64    { return p.loads }
func (p *Pairs) Stores() uint64   { return p.stores }

// Touches is the number of blocks touched, repetitions included.
func (p *Pairs) Touches() uint64 { return p.olken.Accesses() }

// Blocks is the number of distinct blocks touched.
func (p *Pairs) Blocks() uint64 { return p.olken.Blocks() }

// addBatch counts touches that were looked up.
func (p *PairTally) addBatch(b *pairBatch) {
	p.newPlaces(b.fresh)
	places := b.places
	for i, run := range b.runs {
		now := places[0] &^ model.Continued
		if use := b.uses[i]; use == noUse {
			p.cold[now]++
		} else {
			p.reused(use, now, b.time[i], b.dist[i])
		}
		more := int(run >> 1)
		for _, next := range places[1 : more+1] {
			next &^= model.Continued
			p.repeated(now, next)
			now = next
		}
		places = places[more+1:]
	}
}
