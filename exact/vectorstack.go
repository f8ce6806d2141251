package exact

import "github.com/rdx-profiler/rdx/model"

// vectorStack is the top of an Olken's stack: the blocks touched last, whose ages are compared
// all at once. The order below has no bits for them: a block that is evicted gets
// there with the position of its last touch, which is after those of all that are
// there. Most touches of programs end here, for a tenth of what a look-up and a
// count cost.
//
// A block has a lane, which it keeps and by its hash is found, and an age, by which the distance of a touch is how
// many are younger. No touch waits for the one before it, but for its age. Lanes are given out
// until none is free; then the oldest blocks are evicted, many at a time.
type vectorStack struct {
	// By lane.
	ages [vectorBlocks]int8 // the youngest has the highest; freeAge if the lane is free
	keys [vectorBlocks]uint64
	pos  [vectorBlocks]uint64 // of the last touch; 0 if the lane is free
	// byHash is by the top bits of a block times vectorFactor where the block is that has them, of several the one touched last; vectorBlocks
	// if none is held.
	byHash [vectorHashes]uint8
	// The block that was last looked up for the lane, and where its position is kept in the index.
	known [vectorBlocks]recentSlot
	// order has the lanes: those of the held blocks in any order, then the free ones.
	order  [vectorBlocks]uint8
	sorted [vectorBlocks + 8]uint8 // room for eight more than are held, as sortVector writes them
	held   int                     // blocks
	index  *blockIndex             // of what is below
	age    int                     // of the next touch, and that of freeAge is 0
	next   uint64                  // position of the next touch; unused while none are held

	// Of the touches that were not found and not yet done: the block and its hash, the index of
	// the touch, the number of blocks then held, and the lane that it got.
	blocks [vectorChunk]uint64
	hashes [vectorChunk]uint64
	missed [vectorChunk]uint32
	above  [vectorChunk]uint8
	lanes  [vectorChunk]uint8
	misses int
	below  [batch]uint64 // distances of those that are being done
	// Blocks evicted and not yet below, the oldest first.
	evicted   [vectorChunk + vectorBlocks]evictedBlock
	evictions int

	trial
}

type evictedBlock struct {
	pos    uint64
	lane   uint8
	misses uint32 // before it was evicted
}

const (
	vectorBlocks = 64 // the assembly knows it
	vectorShift  = 52
	vectorHashes = 1 << (64 - vectorShift)
	vectorFactor = 0x9e3779b97f4a7c15
	vectorChunk  = 512
	vectorAges   = 256
	freeAge      = -128
	// vectorKeep is how many blocks stay when lanes are needed: the more, the more are found, and the more often they are sorted.
	vectorKeep = 32
	// vectorOctaves is how many bit lengths distances on top have.
	vectorOctaves = 7
)

func (t *vectorStack) clear() {
	*t = vectorStack{index: t.index}
	for i := range t.order {
		t.order[i], t.ages[i] = uint8(i), freeAge
	}
	for i := range t.byHash {
		t.byHash[i] = vectorBlocks
	}
	t.age = 1
}

// position is that of the next touch. Where nobody asks for times, only what is
// evicted from the top has one.
func (o *Olken) position() uint32 {
	if o.vectors == nil || o.vectors.held == 0 || o.order.untimed {
		return o.order.now
	}
	return uint32(o.vectors.next)
}

// touchVector is touch for the first of the runs, and returns their number.
func (o *Olken) touchVector(blocks []uint64, runs []uint8, dist, time []uint64) int {
	t := o.vectors
	if t.held == 0 {
		t.next = uint64(o.order.now)
	}
	n := min(len(blocks), vectorChunk, int(o.order.end-o.position())/maxRun)
	t.touch(blocks[:n], runs[:n], dist[:n], time[:n])
	found := n - t.misses
	o.touchBelow(dist, time)
	o.tried(n, found)
	return n
}

// touch does the runs, at most vectorChunk, as touchVector does.
func (t *vectorStack) touch(blocks []uint64, runs []uint8, dist, time []uint64) {
	for done := 0; ; t.makeRoom() {
		if done = touchVector(t, blocks, runs, dist, time, done); done == len(blocks) {
			break
		}
	}
}

