package trace

import "github.com/rdx-profiler/rdx/model"

// PairedTouches reads all that is left as RunPairedTouches does: each is called on another goroutine. Its first error ends the reading.
func (s *Source) PairedTouches(blocks model.Granularity, each func(*model.PairedTouches) error) error {
	t := newPairer(blocks)
	return readBatches(s, t.start, t, each)
}

// pairer hands paired touches on in batches.
//
// Which of a segment's accesses come after which is known once for all entries: how often one touches the block that the one
// before it has touched is counted in place, and so costs an addition. Only the first one of an entry comes after any other.
type pairer struct {
	*model.Numbering
	gran  model.Granularity
	shift uint
	batch *model.PairedTouches
	// As long as there is room in them, and how many runs and list entries they have.
	blocks []uint64
	runs   []uint8
	ends   []model.RunEnds
	again  []model.AgainTouches
	n, m   int
	// The run under way, as toucher has it, but for its direction, and the place that began it.
	block, run uint64
	began      uint32
	before     uint32 // the place of the access before
	ops        uint64 // of the batch so far: loads, and stores from bit 32 on
	counting   []*segment
	most       int            // of them: mostCounting
	accesses   []model.Access // of an entry that is not plain
	alone      [1]*segment
	single     segment // of one access of such an entry
	pipe[*model.PairedTouches]
}

// pairedAccess is a plainAccess of a thread, with the number of its place. The code in paired_amd64.s knows its size.
type pairedAccess struct {
	offset, mask uint64
	again        uint64 // how often it went on with the run of the access before it in the segment
	word         int32
	more         uint32 // bytes after the first one
	place        uint32
	shift        uint8
}

// pairedSegment is what the accesses of a segment are in one thread. There is none if one is guarded.
type pairedSegment struct {
	thread   int32
	accesses []pairedAccess
	ops      uint64 // as pairer has them
}

// mostCounting is how many segments count before what they have counted is taken out: a recording has
// new ones in each block.
const mostCounting = 1 << 14

func newPairer(blocks model.Granularity) *pairer {
	t := &pairer{Numbering: model.NewNumbering(), gran: blocks, shift: blocks.Shift(), most: mostCounting,
		pipe: newPipe(func() *model.PairedTouches { return &model.PairedTouches{} })}
	t.single = segment{length: 1, paired: &pairedSegment{accesses: make([]pairedAccess, 1)}}
	t.take()
	return t
}

func (t *pairer) open(int) (sink, error) { return t, nil }

func (t *pairer) after(f func()) { f() }

func (t *pairer) start(each func(*model.PairedTouches)) (end func()) {
	return t.hand(each, func() {
		t.collect()
		t.flush()
	})
}

// take waits for memory that nobody reads any more.
func (t *pairer) take() {
	b := <-t.spare
	t.batch = b
	b.New, b.Ops = b.New[:0], [model.Store + 1]uint64{}
	t.Into(&b.New)
	t.blocks, t.runs, t.ends, t.again = b.Blocks[:0], b.Runs[:0], b.Ends[:0], b.Again[:0]
	t.n, t.m, t.ops = 0, 0, 0
	t.run = runEnds // what is the first begins a run
	t.grow(2*touchBatch, touchBatch+1)
}

// grow makes room for n runs and m list entries.
func (t *pairer) grow(n, m int) {
	if len(t.blocks) < n {
		t.blocks, t.runs, t.ends = room(t.blocks, n), room(t.runs, n), room(t.ends, n)
	}
	if len(t.again) < m {
		t.again = room(t.again, m)
	}
}

// room is s with a length of n, which is more than it has. What nobody writes to costs no memory.
func room[E any](s []E, n int) []E {
	if cap(s) >= n {
		return s[:n]
	}
	to := make([]E, n)
	copy(to, s)
	return to
}

func (t *pairer) flush() {
	if t.n == 0 && t.m == 0 {
		return
	}
	b := t.batch
	b.Blocks, b.Runs, b.Ends, b.Again = t.blocks[:t.n], t.runs[:t.n], t.ends[:t.n], t.again[:t.m]
	b.Ops[model.Load], b.Ops[model.Store] = t.ops%(1<<32), t.ops>>32
	t.full <- b
	t.take()
}

// collect takes out what segments have counted.
func (t *pairer) collect() {
	for _, g := range t.counting {
		t.collectOf(g.paired)
		g.paired = nil
	}
	t.counting = t.counting[:0]
}

func (t *pairer) collectOf(p *pairedSegment) {
	t.grow(t.n, t.m+len(p.accesses))
	for i := range p.accesses {
		if x := &p.accesses[i]; x.again > 0 { // not the first one
			t.again[t.m] = model.AgainTouches{From: p.accesses[i-1].place, To: x.place, N: x.again}
			t.m++
		}
	}
}

func (t *pairer) enter(d *decoder, w []uint64, i int) (int, error) {
	for {
		i = pairEntries(t, d.segments, d.thread, w, i)
		if i = t.plain(d.segments, d.thread, w, i, touchedAtOnce); i == len(w) {
			return i, nil
		}
		g, next, err := d.whole(w, i)
		if err != nil {
			return 0, err
		}
		if g == nil {
			return i, nil
		}
		t.ready()
		if reached := d.reached(g, w, next); reached < len(g.sites) || !t.pair(g, d.thread) || next < len(w) && uint32(w[next]) == wordFault {
			t.some(g, w[i:next], reached, d.thread)
			i = next
		}
	}
}

