package main

import (
	"math/rand/v2"

	"github.com/rdx-profiler/rdx/model"
)

// evenly gives the accesses of a recording, in which threads have long turns, in an
// order in which they run at once: within each stretch of window accesses, every
// thread's are spread evenly. Of two threads that compute, the engine's turns have some
// million accesses, so that a stretch has several of each. Where one thread waits for another the order is wrong by
// as much as a stretch. Its own order each thread keeps.
type evenly struct {
	window int
	mixed  *rand.Rand            // instead of evenly, in a random order, of which all are as likely; nil: evenly
	next   func() []model.Access // nil at the end
	rest   []model.Access
	out    []model.Access
}

func (e *evenly) batch() []model.Access {
	threads := map[int32][]model.Access{}
	var order []int32
	for n := 0; n < e.window; {
		if len(e.rest) == 0 {
			if e.rest = e.next(); e.rest == nil {
				break
			}
		}
		take := e.rest[:min(len(e.rest), e.window-n)]
		e.rest = e.rest[len(take):]
		n += len(take)
		for _, a := range take {
			if threads[a.Thread] == nil {
				order = append(order, a.Thread)
			}
			threads[a.Thread] = append(threads[a.Thread], a)
		}
	}
	e.out = e.out[:0]
	done := make([]int, len(order))
	for {
		next := e.draw
		if e.mixed == nil {
			next = e.due
		}
		i := next(threads, order, done)
		if i < 0 {
			return e.out
		}
		e.out = append(e.out, threads[order[i]][done[i]])
		done[i]++
	}
}

// due is the thread whose next access is due first, -1 if none is left.
func (e *evenly) due(threads map[int32][]model.Access, order []int32, done []int) int {
	best, due := -1, 2.0
	for i, t := range order {
		if all := len(threads[t]); done[i] < all {
			if at := (float64(done[i]) + 0.5) / float64(all); at < due {
				best, due = i, at
			}
		}
	}
	return best
}

// draw is the thread of an access drawn from all that are left, -1 if none is.
func (e *evenly) draw(threads map[int32][]model.Access, order []int32, done []int) int {
	left := 0
	for i, t := range order {
		left += len(threads[t]) - done[i]
	}
	if left == 0 {
		return -1
	}
	n := e.mixed.IntN(left)
	for i, t := range order {
		if n -= len(threads[t]) - done[i]; n < 0 {
			return i
		}
	}
	panic("fewer accesses than were counted")
}
