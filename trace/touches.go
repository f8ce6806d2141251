package trace

import (
	"context"

	"github.com/rdx-profiler/rdx/model"
)

// RunTouches is Run for analyses that need to know no more of an access than
// which blocks it touches, which takes a fraction of the time. each is called
// on another goroutine than the one that reads what the engine has written.
// There is no Options.Skipper.
func RunTouches(ctx context.Context, cmd Command, opt Options, blocks model.Granularity, each func(*model.Touches)) (Result, error) {
	t := newToucher(blocks)
	end := t.start(each)
	opt.Skipper = nil
	res, err := run(ctx, cmd, opt, t)
	end()
	return res, err
}

// start calls each with the batches on another goroutine, until end is called.
func (t *toucher) start(each func(*model.Touches)) (end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := range t.full {
			each(b)
			t.spare <- b
		}
	}()
	return func() {
		t.flush()
		close(t.full)
		<-done
	}
}

// toucher hands touches on in batches.
type toucher struct {
	gran  model.Granularity
	shift uint
	batch *model.Touches // as long as it has room
	n     int            // runs
	// Of the run under way: its block, the touches after its first one, and
	// whether that is a store.
	block uint64
	run   uint64
	head  uint8
	full  chan *model.Touches
	spare chan *model.Touches

	accesses []model.Access // of an entry that is not plain
}

const (
	touchBatch   = 1 << 12 // runs, about
	maxRepeats   = 63      // in a run of model.Touches
	touchBatches = 12
)

func newToucher(blocks model.Granularity) *toucher {
	t := &toucher{gran: blocks, full: make(chan *model.Touches, touchBatches), spare: make(chan *model.Touches, touchBatches)}
	for t.shift = 0; 1<<t.shift < blocks.Bytes(); {
		t.shift++
	}
	for range touchBatches {
		t.spare <- &model.Touches{}
	}
	t.take()
	return t
}

func (t *toucher) open(int) (sink, error) { return t, nil }

func (t *toucher) after(f func()) { f() }

// take waits for memory that nobody reads any more.
func (t *toucher) take() {
	t.batch, t.n = <-t.spare, 0
	room := min(cap(t.batch.Blocks), cap(t.batch.Runs))
	t.batch.Blocks, t.batch.Runs = t.batch.Blocks[:room], t.batch.Runs[:room]
	t.batch.Ops, t.batch.Repeats = [model.Store + 1]uint64{}, [2]uint64{}
	t.run = maxRepeats // what is the first begins a run
	t.grow(2 * touchBatch)
}

// grow makes room for n touches.
func (t *toucher) grow(n int) {
	if b := t.batch; len(b.Blocks) < n {
		b.Blocks = append(b.Blocks, make([]uint64, n-len(b.Blocks))...)
		b.Runs = append(b.Runs, make([]uint8, n-len(b.Runs))...)
	}
}

func (t *toucher) flush() {
	if t.n > 0 {
		t.batch.Blocks, t.batch.Runs = t.batch.Blocks[:t.n], t.batch.Runs[:t.n]
		t.full <- t.batch
		t.take()
	}
}

// touch is a plainAccess without what is not needed.
type touch struct {
	offset, mask uint64
	word         int32
	more         uint32 // bytes after the first one
	store        uint8
}

// prepare sets what touches of the segment need.
func (g *segment) prepare(gran model.Granularity) {
	for i := range g.plain {
		p := &g.plain[i]
		x := touch{offset: p.access.Addr, mask: p.mask, word: p.word, more: max(p.access.Size, 1) - 1}
		if p.access.Op == model.Store {
			x.store = 1
		}
		g.ops[p.access.Op]++
		g.touches = append(g.touches, x)
		g.mostTouches += int(x.more)/gran.Bytes() + 2
	}
}

func (t *toucher) enter(d *decoder, w []uint64, i int) (int, error) {
	for i < len(w) {
		g, next, err := d.whole(w, i)
		if err != nil {
			return 0, err
		}
		if g == nil {
			break
		}
		t.one(g, w[i:next], d.reached(g, w, next), d.thread)
		i = next
	}
	return i, nil
}

// one adds the touches of an entry, of which n sites were reached, and returns
// the number of accesses.
func (t *toucher) one(g *segment, entry []uint64, n int, thread int32) int {
	if g.touches == nil {
		g.prepare(t.gran)
	}
	t.grow(t.n + g.mostTouches)
	accesses := len(g.touches)
	if n < len(g.sites) || g.guarded {
		accesses = t.some(g, entry, n, thread)
	} else {
		t.all(g, entry)
	}
	if t.n >= touchBatch {
		t.flush()
	}
	return accesses
}

// all adds the touches of an entry of which all accesses have happened. This is
// the path of most accesses. What continues a run cannot be foretold, so that no
// branch depends on it.
func (t *toucher) all(g *segment, entry []uint64) {
	blocks, runs := t.batch.Blocks, t.batch.Runs
	runs = runs[:len(blocks)]
	n, shift := t.n-1, t.shift&63
	block, run, head, repeats := t.block, t.run, t.head, t.batch.Repeats
	for i := range g.touches {
		p := &g.touches[i]
		a := p.offset + entry[p.word]&p.mask
		end := a + uint64(p.more)
		if end < a { // as model.Granularity.Span
			end = ^uint64(0)
		}
		for b, last := a>>shift, end>>shift; ; b++ {
			other := b ^ block
			begins := (other|-other)>>63 | (run+1)/(maxRepeats+1)
			n += int(begins)
			run = (run + 1) & (begins - 1)
			head ^= (head ^ p.store) & -uint8(begins)
			repeats[p.store&1] += 1 - begins
			blocks[n], runs[n] = b, uint8(run)<<1|head
			block = b
			if b == last {
				break
			}
		}
	}
	t.n, t.block, t.run, t.head, t.batch.Repeats = n+1, block, run, head, repeats
	for op, k := range g.ops {
		t.batch.Ops[op] += k
	}
}

// some adds those of an entry whose first n sites were reached, and returns the
// number of accesses.
func (t *toucher) some(g *segment, entry []uint64, n int, thread int32) int {
	if len(t.accesses) < g.most {
		t.accesses = make([]model.Access, g.most)
	}
	k := g.expand(t.accesses, entry, n, thread)
	for i := range t.accesses[:k] {
		a := &t.accesses[i]
		t.batch.Ops[a.Op]++
		for b, last := t.gran.Span(a); ; b++ {
			t.batch.Blocks[t.n], t.batch.Runs[t.n] = b, uint8(a.Op-model.Load)
			t.n++
			if b == last {
				break
			}
		}
	}
	t.run = maxRepeats
	return k
}
