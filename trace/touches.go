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
	// Accesses and repeats of the batch so far: loads, and stores from bit 32 on.
	ops, repeats uint64
	alone        [1]*segment
	full         chan *model.Touches
	spare        chan *model.Touches

	accesses []model.Access // of an entry that is not plain
}

const (
	touchBatch   = 1 << 15 // runs, about; with an eighth of that, waking who waits for the next takes a tenth of the time
	maxRepeats   = 63      // in a run of model.Touches
	touchBatches = 4
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
	t.ops, t.repeats = 0, 0
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
		for op, count := range [model.Store]uint64{t.ops % (1 << 32), t.ops >> 32} {
			t.batch.Ops[int(model.Load)+op] += count
		}
		t.batch.Repeats = [2]uint64{t.repeats % (1 << 32), t.repeats >> 32}
		t.batch.Blocks, t.batch.Runs = t.batch.Blocks[:t.n], t.batch.Runs[:t.n]
		t.full <- t.batch
		t.take()
	}
}

// touch is a plainAccess without what is not needed.
type touch struct {
	offset, mask uint64
	word         int32
	shift        uint8
	more         uint32 // bytes after the first one
	store        uint8
	one          uint64 // as a count of loads, and stores from bit 32 on
}

// prepare sets what touches of the segment need.
func (g *segment) prepare(gran model.Granularity) {
	g.touches = make([]touch, 0, len(g.plain))
	for i := range g.plain {
		p := &g.plain[i]
		x := touch{offset: p.access.Addr, mask: p.mask, word: p.word, shift: p.shift, more: max(p.access.Size, 1) - 1, one: 1}
		if p.access.Op == model.Store {
			x.store, x.one = 1, 1<<32
		}
		g.ops += x.one
		g.touches = append(g.touches, x)
		g.mostTouches += int(x.more)/gran.Bytes() + 2
	}
	g.simple = !g.guarded && g.mostTouches <= touchBatch
}

func (t *toucher) enter(d *decoder, w []uint64, i int) (int, error) {
	for {
		i = t.simple(d.segments, w, i)
		if i == len(w) {
			return i, nil
		}
		g, next, err := d.whole(w, i)
		if err != nil {
			return 0, err
		}
		switch {
		case g == nil:
			return i, nil
		case g.touches == nil:
			g.prepare(t.gran)
		case t.n >= touchBatch:
			t.flush()
		default:
			t.some(g, w[i:next], d.reached(g, w, next), d.thread)
			i = next
		}
	}
}

// one adds the touches of an entry, of which n sites were reached, and returns
// the number of accesses. The entry is not a short one; its first word is set.
func (t *toucher) one(g *segment, entry []uint64, n int, thread int32) int {
	if g.touches == nil {
		g.prepare(t.gran)
	}
	if t.n >= touchBatch {
		t.flush()
	}
	if n < len(g.sites) || !g.simple {
		return t.some(g, entry, n, thread)
	}
	t.alone[0], entry[0] = g, uint64(g.words)<<32
	t.simple(t.alone[:], entry, 0)
	return len(g.touches)
}

// simple adds the touches of entries from word i on, until one is not simple, has
// not been prepared or is followed by a fault, or the batch is full. It returns the index of
// that entry. This is the path of most accesses. What continues a run cannot be
// foretold, so that no branch depends on it.
func (t *toucher) simple(segments []*segment, w []uint64, i int) int {
	blocks, runs := t.batch.Blocks, t.batch.Runs
	runs = runs[:len(blocks)]
	n, shift := t.n-1, t.shift&63
	block, run, head, ops, repeats := t.block, t.run, t.head, t.ops, t.repeats
	for n < touchBatch-1 && i < len(w) {
		id, length := first(w[i])
		if int(id) >= len(segments) {
			break
		}
		g := segments[id]
		next := i + length
		if g == nil || !g.simple || length != g.length || next > len(w) || next < len(w) && uint32(w[next]) == wordFault {
			break
		}
		entry := w[i:next]
		i = next
		ops += g.ops
		for k := range g.touches {
			p := &g.touches[k]
			a := p.offset + uint64(int64(entry[p.word])>>(p.shift&63))&p.mask
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
				repeats += p.one & (begins - 1)
				blocks[n], runs[n] = b, uint8(run)<<1|head
				block = b
				if b == last {
					break
				}
			}
		}
	}
	t.n, t.block, t.run, t.head, t.ops, t.repeats = n+1, block, run, head, ops, repeats
	return i
}

// some adds those of an entry whose first n sites were reached, and returns the
// number of accesses.
func (t *toucher) some(g *segment, entry []uint64, n int, thread int32) int {
	t.grow(t.n + g.mostTouches)
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
