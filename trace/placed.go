package trace

import "github.com/rdx-profiler/rdx/model"

// PlacedTouches reads all that is left as RunPlacedTouches does: each is called on another goroutine. Its first error ends the reading.
func (s *Source) PlacedTouches(blocks model.Granularity, each func(*model.PlacedTouches) error) error {
	t := newPlacer(blocks)
	return readBatches(s, t.start, t, each)
}

// placer hands touches with their places on in batches.
type placer struct {
	*model.Placer
	gran  model.Granularity
	shift uint
	batch *model.PlacedTouches
	// As long as there is room in them, and how many runs and touches they have.
	blocks       []uint64
	runs         []uint8
	placeNumbers []uint32
	masks        []uint64 // nil unless blocks are lines
	n, k         int
	// The run under way, as toucher has it.
	block, run uint64
	// Of the batch so far: loads, and touches by stores.
	loads, stores, storeTouches uint64
	accesses                    []model.Access // of an entry that is not plain
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

func newPlacer(blocks model.Granularity) *placer {
	t := &placer{Placer: model.NewPlacer(blocks, true), gran: blocks, shift: blocks.Shift(),
		pipe: newPipe(func() *model.PlacedTouches { return &model.PlacedTouches{} })}
	t.take()
	return t
}

func (t *placer) open(int) (sink, error) { return t, nil }

func (t *placer) after(f func()) { f() }

func (t *placer) start(each func(*model.PlacedTouches)) (end func()) { return t.hand(each, t.flush) }

// take waits for memory that nobody reads any more.
func (t *placer) take() {
	t.batch = <-t.spare
	b := t.batch
	t.Begin(b)
	t.blocks, t.runs, t.placeNumbers, t.masks = b.Blocks[:cap(b.Blocks)], b.Runs[:cap(b.Runs)], b.PlaceNumbers[:cap(b.PlaceNumbers)], b.Masks[:cap(b.Masks)]
	t.n, t.k, t.loads, t.stores, t.storeTouches = 0, 0, 0, 0, 0
	t.run = runEnds // what is the first begins a run
}

func (t *placer) flush() {
	if t.k == 0 {
		return
	}
	b := t.batch
	b.Blocks, b.Runs, b.PlaceNumbers, b.Masks = t.blocks[:t.n], t.runs[:t.n], t.placeNumbers[:t.k], nil
	if t.HasMasks() {
		b.Masks = t.masks[:t.k]
	}
	byStores := uint64(0) // runs
	for _, r := range b.Runs {
		byStores += uint64(r & 1)
	}
	b.Ops[model.Load], b.Ops[model.Store] = t.loads, t.stores
	b.Repeats[1] = t.storeTouches - byStores
	b.Repeats[0] = uint64(t.k-t.n) - b.Repeats[1]
	t.full <- b
	t.take()
}

// grow makes room for n touches more.
func (t *placer) grow(n int) {
	if len(t.placeNumbers)-t.k >= n {
		return
	}
	n += 2 * len(t.placeNumbers)
	t.blocks, t.runs, t.placeNumbers = room(t.blocks, n), room(t.runs, n), room(t.placeNumbers, n)
	if t.HasMasks() {
		t.masks = room(t.masks, n)
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
	if t.k >= touchBatch {
		t.flush()
	}
	if n < len(g.sites) || g.guarded {
		if len(t.accesses) < g.most {
			t.accesses = make([]model.Access, g.most)
		}
		k := g.expand(t.accesses, entry, n, thread)
		for i := range t.accesses[:k] {
			a := &t.accesses[i]
			t.some([]placedAccess{t.access(&plainAccess{access: *a}, thread)}, entry, mostTouches(t.gran, a.Size))
		}
		return k
	}
	p := g.placed
	if p == nil || p.thread != thread {
		p = t.place(g, thread)
	}
	t.some(p.accesses, entry, p.most)
	return len(p.accesses)
}

// place makes a segment ready for a thread.
func (t *placer) place(g *segment, thread int32) *placedSegment {
	p := &placedSegment{thread: thread, accesses: make([]placedAccess, 0, len(g.plain))}
	for i := range g.plain {
		p.accesses = append(p.accesses, t.access(&g.plain[i], thread))
		p.most += mostTouches(t.gran, g.plain[i].access.Size)
	}
	g.placed = p
	return p
}

func (t *placer) access(a *plainAccess, thread int32) placedAccess {
	x := placedAccess{offset: a.access.Addr, mask: a.mask, word: a.word, shift: a.shift, more: max(a.access.Size, 1) - 1,
		place: t.Number(model.Place{PC: a.access.PC, Thread: thread, Op: a.access.Op})}
	if a.access.Op == model.Store {
		x.store = 1
	}
	return x
}

// mostTouches is as many as an access of a size may have.
func mostTouches(blocks model.Granularity, size uint32) int {
	return int(max(size, 1)-1)/blocks.Bytes() + 2
}

// some adds the touches of an entry's accesses, all of which happened. This is the path of most accesses.
func (t *placer) some(accesses []placedAccess, entry []uint64, most int) {
	t.grow(most)
	n, k := t.n-1, t.k
	blocks, runs, numbers, masks := t.blocks, t.runs, t.placeNumbers, t.masks
	block, run, shift := t.block, t.run, t.shift&63
	stores, storeTouches := uint64(0), uint64(0)
	for i := range accesses {
		x := &accesses[i]
		addr := x.offset + uint64(int64(entry[x.word])>>(x.shift&63))&x.mask
		end := addr + uint64(x.more)
		if end < addr { // as model.Granularity.Span
			end = ^uint64(0)
		}
		store := uint64(x.store)
		stores += store
		place := x.place
		for at, last := addr>>shift, end>>shift; ; at++ {
			numbers[k] = place
			if len(masks) > 0 {
				masks[k] = model.LineMask(at, addr, x.more+1)
			}
			k++
			run += runRepeat
			other := at ^ block | run&^(runEnds-1)
			begins := (other | -other) >> 63
			n += int(begins)
			run ^= (run ^ store) & -begins
			storeTouches += store
			blocks[n], runs[n] = at, uint8(run)
			block = at
			if at == last {
				break
			}
			place |= model.Continued
		}
	}
	t.n, t.k, t.block, t.run = n+1, k, block, run
	t.loads += uint64(len(accesses)) - stores
	t.stores += stores
	t.storeTouches += storeTouches
}