// ready makes room for an entry.
func (t *pairer) ready() {
	if t.n >= touchBatch || t.m >= touchBatch {
		t.flush()
	}
}

// one adds the touches of an entry, of which n sites were reached, and returns the number of accesses. The entry is not a
// short one; its first word is set.
func (t *pairer) one(g *segment, entry []uint64, n int, thread int32) int {
	t.ready()
	if n < len(g.sites) || !t.pair(g, thread) {
		return t.some(g, entry, n, thread)
	}
	t.alone[0], entry[0] = g, uint64(g.words)<<32
	t.plain(t.alone[:], thread, entry, 0, 1)
	return len(g.plain)
}

// pair makes a segment ready for a thread, if its entries are all alike and not too long.
func (t *pairer) pair(g *segment, thread int32) bool {
	if g.paired != nil && g.paired.thread == thread {
		return true
	}
	most := 0
	for i := range g.plain {
		most += mostTouches(t.gran, g.plain[i].access.Size)
	}
	if g.guarded || most > touchBatch {
		return false
	}
	if g.paired != nil {
		t.collectOf(g.paired)
	} else {
		if len(t.counting) >= t.most {
			t.collect()
		}
		t.counting = append(t.counting, g)
	}
	p := &pairedSegment{thread: thread, accesses: make([]pairedAccess, len(g.plain))}
	for i := range g.plain {
		p.accesses[i] = t.access(&g.plain[i], thread)
		p.ops += 1 << (32 * uint(g.plain[i].access.Op-model.Load))
	}
	g.paired = p
	t.ready()
	return true
}

func (t *pairer) access(a *plainAccess, thread int32) pairedAccess {
	return pairedAccess{offset: a.access.Addr, mask: a.mask, word: a.word, shift: a.shift, more: max(a.access.Size, 1) - 1,
		place: t.Number(model.Place{PC: a.access.PC, Thread: thread, Op: a.access.Op})}
}

// some adds the touches of an entry of which the first n sites were reached, and returns the number of accesses.
func (t *pairer) some(g *segment, entry []uint64, n int, thread int32) int {
	if len(t.accesses) < g.most {
		t.accesses = make([]model.Access, g.most)
	}
	k := g.expand(t.accesses, entry, n, thread)
	for i := range t.accesses[:k] {
		a := &t.accesses[i]
		t.ready()
		t.grow(t.n+mostTouches(t.gran, a.Size), 0)
		p := t.single.paired
		p.thread, p.ops, p.accesses[0] = thread, 1<<(32*uint(a.Op-model.Load)), t.access(&plainAccess{access: *a}, thread)
		t.alone[0] = &t.single
		t.plain(t.alone[:], thread, []uint64{0}, 0, 1)
	}
	return k
}

// plain adds the touches of entries from word i on, so many at most, until one has not been paired or is followed by a
// fault, or the batch is full. It returns the index of that entry. This is the path of most accesses. What continues a run
// cannot be foretold, so that no branch depends on it.
func (t *pairer) plain(segments []*segment, thread int32, w []uint64, i, most int) int {
	blocks := t.blocks
	runs, ends, again := t.runs[:len(blocks)], t.ends[:len(blocks)], t.again
	n, m, shift := t.n-1, t.m, t.shift&63
	block, run, began, before, ops := t.block, t.run, t.began, t.before, t.ops
	for ; n < touchBatch-1 && m < touchBatch && i < len(w) && most > 0; most-- {
		id, length := first(w[i])
		if int(id) >= len(segments) || segments[id] == nil {
			break
		}
		g := segments[id]
		next, p := i+length, g.paired
		if p == nil || p.thread != thread || length != g.length || next > len(w) || next < len(w) && uint32(w[next]) == wordFault {
			break
		}
		entry := w[i:next]
		i = next
		if len(p.accesses) == 0 {
			continue
		}
		ops += p.ops
		start := &p.accesses[0]
		was := start.again
		for k := range p.accesses {
			x := &p.accesses[k]
			addr := x.offset + uint64(int64(entry[x.word])>>(x.shift&63))&x.mask
			end := addr + uint64(x.more)
			if end < addr { // as model.Granularity.Span
				end = ^uint64(0)
			}
			at, last := addr>>shift, end>>shift
			run += runRepeat
			other := at ^ block | run&^(runEnds-1)
			begins := (other | -other) >> 63
			n += int(begins)
			x.again += 1 - begins
			run &= begins - 1
			began ^= (began ^ x.place) & -uint32(begins)
			blocks[n], runs[n], ends[n] = at, uint8(run), model.RunEnds{First: began, Last: x.place}
			for ; at != last; runs[n] = 0 {
				n, at, run, began = n+1, at+1, 0, x.place
				blocks[n], ends[n] = at, model.RunEnds{First: began, Last: began}
			}
			block = at
		}
		// The first one comes after one of any segment.
		again[m] = model.AgainTouches{From: before, To: start.place, N: 1}
		m += int(start.again - was)
		start.again = was
		before = p.accesses[len(p.accesses)-1].place
	}
	t.n, t.m, t.block, t.run, t.began, t.before, t.ops = n+1, m, block, run, began, before, ops
	return i
}
