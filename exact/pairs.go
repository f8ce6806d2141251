package exact

import (
	"math/bits"

	"github.com/rdx-profiler/rdx/model"
)

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
	placed                  model.PlacedTouches
	paired                  model.PairedTouches // of those

	filled *pairBatch
	work   chan *pairBatch // to the tally, if it is made elsewhere
	spare  chan *pairBatch
	done   chan struct{}
}

// pairBatch is touches that were looked up.
type pairBatch struct {
	ends       []model.RunEnds // by run; Last is the place of the use of its first touch, noUse for none
	dist, time []uint64        // by run
	again      []model.AgainTouches
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
	return eachPlaced(p.split, &p.placed, accesses, func(t *model.PlacedTouches) error {
		pairTouches(&p.paired, t)
		return p.AddTouches(&p.paired)
	})
}

// pairTouches is what there is to know of touches of which all places are known.
func pairTouches(to *model.PairedTouches, t *model.PlacedTouches) {
	*to = model.PairedTouches{Blocks: t.Blocks, Runs: to.Runs[:0], Ends: to.Ends[:0], Again: to.Again[:0], New: append(to.New[:0], t.New...), Ops: t.Ops}
	k := 0
	for _, run := range t.Runs {
		first := t.PlaceNumbers[k] &^ model.Continued
		at := first
		k++
		for range run >> 1 {
			next := t.PlaceNumbers[k] &^ model.Continued
			to.Again = append(to.Again, model.AgainTouches{From: at, To: next, N: 1})
			at = next
			k++
		}
		to.Runs, to.Ends = append(to.Runs, run&^1), append(to.Ends, model.RunEnds{First: first, Last: at})
	}
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

// AddTouches is Add for accesses that were cut into touches of blocks of the same size, whose places all have one Numbering.
// It keeps lists of t, and leaves others in their place: what t says is undefined then.
func (p *Pairs) AddTouches(t *model.PairedTouches) error {
	p.accesses += t.Ops[model.OpUnknown] + t.Ops[model.Load] + t.Ops[model.Store]
	p.loads += t.Ops[model.Load]
	p.stores += t.Ops[model.Store]
	b := p.filled
	if p.work != nil {
		b = <-p.spare
	}
	n := len(t.Blocks)
	b.dist, b.time = sized(b.dist, n), sized(b.time, n)
	if err := p.look(t, b); err != nil {
		return err
	}
	b.ends, t.Ends = t.Ends, b.ends
	b.again, t.Again = t.Again, b.again
	b.fresh, t.New = t.New, b.fresh
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

// look finds the distance and the time of each run's first touch, and its use, which takes the place of its last touch.
func (p *Pairs) look(t *model.PairedTouches, b *pairBatch) error {
	o := p.olken
	for at := 0; at < len(t.Blocks); {
		if o.tooMany {
			return ErrTooManyBlocks
		}
		if end := int(o.order.end); len(p.used) < end {
			p.used = append(p.used, make([]uint32, end-len(p.used))...)
		}
		pos, base := o.position(), o.order.base
		n := o.touchSome(t.Blocks[at:], t.Runs[at:], b.dist[at:], b.time[at:])
		old, used := o.order.oldUses, p.used
		runs, time, ends := t.Runs[at:at+n], b.time[at:at+n], t.Ends[at:at+n]
		for i, run := range runs {
			use := noUse
			switch time := time[i]; {
			case time <= uint64(pos-base):
				use = used[pos-uint32(time)]
			case time != model.Infinite:
				use = used[old[0]]
				old = old[1:]
			}
			pos += uint32(run >> 1)
			used[pos] = ends[i].Last
			ends[i].Last = use
			pos++
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
	for at := 0; at < len(b.ends); {
		at += p.addSome(b.ends[at:], b.time[at:], b.dist[at:])
	}
	for _, a := range b.again {
		p.repeated(a.From, a.To, a.N)
	}
}

// countedPairs are touches to be counted: their keys, and the hot cells of these.
type countedPairs struct {
	keys [batch]pairKey
	hot  [batch]uint16
	far  [batch]uint8 // those whose time or distance is not small
}

// addSome is addBatch for the first of the runs, and returns their number. Where most keys are counted is read ahead of
// counting: whether a key is there cannot be foretold, and the processor would wait for each to go on. For the same reason it
// goes through them step by step, without a branch or a call in most steps.
func (p *PairTally) addSome(ends []model.RunEnds, time, dist []uint64) int {
	ends = ends[:min(len(ends), batch)]
	time, dist = time[:len(ends)], dist[:len(ends)]
	c, n, far := &p.counting, 0, 0
	for n < len(ends) { // those that are reuses of a block touched before the last touch
		t, d := time[n], dist[n]
		if ends[n].Last == noUse || t == 1 {
			break
		}
		c.keys[n%batch] = p.reuse(int(p.smallTime[t%smallValues]), int(p.smallDist[d%smallValues]))
		c.far[far%batch] = uint8(n)
		_, small := bits.Sub64(t|d, smallValues, 0)
		far += 1 - int(small)
		n++
	}
	for _, i := range c.far[:far] {
		c.keys[i%batch] = p.reuse(p.smallTime.of(p.times, time[i]), p.smallDist.of(p.dists, dist[i]))
	}
	ahead, hot := pairKey(0), p.hot
	for i, e := range ends[:n] {
		k := p.pair(e.Last, e.First, c.keys[i%batch], 1)
		at := k.hash() >> (64 - hotCells)
		c.keys[i%batch], c.hot[i%batch] = k, uint16(at)
		ahead ^= hot[at].key
	}
	p.ahead = ahead
	for i, d := range dist[:n] {
		k := c.keys[i%batch]
		if cell := &hot[c.hot[i%batch]%(1<<hotCells)]; !cell.count(k, d) {
			p.countAnew(cell, k, d)
		}
	}
	if n == len(ends) {
		return n
	}
	if e := ends[n]; e.Last == noUse {
		p.cold[e.First]++
	} else {
		p.repeated(e.Last, e.First, 1)
	}
	return n + 1
}
