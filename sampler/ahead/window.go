package ahead

import (
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
	"github.com/rdx-profiler/rdx/sampler/unwind"
)

// Site is what one instruction did in a window that was read ahead, in one pattern. Its accesses are counted in the window's
// middle third, before and behind which there is as much to look at.
type Site struct {
	PC      uint64
	Store   bool
	Pattern Pattern
	Stride  int64  // of Strided
	Addr    uint64 // one of its accesses, at random, a fetch if there is any
	N       int    // accesses
	Fetches int    // of these, to a line not touched in a third of the window before
	Used    int    // bytes of these lines touched in the next third, added up
	Written int    // of these lines
}

// Pattern is how an instruction's accesses follow each other.
type Pattern uint8

const (
	Unknown  Pattern = iota // fewer than three of them
	Strided                 // a step from the one before that is one of the instruction's frequent ones
	Gathered                // address made of a value read in order
	Chased                  // address made of a value read out of order
	Random                  // none of these
)

// Seen is what a window that was read ahead shows of how memory is touched.
type Seen struct {
	Start        *unwind.Snapshot // where the thread was held
	Instructions int
	Accesses     int // in the window
	Counted      int // of these, in its middle third
	Sites        []Site
	// Held says what the thread was held at.
	Held Held
}

// Held is what an interrupt at a random moment found a thread at. A processor takes an interrupt when its oldest
// instruction is done: one that waits for memory is right behind the thread then.
type Held struct {
	// Known: the window comes by there again.
	Known bool
	// Waits: right behind it an access fetches a line. PC is its instruction, and Pattern, Stride and Addr as
	// of Site.
	Waits   bool
	PC      uint64
	Pattern Pattern
	Stride  int64
	Addr    uint64
	// Near is how many times as often as of a random instruction of the window that is so; 1 if not known.
	Near float64
	// Chases, Apart and Streams are how many lines are fetched an instruction: at addresses that the fetch before of the
	// same instructions has to come for, at others that no prefetcher foresees, and in strides that it follows.
	Chases, Apart, Streams float64
}

// sights are the buffers of Seen, used again and again.
type sights struct {
	instructions int // run in the last Read
	byPC         map[siteKey]int
	runs         []run
	of           []int32 // by access: index into runs
	before       []int32 // by access: the one before of its run, or -1
	after        []int32 // likewise, the next
	visit        []int32 // by touch: index into visits
	visits       []visit
	pushed       []bool // by touch: its line is in the first cache no more
	sites        map[patternKey]int
	origins      []origin // of one run
}

type siteKey struct {
	pc    uint64
	store bool
}

// run is all accesses of one instruction in a window.
type run struct {
	siteKey
	last    int32 // access
	n, kept int   // accesses, and those that keep a stride
	steps   model.Strides
	strides []model.Step // the frequent ones
	link    Pattern
	from    int32 // of Chased: the run that reads what its addresses are made of
}

// visit is a stay of a line: touches with no longer time between than a third of the window.
type visit struct {
	site    int // that it began with, -1 if not to be counted
	mask    uint64
	written bool
}

type patternKey struct {
	run     int32
	pattern Pattern
	stride  int64
}

// FirstCache has Seen know how many bytes it has.
func (l *Locator) FirstCache(bytes int64) { l.firstCache = bytes }

// Seen tells it of the last Read, when the thread runs on. Sites is valid until the next call.
func (l *Locator) Seen(pick func(n int) int) Seen {
	s := &l.sights
	seen := Seen{Start: l.startSnapshot(), Instructions: s.instructions, Accesses: len(l.log.all)}
	if len(l.log.all) == 0 {
		return seen
	}
	s.index(l.log.all)
	for i := range s.runs {
		if r := &s.runs[i]; r.n >= 3 && r.kept < r.n {
			r.link, r.from = l.linkOf(int32(i))
		}
	}
	third := len(l.log.all) / 3
	from, to := third, len(l.log.all)-third
	seen.Counted = to - from
	seen.Sites = l.tally(from, to, third, pick)
	l.lookBehind(&seen.Held, third, pick)
	return seen
}

// startSnapshot is the call stack where the thread was held.
func (l *Locator) startSnapshot() *unwind.Snapshot {
	regs, sp := unwindRegs(&l.started)
	return &unwind.Snapshot{Regs: regs, Stack: unwind.Stack{Base: sp, Data: slices.Clone(l.copyStack(sp))}}
}

// index sorts the accesses by instruction.
func (s *sights) index(all []interp.Access) {
	if s.byPC == nil {
		s.byPC, s.sites = make(map[siteKey]int), make(map[patternKey]int)
	}
	clear(s.byPC)
	s.runs, s.of, s.before, s.after = s.runs[:0], s.of[:0], s.before[:0], s.after[:0]
	for i := range all {
		k := siteKey{all[i].PC, all[i].Store}
		n, ok := s.byPC[k]
		if !ok {
			n = len(s.runs)
			s.byPC[k] = n
			s.runs = append(s.runs, run{siteKey: k, last: -1})
		}
		r := &s.runs[n]
		s.of, s.before, s.after = append(s.of, int32(n)), append(s.before, r.last), append(s.after, -1)
		if r.last >= 0 {
			s.after[r.last] = int32(i)
			r.steps.Add(int64(all[i].Addr-all[r.last].Addr), 1)
		}
		r.last = int32(i)
		r.n++
	}
	for i := range s.runs {
		s.runs[i].strides = s.runs[i].steps.Kept()
	}
	for i := range all {
		if _, ok := s.stride(all, int32(i)); ok {
			s.runs[s.of[i]].kept++
		}
	}
}

