package ahead

// openTouches are the touches by the first accesses that have not been reused so far: as long as there are any, reading goes on, and one of
// those that there are at the end is watched. Of each block that is the last touch at most. Most of what is read on are
// touches of blocks that were touched again long ago: a count by hash tells that without a look into the table.
type openTouches struct {
	begun bool
	upTo  int // access up to which they are not reused
	n     int
	all   []openTouch // by their accesses, the last first; reused ones among them
	of    lastTouches // by block: index into all
	near  [1 << nearBits]uint8
}

// nearBits are of a block's hash: so that the counts stay in the first cache.
const nearBits = 14

type openTouch struct {
	block uint64
	at    int32 // index of the access, -1: it was reused
}

func (o *openTouches) reset() { o.begun = false }

// reserve makes room for as many as so many accesses may have.
func (o *openTouches) reserve(first int) {
	o.all = room(o.all, first+first/4)
	o.of.reserve(first + first/4)
}

// begin takes the touches by the first accesses.
func (o *openTouches) begin(g *accessLog, first int) {
	first = min(first, len(g.all))
	o.begun, o.upTo, o.all = true, first, o.all[:0]
	o.of.reset()
	clear(o.near[:])
	for i := first - 1; i >= 0; i-- {
		from, to := g.blocks(g.all[i])
		for b := from; b <= to; b++ {
			if o.of.at(b) >= 0 {
				continue
			}
			o.of.swap(b, len(o.all))
			o.all = append(o.all, openTouch{b, int32(i)})
			if n := o.count(b); *n < ^uint8(0) {
				*n++
			}
		}
	}
	o.n = len(o.all)
}

// count is how many open blocks have the block's hash, or more than can be counted, which stay as many.
func (o *openTouches) count(block uint64) *uint8 {
	return &o.near[hashOf(block)>>(64-nearBits)]
}

// any says whether one of them has not been reused as far as the log goes.
func (o *openTouches) any(g *accessLog) bool {
	for ; o.upTo < len(g.all) && o.n > 0; o.upTo++ {
		from, to := g.blocks(g.all[o.upTo])
		for b := from; b <= to; b++ {
			if n := o.count(b); *n > 0 {
				o.reuse(b, n)
			}
		}
	}
	return o.n > 0
}

// reuse notes a touch of a block, one of so many that have its hash.
func (o *openTouches) reuse(block uint64, count *uint8) {
	i := o.of.at(block)
	if i < 0 || o.all[i].at < 0 {
		return
	}
	o.all[i].at = -1
	o.n--
	if *count < ^uint8(0) {
		*count--
	}
}

// choose is one of them, each as likely.
func (o *openTouches) choose(pick func(n int) int) openTouch {
	k := pick(o.n)
	for _, t := range o.all {
		if t.at < 0 {
			continue
		}
		if k == 0 {
			return t
		}
		k--
	}
	panic("fewer open touches than were counted")
}

// use is that of the touch, whose index is still to be told, by a word of its block.
func (t openTouch) use(g *accessLog, pick func(n int) int) use {
	return use{at: int(t.at), touch: -1, word: g.wordOf(&g.all[t.at], t.block, pick), block: t.block, reuse: -1}
}
