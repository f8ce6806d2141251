package model

import "sync"

// relay takes pieces that are merged touch by touch through their stages. Every
// stage takes one piece after the other, in their order, and stages of different
// pieces run side by side. Nobody owns a stage: the goroutine that adds touches and
// jobs-1 others do what is ready, see next, so that none waits while there is
// work, wherever most of it is, and there are not more of them than processors.
// What adds touches also fills pieces, and does so before all else.
type relay struct {
	merge *merger

	mu     sync.Mutex
	change sync.Cond
	pieces []*piece // the i-th of the stream is pieces[i%len]
	handed int      // filled pieces
	done   [relayStages]int
	busy   [relayStages]bool
	idle   int // who wait for a change
	ended  bool
}

// The stages, in the order in which a piece goes through them.
const (
	stageFront = iota
	stageLocate
	stageCount
	stageTally
	relayStages
)

func newRelay(merge *merger, pieces []*piece, jobs int) *relay {
	r := &relay{merge: merge, pieces: pieces}
	r.change.L = &r.mu
	for range jobs - 1 {
		go r.help()
	}
	return r
}

// take returns a piece to be filled.
func (r *relay) take() *piece {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.handed-r.done[stageTally] == len(r.pieces) {
		r.step()
	}
	return r.pieces[r.handed%len(r.pieces)]
}

// hand passes the piece on that take returned last.
func (r *relay) hand() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handed++
	r.wake()
}

// finish returns when all pieces have been merged.
func (r *relay) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.wake()
	for r.done[stageTally] < r.handed {
		r.step()
	}
	r.wake()
}

// help does what is ready until there is no more.
func (r *relay) help() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ended || r.done[stageTally] < r.handed {
		r.step()
	}
}

func (r *relay) wake() {
	if r.idle > 0 {
		r.change.Broadcast()
	}
}

// step does a stage of a piece, or waits for a change if none is ready. The mutex
// is held before and after it.
func (r *relay) step() {
	s := r.next()
	if s < 0 {
		r.idle++
		r.change.Wait()
		r.idle--
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
	for s := range relayStages {
		if n := r.waiting(s); n >= most && r.ready(s) {
			next, most = s, n
		}
	}
	return next
}

// waiting is how many pieces have been through the stages before, and not through this one.
func (r *relay) waiting(s int) int {
	if s == 0 {
		return r.handed - r.done[0]
	}
	return r.done[s-1] - r.done[s]
}

// ready is whether the next piece of a stage can be done.
func (r *relay) ready(s int) bool {
	if r.busy[s] || r.waiting(s) == 0 {
		return false
	}
	next := r.done[s]
	// Positions are compacted when nobody needs the old ones any more.
	return s != stageLocate || !r.merge.full(r.pieces[next%len(r.pieces)]) || r.done[stageTally] == next
}

func (r *relay) do(s int, x *piece) {
	m := r.merge
	switch s {
	case stageFront:
		m.front.touch(x)
	case stageLocate:
		if m.full(x) {
			m.compact(x)
		}
		m.locate(x, nil)
	case stageCount:
		m.count(x)
	case stageTally:
		m.tally(x)
	}
}
