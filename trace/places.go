package trace

import "github.com/rdx-profiler/rdx/model"

// Places reads all that is left as RunPlaces does: each is called on another goroutine. Its first error ends the reading.
func (s *Source) Places(blocks model.Granularity, masks bool, each func(*model.PlacedTouches) error) error {
	t := newPlacer(blocks, masks)
	return readBatches(s, t.start, func(b *blockReader) (int, error) { return b.place(t) }, each)
}

// place is next for the places of the accesses.
func (r *blockReader) place(t *placer) (int, error) {
	n := 0
	for r.left > 0 && n < touchBatch {
		g, reached, err := r.enter()
		if err != nil {
			return 0, err
		}
		k := t.one(g, r.oneEntry[:1+g.words], reached, r.thread)
		if err := r.leave(k); err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// placer hands touches with their places on in batches.
type placer struct {
	*model.Placer
	gran     model.Granularity
	shift    uint
	batch    *model.PlacedTouches
	accesses []model.Access // of an entry that is not plain
	pipe[*model.PlacedTouches]
}

// placedAccess is a plainAccess of a thread, with the number of its place.
type placedAccess struct {
	offset, mask uint64
	word         int32
	more         uint32 // bytes after the first one
	place        uint32
	shift, store uint8
}

// placedSegment is what the plain accesses of a segment are in one thread.
type placedSegment struct {
	thread   int32
	accesses []placedAccess
	most     int // touches
}

func newPlacer(blocks model.Granularity, masks bool) *placer {
	t := &placer{Placer: model.NewPlacer(blocks, masks), gran: blocks, shift: blocks.Shift(),
		pipe: newPipe(func() *model.PlacedTouches { return &model.PlacedTouches{} })}
	t.take()
	return t
}

func (t *placer) open(int) (sink, error) { return t, nil }

func (t *placer) after(f func()) { f() }

func (t *placer) start(each func(*model.PlacedTouches)) (end func()) { return t.hand(each, t.flush) }

func (t *placer) take() {
	t.batch = <-t.spare
	t.Begin(t.batch)
}

func (t *placer) flush() {
	if len(t.batch.Places) > 0 {
		t.full <- t.batch
		t.take()
	}
}

func (t *placer) enter(d *decoder, w []uint64, i int) (int, error) {
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

// one adds the touches of an entry, of which n sites were reached, and returns the number of accesses.
func (t *placer) one(g *segment, entry []uint64, n int, thread int32) int {
	if len(t.batch.Places) >= touchBatch {
		t.flush()
	}
	if n < len(g.sites) || g.guarded {
		if len(t.accesses) < g.most {
			t.accesses = make([]model.Access, g.most)
		}
		k := g.expand(t.accesses, entry, n, thread)
		t.Add(t.accesses[:k])
		return k
	}
	p := g.placed
	if p == nil || p.thread != thread {
		p = t.place(g, thread)
	}
	t.plain(p, entry)
	return len(p.accesses)
}

// place makes a segment ready for a thread.
func (t *placer) place(g *segment, thread int32) *placedSegment {
	p := &placedSegment{thread: thread, accesses: make([]placedAccess, 0, len(g.plain))}
	for i := range g.plain {
		a := &g.plain[i].access
		x := placedAccess{offset: a.Addr, mask: g.plain[i].mask, word: g.plain[i].word, shift: g.plain[i].shift, more: max(a.Size, 1) - 1,
			place: t.Number(model.Place{PC: a.PC, Thread: thread, Op: a.Op})}
		if a.Op == model.Store {
			x.store = 1
		}
		p.most += int(x.more)/t.gran.Bytes() + 2
		p.accesses = append(p.accesses, x)
	}
	g.placed = p
	return p
}

// plain adds the touches of an entry all of whose accesses happened. This is the path of most accesses.
func (t *placer) plain(p *placedSegment, entry []uint64) {
	b := t.batch
	k, n := len(b.Places), len(b.Blocks)-1
	blocks, runs, places := room(b.Blocks, p.most), room(b.Runs, p.most), room(b.Places, p.most)
	masks := b.Masks
	if t.HasMasks() {
		masks = room(masks, p.most)
	}
	block, run := uint64(0), uint64(runEnds)
	if n >= 0 {
		block, run = blocks[n], uint64(runs[n])
	}
	shift := t.shift & 63
	stores, storeRepeats, repeats := uint64(0), uint64(0), uint64(0)
	for i := range p.accesses {
		x := &p.accesses[i]
		addr := x.offset + uint64(int64(entry[x.word])>>(x.shift&63))&x.mask
		end := addr + uint64(x.more)
		if end < addr { // as model.Granularity.Span
			end = ^uint64(0)
		}
		store := uint64(x.store)
		stores += store
		place := x.place
		for at, last := addr>>shift, end>>shift; ; at++ {
			places[k] = place
			if t.HasMasks() {
				masks[k] = model.LineMask(at, addr, x.more+1)
			}
			k++
			run += runRepeat
			other := at ^ block | run&^(runEnds-1)
			begins := (other | -other) >> 63
			n += int(begins)
			run ^= (run ^ store) & -begins
			repeats += 1 - begins
			storeRepeats += store &^ begins
			blocks[n], runs[n] = at, uint8(run)
			block = at
			if at == last {
				break
			}
			place |= model.Continued
		}
	}
	b.Ops[model.Load] += uint64(len(p.accesses)) - stores
	b.Ops[model.Store] += stores
	b.Repeats[0] += repeats - storeRepeats
	b.Repeats[1] += storeRepeats
	b.Blocks, b.Runs, b.Places = blocks[:n+1], runs[:n+1], places[:k]
	if t.HasMasks() {
		b.Masks = masks[:k]
	}
}

// room is s with room for n more.
func room[E any](s []E, n int) []E {
	if cap(s)-len(s) < n {
		grown := make([]E, len(s), 2*cap(s)+n)
		copy(grown, s)
		s = grown
	}
	return s[:cap(s)]
}
