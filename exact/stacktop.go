package exact

import "github.com/rdx-profiler/rdx/model"

// stackTop is the top of an Olken's stack: the blocks touched last, whose ages are compared
// all at once. The order below has no bits for them: a block that is given back gets
// there with the position of its last touch, which is after those of all that are
// there. Most touches of programs end here, for a tenth of what a look-up and a
// count cost.
//
// A block has a place, which it keeps and by its hash is found, and an age, by which the distance of a touch is how
// many are younger. No touch waits for the one before it, but for its age. Places are given out
// until none is free; then the oldest blocks are given back, many at a time.
type stackTop struct {
	// By place.
	ages [topBlocks]int8 // the youngest has the highest; freeAge if the place is free
	keys [topBlocks]uint64
	pos  [topBlocks]uint64 // of the last touch; 0 if the place is free
	// byHash is by the top bits of a block times topFactor where the block is that has them, of several the one touched last; topBlocks
	// if none is held.
	byHash [topHashes]uint8
	// The block that was last looked up for the place, and where its position is kept in the index.
	known [topBlocks]recentSlot
	// order has the places: those of the held blocks in any order, then the free ones.
	order  [topBlocks]uint8
	sorted [topBlocks + 8]uint8 // room for eight more than are held, as sortTop writes them
	held   int                  // blocks
	index  *blockIndex          // of what is below
	age    int                  // of the next touch, and that of freeAge is 0
	next   uint64               // position of the next touch; unused while none are held

	// Of the touches that were not found and not yet done: the block and its hash, the index of
	// the touch, the number of blocks then held, and the place that it got.
	blocks [topChunk]uint64
	hashes [topChunk]uint64
	missed [topChunk]uint32
	above  [topChunk]uint8
	places [topChunk]uint8
	misses int
	below  [batch]uint64 // distances of those that are being done
	// Blocks given back and not yet below, the oldest first.
	given [topChunk + topBlocks]givenBlock
	gives int

	trial
}

type givenBlock struct {
	pos    uint64
	place  uint8
	misses uint32 // before it was given back
}

const (
	topBlocks = 64 // the assembly knows it
	topShift  = 52
	topHashes = 1 << (64 - topShift)
	topFactor = 0x9e3779b97f4a7c15
	topChunk  = 512
	topAges   = 256
	freeAge   = -128
	// topKeep is how many blocks stay when places are needed: the more, the more are found, and the more often they are sorted.
	topKeep = 32
	// topOctaves is how many bit lengths distances on top have.
	topOctaves = 7
)

func (t *stackTop) clear() {
	*t = stackTop{index: t.index}
	for i := range t.order {
		t.order[i], t.ages[i] = uint8(i), freeAge
	}
	for i := range t.byHash {
		t.byHash[i] = topBlocks
	}
	t.age = 1
}

// position is that of the next touch. Where nobody asks for times, only what is
// given back from the top has one.
func (o *Olken) position() uint32 {
	if o.top == nil || o.top.held == 0 || o.order.untimed {
		return o.order.now
	}
	return uint32(o.top.next)
}

// touchTop is touch for the first of the runs, and returns their number.
func (o *Olken) touchTop(blocks []uint64, runs []uint8, dist, time []uint64) int {
	t := o.top
	if t.held == 0 {
		t.next = uint64(o.order.now)
	}
	n := min(len(blocks), topChunk, int(o.order.end-o.position())/maxRun)
	t.touch(blocks[:n], runs[:n], dist[:n], time[:n])
	found := n - t.misses
	o.touchBelow(dist, time)
	o.tried(n, found)
	return n
}

// touch does the runs, at most topChunk, as touchTop does.
func (t *stackTop) touch(blocks []uint64, runs []uint8, dist, time []uint64) {
	for done := 0; ; t.makeRoom() {
		if done = touchTop(t, blocks, runs, dist, time, done); done == len(blocks) {
			break
		}
	}
}

// makeRoom makes the top ready for the touch at which touchTop ended.
func (t *stackTop) makeRoom() {
	keep := t.held
	if keep == topBlocks {
		keep = topKeep
	}
	t.giveBack(keep)
}

