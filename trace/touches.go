package trace

import "github.com/rdx-profiler/rdx/model"

func (t *toucher) start(each func(*model.Touches)) (end func()) { return t.hand(each, t.flush) }

// toucher hands touches on in batches.
type toucher struct {
	gran  model.Granularity
	shift uint
	batch *model.Touches
	// As long as there is room in it, and how many runs it has.
	blocks []uint64
	runs   []uint8
	n      int
	// The run under way: its block, and what model.Touches.Runs has of it.
	block uint64
	run   uint64
	// Of the batch so far: accesses of simple entries, and touches that are more than
	// those; loads, and stores from bit 32 on.
	ops, extra uint64
	alone      [1]*segment
	pipe[*model.Touches]

	accesses []model.Access // of an entry that is not plain
}

const (
	touchBatch   = 1 << 15 // runs, about; with an eighth of that, waking who waits for the next takes a tenth of the time
	runRepeat    = 2       // what a run of model.Touches has of each touch after the first one
	runEnds      = 1 << 7  // of which it has not so many
	touchBatches = 4
)

func newToucher(blocks model.Granularity) *toucher {
	t := &toucher{gran: blocks, pipe: newPipe(func() *model.Touches { return &model.Touches{} })}
	for t.shift = 0; 1<<t.shift < blocks.Bytes(); {
		t.shift++
	}
	t.take()
	return t
}

func (t *toucher) open(int) (sink, error) { return t, nil }

func (t *toucher) after(f func()) { f() }

// take waits for memory that nobody reads any more.
func (t *toucher) take() {
	t.batch, t.n = <-t.spare, 0
	t.blocks, t.runs = t.batch.Blocks[:cap(t.batch.Blocks)], t.batch.Runs[:cap(t.batch.Runs)]
	t.batch.Ops, t.batch.Repeats = [model.Store + 1]uint64{}, [2]uint64{}
	t.ops, t.extra = 0, 0
	t.run = runEnds // what is the first begins a run
	t.grow(2 * touchBatch)
}

// grow makes room for n touches.
func (t *toucher) grow(n int) {
	t.blocks = append(t.blocks, make([]uint64, max(n-len(t.blocks), 0))...)
	t.runs = append(t.runs, make([]uint8, max(n-len(t.runs), 0))...)
}

func (t *toucher) flush() {
	if t.n == 0 {
		return
	}
	b := t.batch
	b.Blocks, b.Runs = t.blocks[:t.n], t.runs[:t.n]
	stores := uint64(0)
	for _, r := range b.Runs {
		stores += uint64(r & 1)
	}
	begun := [model.Store]uint64{uint64(t.n) - stores, stores}
	for op := range begun {
		ops, extra := t.ops>>(32*op)%(1<<32), t.extra>>(32*op)%(1<<32)
		b.Ops[int(model.Load)+op] += ops
		b.Repeats[op] = ops + extra - begun[op]
	}
	t.full <- b
	t.take()
}

// touch is a plainAccess without what is not needed. The code in touches_amd64.s knows its size.
type touch struct {
	offset, mask uint64
	word         int32  // of those that a segment has
	more         uint32 // bytes after the first one
	one          uint64 // as a count of loads, and stores from bit 32 on
}

// prepare sets what touches of the segment need.
func (g *segment) prepare(gran model.Granularity) {
	g.touches = make([]touch, 0, len(g.plain))
	for i := range g.plain {
		p := &g.plain[i]
		x := touch{offset: p.access.Addr, mask: p.mask, word: p.word, more: max(p.access.Size, 1) - 1, one: 1}
		if !g.short && p.mask != 0 {
			x.word-- // the header
		}
		if p.access.Op == model.Store {
			x.one = 1 << 32
		}
		g.ops += x.one
		g.touches = append(g.touches, x)
		g.mostTouches += int(x.more)/gran.Bytes() + 2
	}
	g.simple = !g.guarded && g.mostTouches <= touchBatch
}

func (t *toucher) enter(d *decoder, w []uint64, i int) (int, error) {
	for {
		i = touchShort(t, d.segments, w, i)
		i = t.simple(d.segments, w, i, touchedAtOnce)
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
		case g.simple && (next == len(w) || uint32(w[next]) != wordFault):
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
	t.simple(t.alone[:], entry, 0, 1)
	return len(g.touches)
}

// simple adds the touches of entries from word i on, so many at most, until one is not
// simple, has not been prepared or is followed by a fault, or the batch is full. It returns
// the index of that entry. This is the path of most accesses. What continues a run cannot be
// foretold, so that no branch depends on it.
func (t *toucher) simple(segments []*segment, w []uint64, i, most int) int {
	blocks, runs := t.blocks, t.runs
	n, shift := t.n-1, t.shift&63
	block, run := t.block, t.run
	for ; n < touchBatch-1 && i < len(w) && most > 0; most-- {
		id, length := first(w[i])
		if int(id) >= len(segments) {
			break
		}
		g := segments[id]
		next := i + length
		if g == nil || !g.simple || length != g.length || next > len(w) || next < len(w) && uint32(w[next]) == wordFault {
			break
		}
		words := w[i+1 : next]
		var few [shortWords]uint64
		if g.short {
			few[0] = uint64(int64(w[i]) >> shortAddress)
			copy(few[1:], words)
			words = few[:]
		}
		i = next
		t.ops += g.ops
		for k := range g.touches {
			p := &g.touches[k]
			a := p.offset
			if p.mask != 0 {
				a += words[p.word]
			}
			end := a + uint64(p.more)
			if end < a { // as model.Granularity.Span
				end = ^uint64(0)
			}
			t.extra += (end>>shift - a>>shift) * p.one
			for b, last := a>>shift, end>>shift; ; b++ {
				run += runRepeat
				other := b ^ block | run&^(runEnds-1)
				begins := (other | -other) >> 63
				n += int(begins)
				run ^= (run ^ p.one>>32) & -begins
				blocks[n], runs[n] = b, uint8(run)
				block = b
				if b == last {
					break
				}
			}
		}
	}
	t.n, t.block, t.run = n+1, block, run
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
			t.blocks[t.n], t.runs[t.n] = b, uint8(a.Op-model.Load)
			t.n++
			t.extra += 1 << (32 * uint(a.Op-model.Load))
			if b == last {
				break
			}
		}
	}
	t.run = runEnds
	return k
}
