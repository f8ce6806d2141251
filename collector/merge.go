package collector

import (
	"fmt"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// Threads of a program touch the same tables, constants and pointers to functions: what one
// brings between another's use and reuse is in part what that has touched itself, and some of its
// reuses come sooner by the other's. A watchpoint does not tell, for a trap takes a thousand times as long
// as such reuses, and a word that is touched all the time silences it. So what was read ahead of both threads, in holds of
// each in which both ran, is merged in an order in which neither waits for the other.
//
// That is wrong of data that they take turns at, under a lock: these are written by one at least.
// What either was seen to write is taken to be each one's own here, and left to watchpoints.

// besides are what was read ahead of threads that ran beside others.
type besides struct {
	kept    []*stream // the latest
	next    int       // of these, to give way
	held    *thread   // in the last hold, if others ran then; else nil
	spare   *stream
	pending []pendingMerge
	others  []*stream // for the threads beside the one that was held
	raw     []sampler.Touch
	numbers spaceNumbers

	seen map[place]uint8 // by whom, since the use

	merged, sooner, without int // observations
}

// keptStreams are those of some seconds. One has some thousand touches.
const keptStreams = 32

// pendingMerge is an observation of the hold at work, and where in its stream the use is.
type pendingMerge struct {
	o  *observation
	at int
}

// merged is a reuse that was read ahead, with the touches of others.
type merged struct {
	time     int  // touches of all from the use to the next, this one among them
	distinct int  // blocks from the use on, its own among them
	foreign  bool // that is another thread's
	// common is whether others touch the block, too, and none writes it: then this tells more of it than a watchpoint.
	common bool
}

// mergeBeside merges the observations of the last hold with others' touches, and keeps its thread's for theirs.
func (s *Session) mergeBeside() {
	b := &s.beside
	t := b.held
	if b.held = nil; t == nil || s.cfg.Stack == PrivateStack {
		return
	}
	own := b.spare
	if b.spare = nil; own == nil {
		own = &stream{}
	}
	if b.seen == nil {
		b.seen = make(map[place]uint8)
	}
	b.raw = s.locate.Touched(b.raw[:0])
	own.set(t, b.raw, uint64(s.block()), &b.numbers)
	company := b.company(own)
	for _, p := range b.pending {
		switch n := int(p.o.threads) - 1; { // others
		case p.o.soon == 0:
		case len(company) == 0:
			b.without++
		default:
			b.others = b.others[:0]
			for range n {
				b.others = append(b.others, company[s.rand.IntN(len(company))])
			}
			p.o.beside = s.merge(own, p.at, p.o.soon, b.others)
			b.merged++
			if p.o.beside.foreign {
				b.sooner++
			}
		}
	}
	b.pending = b.pending[:0]
	if len(own.touches) == 0 {
		b.spare = own
		return
	}
	if len(b.kept) < keptStreams {
		b.kept = append(b.kept, own)
		return
	}
	b.spare, b.kept[b.next] = b.kept[b.next], own
	b.next = (b.next + 1) % keptStreams
}

// company are the streams that may go with one.
func (b *besides) company(own *stream) []*stream {
	for _, sameProcess := range []bool{true, false} {
		var out []*stream
		for _, k := range b.kept {
			if k.goesWith(own, sameProcess) {
				out = append(out, k)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// By whom a place has been touched since the use.
const (
	byOwner = 1 << iota
	byOthers
)

// merge is what becomes of a use, touch number at of own, whose reuse comes after so many touches, among those of
// others, which are as fast and begin anywhere.
func (s *Session) merge(own *stream, at, reuse int, others []*stream) *merged {
	b := &s.beside
	clear(b.seen)
	next := make([]int, len(others))
	for i := range next {
		next[i] = s.rand.IntN(len(others[i].touches))
	}
	datum := own.touches[at].place
	m := &merged{distinct: 1, common: !written(datum, own, others) && touched(datum, others)}
	b.seen[datum] = byOwner
	see := func(p place, by uint8) {
		before := b.seen[p]
		if before&by == 0 {
			b.seen[p] = before | by
			if before == 0 || written(p, own, others) {
				m.distinct++
			}
		}
	}
	theirs := int(s.touchesBeside(float64(reuse * len(others))))
	for last := at + reuse; at < last; m.time++ {
		// The reuse comes after all others.
		if before := last - at - 1; theirs == 0 || s.rand.IntN(before+theirs) < before {
			if at++; at < last {
				see(own.touches[at].place, byOwner)
			}
			continue
		}
		theirs--
		i := s.rand.IntN(len(others))
		touches := others[i].touches
		p := touches[next[i]].place
		next[i] = (next[i] + 1) % len(touches)
		if p == datum && m.common {
			m.foreign = true
			m.time++
			return m
		}
		see(p, byOthers)
	}
	return m
}

// written says whether any of the streams writes the place.
func written(p place, own *stream, others []*stream) bool {
	return own.stores[p] || slices.ContainsFunc(others, func(o *stream) bool { return o.stores[p] })
}

// touched says whether any of the streams touches the place.
func touched(p place, by []*stream) bool {
	return slices.ContainsFunc(by, func(o *stream) bool {
		_, ok := o.stores[p]
		return ok
	})
}

// mergeComments say what was assumed.
func (s *Session) mergeComments(p *model.Profile) {
	b := &s.beside
	if n := b.merged + b.without; n > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("of %d reuses in a shared stack that were read ahead of a thread with others beside it %d were merged with what was read ahead of these, of which what none writes is taken to be the same: of %d another one's touch comes first; of the rest others' data are taken to be their own", n, b.merged, b.sooner))
	}
}