// stride is the step to an access, or of a run's first that from it, if it is one of its run's frequent ones.
func (s *sights) stride(all []interp.Access, i int32) (bytes int64, ok bool) {
	from, to := s.before[i], i
	if from < 0 {
		from, to = i, s.after[i]
	}
	if to < 0 {
		return 0, false
	}
	d := int64(all[to].Addr - all[from].Addr)
	for _, f := range s.runs[s.of[i]].strides {
		if f.Bytes == d {
			return d, true
		}
	}
	return 0, false
}

// pattern is an access's.
func (s *sights) pattern(all []interp.Access, i int32) (Pattern, int64) {
	if d, ok := s.stride(all, i); ok {
		return Strided, d
	}
	if r := &s.runs[s.of[i]]; r.n >= 3 {
		return r.link, 0
	}
	return Unknown, 0
}

// tally counts the accesses from one to another by instruction and pattern, and what is touched of the lines that they
// fetch.
func (l *Locator) tally(from, to, third int, pick func(n int) int) []Site {
	s, g := &l.sights, &l.log
	clear(s.sites)
	s.visit, s.visits = s.visit[:0], s.visits[:0]
	lines := g.block == sampler.LineSize
	var sites []Site
	for t := range g.touches {
		touch := &g.touches[t]
		a := &g.all[touch.at]
		v := int32(-1)
		if touch.prev >= 0 && int(touch.at-g.touches[touch.prev].at) < max(third, 1) {
			v = s.visit[touch.prev]
		}
		counted := int(touch.at) >= from && int(touch.at) < to
		first := int(g.first[touch.at]) == t // of the access's
		site := -1
		if counted {
			p, d := s.pattern(g.all, touch.at)
			k := patternKey{s.of[touch.at], p, d}
			n, ok := s.sites[k]
			if !ok {
				n = len(sites)
				s.sites[k] = n
				sites = append(sites, Site{PC: a.PC, Store: a.Store, Pattern: p, Stride: d, Addr: a.Addr})
			}
			site = n
			if first {
				sites[n].N++
			}
			if sites[n].Fetches == 0 && first && pick(sites[n].N) == 0 {
				sites[n].Addr = a.Addr
			}
		}
		if v < 0 {
			v = int32(len(s.visits))
			s.visits = append(s.visits, visit{site: -1})
			if counted && lines {
				s.visits[v].site = site
				if sites[site].Fetches++; pick(sites[site].Fetches) == 0 {
					sites[site].Addr = max(a.Addr, touch.block*g.block)
				}
			}
		}
		s.visit = append(s.visit, v)
		w := &s.visits[v]
		w.mask |= touchedBytes(a, touch.block*g.block)
		w.written = w.written || a.Store
	}
	for _, v := range s.visits {
		if v.site >= 0 {
			sites[v.site].Used += onesOf(v.mask)
			if v.written {
				sites[v.site].Written++
			}
		}
	}
	return sites
}

// heldBehind is how many instructions before an interrupted one may have ended with the one that was waited for:
// as many as are retired at once.
const heldBehind = 3

// prefetched strides, in bytes, are followed by prefetchers: they stop at a page's end.
const prefetched = 2048

// fetchKind says what becomes of a fetch.
type fetchKind uint8

const (
	noFetch    fetchKind = iota
	streamed             // in a stride that prefetchers follow
	byItself             // may be on the way together with others
	inSequence           // can't begin before the one before it has come
	fetchKinds
)

// fetchWeight is about how long the thread stands at a fetch of a kind, against others: a line comes from memory in
// 100 ns, in a tenth of that where ten are on the way, and in a twentieth or thirtieth where lines come in order.
var fetchWeight = [fetchKinds]float64{streamed: 0.04, byItself: 0.1, inSequence: 1}

// kindOf says whether an access fetches a line, and how.
func (l *Locator) kindOf(i int32, third int) (k fetchKind, p Pattern, stride int64) {
	first := l.log.first[i]
	t := &l.log.touches[first]
	if t.prev >= 0 && int(i-l.log.touches[t.prev].at) < third && !l.sights.pushed[first] {
		return noFetch, Unknown, 0
	}
	p, stride = l.sights.pattern(l.log.all, i)
	switch {
	case p == Strided && stride < prefetched && stride > -prefetched:
		return streamed, p, stride
	case p == Chased && l.sights.cyclic(l.sights.of[i]):
		return inSequence, p, stride
	}
	return byItself, p, stride
}