// makeRoom makes the top ready for the touch at which touchVector ended.
func (t *vectorStack) makeRoom() {
	keep := t.held
	if keep == vectorBlocks {
		keep = vectorKeep
	}
	t.evict(keep)
}

// evict takes all out but the youngest.
func (t *vectorStack) evict(keep int) {
	if t.held == 0 {
		return
	}
	sortVector(t, keep)
	for i := t.held - 1; i >= keep; i-- {
		lane := t.sorted[i]
		// A younger one of the same hash stays there. No branch: whether there is one cannot be foretold.
		at := &t.byHash[t.keys[lane%vectorBlocks]*vectorFactor>>vectorShift]
		there := *at
		if there == lane {
			there = vectorBlocks
		}
		*at = there
		t.evicted[t.evictions] = evictedBlock{t.pos[lane%vectorBlocks], lane, uint32(t.misses)}
		t.pos[lane%vectorBlocks] = 0
		t.evictions++
	}
	copy(t.order[:t.held], t.sorted[:t.held])
	t.held, t.age = keep, keep+1
}

// tried notes that so many of n touches were found in the top.
func (o *Olken) tried(n, found int) {
	t := o.vectors
	t.tried += n
	t.found += found
	if t.useless() {
		o.settle()
		t.pause()
	}
}

// touchBelow does the touches that were not found, and puts what was evicted
// below the top.
func (o *Olken) touchBelow(dist, time []uint64) {
	t := o.vectors
	var slots [batch]*uint32
	entered := 0
	for at := 0; at < t.misses; {
		grown := o.index.grown
		end := min(at+batch, t.misses)
		n := o.index.findHashed(t.blocks[at:end], t.hashes[at:end], &slots)
		if o.index.grown != grown {
			o.index.lookUpAgain(&t.known)
		}
		readOrder(&o.order, &slots, n)
		for i := 0; i < n; {
			from := entered
			for entered < t.evictions && t.evicted[entered].misses <= uint32(at+i) {
				entered++
			}
			o.putBelow(t.evicted[from:entered])
			end := n
			if entered < t.evictions {
				end = min(n, int(t.evicted[entered].misses)-at)
			}
			o.takeBelow(slots[i:end], at+i, dist, time)
			i = end
		}
		at += n
	}
	o.putBelow(t.evicted[entered:t.evictions])
	t.misses, t.evictions = 0, 0
}

// lookUpAgain finds anew what was looked up before a shard grew.
func (x *blockIndex) lookUpAgain(known *[vectorBlocks]recentSlot) {
	for i := range known {
		if k := &known[i]; k.slot != nil {
			k.slot = x.lookup(k.block)
		}
	}
}

// takeBelow takes blocks out of the order below the top: those that were not found, from the
// one of index first on. Nothing is evicted between them.
func (o *Olken) takeBelow(slots []*uint32, first int, dist, time []uint64) {
	t, n := o.vectors, len(slots)
	blocks, lanes, missed, below := t.blocks[first:][:n], t.lanes[first:][:n], t.missed[first:][:n], t.below[:n]
	o.order.live += uint32(takeSlots(&o.order, slots, t.above[first:][:n], below))
	for i, k := range missed {
		t.known[lanes[i]%vectorBlocks] = recentSlot{blocks[i], slots[i]}
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

// putBelow enters blocks that were evicted into the order below the top.
func (o *Olken) putBelow(evicted []evictedBlock) {
	if o.order.untimed {
		for i := range evicted {
			*o.vectors.known[evicted[i].lane%vectorBlocks].slot = o.order.now + uint32(i)
		}
		o.order.putNext(uint32(len(evicted)))
		return
	}
	for i := range evicted {
		g := &evicted[i]
		o.order.put(uint32(g.pos))
		*o.vectors.known[g.lane%vectorBlocks].slot = uint32(g.pos)
	}
}

// settle empties the top, so that index and order have all blocks.
func (o *Olken) settle() {
	if o.vectors == nil {
		return
	}
	next := o.position()
	o.vectors.evict(0)
	o.touchBelow(nil, nil)
	if !o.order.untimed {
		o.order.extend(next-o.order.now, nil)
	}
}