// giveBack gives all back but the youngest.
func (t *stackTop) giveBack(keep int) {
	if t.held == 0 {
		return
	}
	sortTop(t, keep)
	for i := t.held - 1; i >= keep; i-- {
		place := t.sorted[i]
		// A younger one of the same hash stays there. No branch: whether there is one cannot be foretold.
		at := &t.byHash[t.keys[place%topBlocks]*topFactor>>topShift]
		there := *at
		if there == place {
			there = topBlocks
		}
		*at = there
		t.given[t.gives] = givenBlock{t.pos[place%topBlocks], place, uint32(t.misses)}
		t.pos[place%topBlocks] = 0
		t.gives++
	}
	copy(t.order[:t.held], t.sorted[:t.held])
	t.held, t.age = keep, keep+1
}

// tried notes that so many of n touches were found in the top.
func (o *Olken) tried(n, found int) {
	t := o.top
	t.tried += n
	t.found += found
	if t.useless() {
		o.settle()
		t.pause()
	}
}

// touchBelow does the touches that were not found, and puts what was given back
// below the top.
func (o *Olken) touchBelow(dist, time []uint64) {
	t := o.top
	var slots [batch]*uint32
	gives := 0
	for at := 0; at < t.misses; {
		grown := o.index.grown
		end := min(at+batch, t.misses)
		n := o.index.findHashed(t.blocks[at:end], t.hashes[at:end], &slots)
		if o.index.grown != grown {
			o.index.lookUpAgain(&t.known)
		}
		readOrder(&o.order, &slots, n)
		for i := 0; i < n; {
			from := gives
			for gives < t.gives && t.given[gives].misses <= uint32(at+i) {
				gives++
			}
			o.putBelow(t.given[from:gives])
			end := n
			if gives < t.gives {
				end = min(n, int(t.given[gives].misses)-at)
			}
			o.takeBelow(slots[i:end], at+i, dist, time)
			i = end
		}
		at += n
	}
	o.putBelow(t.given[gives:t.gives])
	t.misses, t.gives = 0, 0
}

// lookUpAgain finds anew what was looked up before a shard grew.
func (x *blockIndex) lookUpAgain(known *[topBlocks]recentSlot) {
	for i := range known {
		if k := &known[i]; k.slot != nil {
			k.slot = x.lookup(k.block)
		}
	}
}

// takeBelow takes blocks out of the order below the top: those that were not found, from the
// one of index first on. Nothing is given back between them.
func (o *Olken) takeBelow(slots []*uint32, first int, dist, time []uint64) {
	t, n := o.top, len(slots)
	blocks, places, missed, below := t.blocks[first:][:n], t.places[first:][:n], t.missed[first:][:n], t.below[:n]
	o.order.live += uint32(takeSlots(&o.order, slots, t.above[first:][:n], below))
	for i, k := range missed {
		t.known[places[i]%topBlocks] = recentSlot{blocks[i], slots[i]}
		dist[k] = below[i]
	}
	if o.order.untimed {
		return
	}
	for i, k := range missed {
		if p := *slots[i]; p == coldPos {
			time[k] = model.Infinite
		} else {
			time[k] = o.order.sinceAt(p, uint32(time[k]))
			o.order.noteUse(p)
		}
	}
}

// putBelow enters blocks that were given back into the order below the top.
func (o *Olken) putBelow(given []givenBlock) {
	if o.order.untimed {
		for i := range given {
			*o.top.known[given[i].place%topBlocks].slot = o.order.now + uint32(i)
		}
		o.order.putNext(uint32(len(given)))
		return
	}
	for i := range given {
		g := &given[i]
		o.order.put(uint32(g.pos))
		*o.top.known[g.place%topBlocks].slot = uint32(g.pos)
	}
}

// settle empties the top, so that index and order have all blocks.
func (o *Olken) settle() {
	if o.top == nil {
		return
	}
	next := o.position()
	o.top.giveBack(0)
	o.touchBelow(nil, nil)
	if !o.order.untimed {
		o.order.extend(next-o.order.now, nil)
	}
}