// cyclic says whether a run's addresses are made, at last, of what it or one that it goes back to has read itself, as in
// p = p->next.
func (s *sights) cyclic(n int32) bool {
	const steps = 4
	at := n
	for range steps {
		r := &s.runs[at]
		if r.link != Chased {
			return false
		}
		if r.from == at {
			return true
		}
		if at = r.from; at == n {
			return true
		}
	}
	return false
}

// findPushed finds the touches since whose line's last one as many lines have been touched as the first cache has: no longer is it
// there, however few accesses that took.
func (l *Locator) findPushed() {
	s, g := &l.sights, &l.log
	s.pushed = room(s.pushed, len(g.touches))[:len(g.touches)]
	clear(s.pushed)
	lines := int(l.firstCache / int64(g.block))
	if lines == 0 {
		return
	}
	g.marks.reset(len(g.touches))
	for i, t := range g.touches {
		if prev := int(t.prev); prev >= 0 {
			s.pushed[i] = i-prev > lines && g.marks.after(prev) >= lines
			g.marks.clear(prev)
		}
		g.marks.set(i)
	}
}

// lookBehind says what the thread was held at: where the window comes by there again it does the same, mostly.
func (l *Locator) lookBehind(h *Held, third int, pick func(n int) int) {
	l.findPushed()
	s, all := &l.sights, l.log.all
	first, last := int32(third), int32(len(all)-third)
	h.Near = 1
	var fetched [fetchKinds]float64
	weight := 0.0
	for i := first; i < last; i++ {
		k, _, _ := l.kindOf(i, third)
		fetched[k]++
		weight += fetchWeight[k]
	}
	n := float64(all[last-1].Inst - all[first].Inst)
	if !(n > 0) {
		return
	}
	h.Streams, h.Apart, h.Chases = fetched[streamed]/n, fetched[byItself]/n, fetched[inSequence]/n
	ahead := all[0].Inst // instructions from where it was held
	visits, found, near := 0, 0, 0.0
	walker := l.walkerBehind(third)
	for i := s.after[0]; i >= 0; i = s.after[i] {
		if int(i) < third || !walker.like(l, i, all[i].Inst-ahead) {
			continue
		}
		visits++
		if w := l.behind(h, i, all[i].Inst-ahead, third, func() bool { found++; return pick(found) == 0 }); w > 0 {
			near += w
		}
	}
	h.Known = visits > 0
	h.Waits = visits > 0 && pick(visits) < found
	if visits > 0 && weight > 0 {
		h.Near = near / float64(visits) / (heldBehind * weight / n)
	}
}

// walker is a run right behind the place where the thread was held that goes in order through lines. At one in several
// visits it comes to a new line. Which of these the hold was is known, as its address is a step before its next.
type walker struct {
	run  int32 // -1: there is none
	step int64
	new  bool // the hold was one that came to a new line
}

// walkerBehind finds it at the first visit that counts.
func (l *Locator) walkerBehind(third int) walker {
	s, all := &l.sights, l.log.all
	i := s.after[0]
	for i >= 0 && int(i) < third {
		i = s.after[i]
	}
	if i < 0 {
		return walker{run: -1}
	}
	at := all[i].Inst - all[0].Inst
	for k := i - 1; k >= 0 && at-all[k].Inst <= heldBehind; k-- {
		d, ok := s.stride(all, k)
		n := s.of[k]
		if at-all[k].Inst < 1 || !ok || d == 0 || d <= -sampler.LineSize || d >= sampler.LineSize || 4*s.runs[n].kept < 3*s.runs[n].n {
			continue
		}
		first := k
		for s.before[first] >= 0 {
			first = s.before[first]
		}
		w := walker{run: n, step: d}
		w.new = w.newLine(all[first].Addr - uint64(d))
		return w
	}
	return walker{run: -1}
}

// newLine says whether an address is in another line than that a step before.
func (w *walker) newLine(addr uint64) bool {
	return addr/sampler.LineSize != (addr-uint64(w.step))/sampler.LineSize
}

// like says whether a visit of the instruction at, before access i, is one as the hold was.
func (w *walker) like(l *Locator, i, at int32) bool {
	if w.run < 0 {
		return true
	}
	all := l.log.all
	for k := i - 1; k >= 0 && at-all[k].Inst <= heldBehind; k-- {
		if l.sights.of[k] == w.run {
			return w.newLine(all[k].Addr) == w.new
		}
	}
	return true
}

// behind is the weight of the fetches right behind the instruction at, before access i, and puts the heaviest into h
// if it is to be taken.
func (l *Locator) behind(h *Held, i, at int32, third int, take func() bool) (weight float64) {
	all := l.log.all
	heaviest := 0.0
	var of Held
	for k := i - 1; k >= 0; k-- {
		since := at - all[k].Inst
		if since > heldBehind {
			break
		}
		kind, p, d := l.kindOf(k, third)
		if w := fetchWeight[kind]; since >= 1 && w > 0 {
			if weight += w; w > heaviest {
				heaviest = w
				of = Held{PC: all[k].PC, Pattern: p, Stride: d, Addr: all[k].Addr}
			}
		}
	}
	if heaviest > 0 && take() {
		h.PC, h.Pattern, h.Stride, h.Addr = of.PC, of.Pattern, of.Stride, of.Addr
	}
	return weight
}
