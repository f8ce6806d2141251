package exact

import "sync"

// relay takes pieces that are merged touch by touch through their stages. Through the filter
// pieces go side by side, through the others one after the other in their order, and stages of different
// pieces run side by side. Nobody owns a stage: the goroutine that adds touches and
// jobs-1 others do what is ready, see next, so that none waits while there is
// work, wherever most of it is, and there are not more of them than processors.
// What adds touches also fills pieces, and does so before all else; while others have enough to do, it takes what it
// fills through its filter at once, as long as that is in its caches.
type relay struct {
	merge   *merger
	filters []*pieceFilter // [0] is of what adds touches, which takes pieces through it while it fills them, too

	mu     sync.Mutex
	change sync.Cond
	pieces []*piece // the i-th of the stream is pieces[i%len]
	ready  []bool   // by piece: it can be located
	handed int      // filled pieces
	begun  int      // of them, those for which the filter has at least begun, or that do without
	done   [relayStages]int
	busy   [relayStages]bool
	off    int // so many pieces do without the filter
	pause  int // how many will when it is of no use for one: the more, the more often in a row it was of none
	pauses int
	idle   int // who wait for a change
	ended  bool
}

// The stages that pieces go through in their order.
const (
	stageLocate = iota
	stageCount
	stageTally
	relayStages
	stageFilter // before them
)

// mostPaused is for how many pieces the filter pauses at most.
const mostPaused = 16

func newRelay(merge *merger, pieces []*piece, filters []*pieceFilter) *relay {
	r := &relay{pause: 1, merge: merge, pieces: pieces, ready: make([]bool, len(pieces)), filters: filters}
	r.change.L = &r.mu
	for _, f := range filters[1:] {
		go r.help(f)
	}
	return r
}

// take returns a piece to be filled, and the filter that it is to be taken through meanwhile, if any.
func (r *relay) take() (*piece, *pieceFilter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.handed-r.done[stageTally] == len(r.pieces) {
		r.step(r.filters[0])
	}
	x := r.pieces[r.handed%len(r.pieces)]
	x.filtered = r.off == 0
	r.off -= min(r.off, 1)
	if x.filtered && (len(r.filters) == 1 || r.handed-r.done[stageTally] >= 2*len(r.filters)-1) {
		return x, r.filters[0]
	}
	return x, nil
}

// hand passes the piece on that take returned last. filtered says that it has been through the filter.
func (r *relay) hand(filtered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.handed % len(r.pieces)
	if r.ready[k] = !r.pieces[k].filtered; filtered {
		r.filtered(k)
	}
	r.handed++
	r.wake()
}

// filtered notes that pieces[k] has been through the filter.
func (r *relay) filtered(k int) {
	r.ready[k] = true
	x := r.pieces[k]
	if trialShare*(x.n-len(x.output.blocks)) >= x.n {
		r.pause = 1
		return
	}
	r.off = r.pause
	r.pause = min(2*r.pause, mostPaused)
	r.pauses++
}

// finish returns when all pieces have been merged.
func (r *relay) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.wake()
	for r.done[stageTally] < r.handed {
		r.step(r.filters[0])
	}
	r.wake()
}

// help does what is ready until there is no more.
func (r *relay) help(f *pieceFilter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ended || r.done[stageTally] < r.handed {
		r.step(f)
	}
}

func (r *relay) wake() {
	if r.idle > 0 {
		r.change.Broadcast()
	}
}

// step does a stage of a piece, or waits for a change if none is ready. The mutex
// is held before and after it.
func (r *relay) step(f *pieceFilter) {
	for r.begun < r.handed && r.ready[r.begun%len(r.pieces)] {
		r.begun++
	}
	s := r.next()
	if s < 0 {
		r.idle++
		r.change.Wait()
		r.idle--
		return
	}
	if s == stageFilter {
		k := r.begun % len(r.pieces)
		r.begun++
		r.mu.Unlock()
		f.whole(r.pieces[k])
		r.mu.Lock()
		r.filtered(k)
		r.wake()
		return
	}
	x := r.pieces[r.done[s]%len(r.pieces)]
	r.busy[s] = true
	r.mu.Unlock()
	r.do(s, x)
	r.mu.Lock()
	r.busy[s] = false
	r.done[s]++
	r.wake()
}

// next is the stage to be done: of those that are ready the one for which most pieces wait; below 0 if none is. So pieces
// do not all come to wait for one stage, which only one goroutine can do while the others have nothing left. Of equals it is
// the furthest: what it needs has just been in a cache.
func (r *relay) next() int {
	next, most := -1, 0
	if n := r.handed - r.begun; n > 0 {
		next, most = stageFilter, n
	}
	for s := range relayStages {
		if n := r.waiting(s); n >= most && r.can(s) {
			next, most = s, n
		}
	}
	return next
}

// waiting is how many pieces have been through the stages before, or at least begun to, and not through this one.
func (r *relay) waiting(s int) int {
	if s == 0 {
		return r.begun - r.done[0]
	}
	return r.done[s-1] - r.done[s]
}

// can is whether the next piece of a stage can be done.
func (r *relay) can(s int) bool {
	if r.busy[s] || r.waiting(s) == 0 {
		return false
	}
	if s != stageLocate {
		return true
	}
	next := r.done[s]
	k := next % len(r.pieces)
	// Positions are compacted when nobody needs the old ones any more.
	return r.ready[k] && (!r.merge.full(r.pieces[k]) || r.done[stageTally] == next)
}

func (r *relay) do(s int, x *piece) {
	m := r.merge
	switch s {
	case stageLocate:
		if m.full(x) {
			m.compact()
		}
		m.locate(x, nil)
	case stageCount:
		m.count(x)
	case stageTally:
		m.tally(x)
	}
}
