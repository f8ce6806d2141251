package ahead

import "math/bits"

// close ends the log: which touches by the first accesses are reused, and what is not is open.
func (g *accessLog) close(first int) {
	for i, t := range g.touches {
		if int(t.at) < first {
			g.classified++
			g.next = append(g.next, 0)
		}
		if t.prev >= 0 && int(t.prev) < g.classified {
			g.next[t.prev] = int32(i) // the first one: each touch is before only one other
		}
	}
	for i, next := range g.next {
		if next == 0 {
			g.open = append(g.open, int32(i))
		}
	}
}

// choose is the use that may be watched: one of the open ones, or of all where none is.
func (g *accessLog) choose(pick func(n int) int) use {
	if len(g.open) > 0 {
		return g.useOf(int(g.open[pick(len(g.open))]), pick)
	}
	return g.reusedUse(pick(g.classified), 0, pick)
}

// openUses has the first use, which is open, stand for all that are, or for those of which known says the same of their block, and
// appends one for the others.
func (g *accessLog) openUses(uses []use, known func(block uint64) bool, pick func(n int) int) []use {
	alike, others := g.open, []int32(nil)
	if known != nil {
		is := known(uses[0].block)
		alike = nil
		for _, i := range g.open {
			if known(g.touches[i].block) == is {
				alike = append(alike, i)
			} else {
				others = append(others, i)
			}
		}
	}
	uses[0].share, uses[0].heads = float64(len(alike))/float64(g.classified), g.headsOf(alike)
	if len(others) > 0 {
		u := g.useOf(int(others[pick(len(others))]), pick)
		u.share, u.heads = float64(len(others))/float64(g.classified), g.headsOf(others)
		uses = append(uses, u)
	}
	for i := range uses {
		uses[i].distinct = g.distinct(uses[i].touch, len(g.touches))
	}
	return uses
}

// reusedUse is the use of a touch whose reuse is known, with so many blocks until then.
func (g *accessLog) reusedUse(touch, distinct int, pick func(n int) int) use {
	u := g.useOf(touch, pick)
	u.again, u.distinct = int(g.next[touch]), distinct
	u.reuse = int(g.touches[u.again].at)
	return u
}

// followed is what the log tells of a use; of an open one the blocks until the end are counted by Tell.
func (g *accessLog) followed(u *use) Followed {
	a := g.all[u.at]
	f := Followed{Use: Located{Addr: a.Addr, Size: int(a.Size), Store: a.Store, PC: a.PC}, Word: u.word, At: u.touch, Share: u.share, Distinct: u.distinct, Heads: u.heads}
	if u.reuse >= 0 {
		f.Reuse, f.ReusePC = u.again-u.touch, g.all[u.reuse].PC
		f.After = f.Reuse
	} else {
		f.After = len(g.touches) - 1 - u.touch
	}
	return f
}

// NearBlocks is how many blocks a reuse is from its use at most for them to be told of together: the smallest cache
// holds eight times as many lines.
const NearBlocks = 64

// distances are the octaves in which reuses are told of: up to NearBlocks, and each twice as many.
type distances [16]octave

func distanceOf(distinct int) int {
	return min(max(bits.Len(uint(distinct-1))-bits.Len(NearBlocks-1), 0), len(distances{})-1)
}

// byDistance appends a random one of the touches in each octave of stack distance, for all in it.
func (g *accessLog) byDistance(to []use, pick func(n int) int) []use {
	var octaves distances
	g.marks.reset(len(g.touches))
	for i, t := range g.touches {
		if t.prev >= 0 {
			prev := int(t.prev)
			if prev < g.classified {
				octave, distinct := 0, 0
				if i-prev > NearBlocks { // else it is near, whatever was touched between
					distinct = 1 + g.marks.after(prev)
					octave = distanceOf(distinct)
				}
				o := &octaves[octave]
				if g.sizes != nil {
					if o.heads == nil {
						o.heads = make([]uint16, len(g.sizes))
					}
					o.heads[HeadOf(g.sizes, prev)]++
				}
				if o.draw(pick) {
					if distinct == 0 {
						distinct = 1 + g.marks.after(prev)
					}
					o.touch, o.distinct = prev, distinct
				}
			}
			g.marks.clear(prev)
		}
		g.marks.set(i)
	}
	for _, o := range octaves {
		if o.n > 0 {
			u := g.reusedUse(o.touch, o.distinct, pick)
			u.share, u.heads = float64(o.n)/float64(g.classified), o.heads
			to = append(to, u)
		}
	}
	return to
}

// octave is the reuses of one octave of stack distance, of which one is told of.
type octave struct {
	n, next         int // so many; the number of the next one that takes the place of the one chosen
	touch, distinct int
	heads           []uint16
}

// draw counts one more and says whether it is chosen of all so far, each as likely as any. It is drawn when the next one will be, which
// comes after the m-th of them with the probability n/m (Li, Reservoir-sampling algorithms of time complexity O(n(1+log(N/n))),
// ACM Transactions on Mathematical Software 20, 1994).
func (o *octave) draw(pick func(n int) int) (chosen bool) {
	if o.n++; o.n < o.next {
		return false
	}
	const fine = 1 << 30
	o.next = int(float64(o.n)*fine/float64(1+pick(fine))) + 1
	return true
}

// marks are places that are marked, counted by stretches of them.
type marks struct {
	words  []uint64
	counts []int32 // of marks in so many words
	last   int     // word that any mark was set in
}

const markStretch = 64 // words

func (m *marks) reset(size int) {
	words := size/64 + 1
	m.words, m.counts, m.last = room(m.words, words)[:words], room(m.counts, words/markStretch+1)[:words/markStretch+1], 0
	clear(m.words)
	clear(m.counts)
}

// set marks a place that is not, the last one so far.
func (m *marks) set(place int) {
	m.last = place / 64
	m.words[m.last] |= 1 << (place % 64)
	m.counts[m.last/markStretch]++
}

// clear takes a mark away.
func (m *marks) clear(place int) {
	m.words[place/64] &^= 1 << (place % 64)
	m.counts[place/64/markStretch]--
}

// after is how many marks are behind a place.
func (m *marks) after(place int) int {
	at := place / 64
	n := bits.OnesCount64(m.words[at] >> (place % 64) >> 1)
	stretch := at/markStretch + 1
	for _, w := range m.words[at+1 : max(min(stretch*markStretch, m.last+1), at+1)] {
		n += bits.OnesCount64(w)
	}
	for ; stretch <= m.last/markStretch; stretch++ {
		n += int(m.counts[stretch])
	}
	return n
}
