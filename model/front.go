package model

// front is the top of an Olken's stack as it is: the blocks touched last, in
// their order, which are compared all at once. The order below has no bits for
// them: a block that is displaced gets there with the position of its last
// touch, which is after those of all that are there. Most touches of programs
// end here, for a fifth of what a look-up and a count cost.
type front struct {
	blocks [frontBlocks]uint64 // the last touched first
	pos    [frontBlocks]uint64 // of their last touches
	next   uint64              // position of the next touch; unused while none are held

	// Of the touches that touchFront did not find: the block that was displaced, the
	// position of its last touch, and the index of the touch.
	out    [frontChunk]uint64
	outPos [frontChunk]uint64
	missed [frontChunk]uint32
	misses int

	held int // blocks

	// Of tried touches, found were in the front. Where those are few, it pauses
	// for off touches.
	tried, found, off int
	pauses            int
}

// front_amd64.s knows these and the front's layout.
const (
	frontBlocks = 16
	frontChunk  = 256
)

const (
	frontTrial = 1 << 12 // touches after which it is seen how many were found
	frontLeast = 4       // one in so many makes it worth while
	frontPause = 16 * frontTrial
)

func (f *front) clear() { f.held, f.tried, f.found, f.off = 0, 0, 0, 0 }

// useless is whether too few touches are found.
func (f *front) useless() bool {
	if f.tried < frontTrial {
		return false
	}
	few := f.found < f.tried/frontLeast
	f.tried, f.found = 0, 0
	return few
}

func (f *front) pause() {
	f.off = frontPause
	f.pauses++
}

// position is that of the next touch. Where nobody asks for times, only what is
// displaced from the front has one.
func (o *Olken) position() uint32 {
	if o.front == nil || o.front.held == 0 || o.order.untimed {
		return o.order.now
	}
	return uint32(o.front.next)
}

// touchTop is touch for the first of the runs, and returns their number.
func (o *Olken) touchTop(blocks []uint64, runs []uint8, dist, time []uint64) int {
	f := o.front
	if f.held < frontBlocks {
		dist[0], time[0] = o.fill(blocks[0], runs[0])
		return 1
	}
	n := min(len(blocks), frontChunk, int(o.order.end-o.position())/maxRun)
	touchFront(f, blocks[:n], runs[:n], dist[:n], time[:n])
	o.touchMissed(blocks[:n], dist[:n], time[:n])
	o.tried(n)
	return n
}

// tried notes that n touches were looked for in the front.
func (o *Olken) tried(n int) {
	f := o.front
	f.tried += n
	f.found += n - f.misses
	if f.useless() {
		o.settle()
		f.pause()
	}
}

// fill is a touch while the front has room.
func (o *Olken) fill(b uint64, run uint8) (dist, time uint64) {
	f := o.front
	if f.held == 0 {
		f.next = uint64(o.order.now)
	}
	above, time, found := f.find(b, run)
	if found {
		return uint64(above), time
	}
	return o.takeBelow(*o.index.slot(b), time, uint64(above))
}

// find is touchFront for one run while there is room, into which it puts a block
// that is not there. above is then the number of blocks there were.
func (f *front) find(b uint64, run uint8) (above int, time uint64, found bool) {
	i := 0
	for i < f.held && f.blocks[i] != b {
		i++
	}
	found = i < f.held
	time = f.next
	if found {
		time -= f.pos[i]
	} else {
		f.held++
	}
	copy(f.blocks[1:i+1], f.blocks[:i])
	copy(f.pos[1:i+1], f.pos[:i])
	last := f.next + uint64(run>>1)
	f.blocks[0], f.pos[0] = b, last
	f.next = last + 1
	return i, time, found
}

// touchMissed does the touches that touchFront did not find.
func (o *Olken) touchMissed(blocks, dist, time []uint64) {
	f := o.front
	var missed [batch]uint64
	var slots, outs [batch]*uint32
	for at := 0; at < f.misses; {
		n := min(f.misses-at, batch)
		for i, k := range f.missed[at : at+n] {
			missed[i%batch] = blocks[k]
		}
		n = o.index.find(missed[:n], &slots)
		o.order.readAhead(slots[:n])
		o.index.known(f.out[at:at+n], &outs)
		for i, k := range f.missed[at : at+n] {
			dist[k], time[k] = o.takeBelow(*slots[i%batch], time[k], frontBlocks)
			*outs[i%batch] = o.putBelow(f.outPos[at+i])
		}
		at += n
	}
}

// takeBelow takes the block of position p out of the order below the front, to be
// touched at position now, and returns its distance, which is so many more, and
// its time.
func (o *Olken) takeBelow(p uint32, now, above uint64) (dist, time uint64) {
	if p == coldPos {
		o.order.live++
		return Infinite, Infinite
	}
	if !o.order.untimed {
		time = o.order.sinceAt(p, uint32(now))
	}
	return above + uint64(o.order.take(p)), time
}

// putBelow enters a block touched last at pos below the front, and returns its
// position there.
func (o *Olken) putBelow(pos uint64) uint32 {
	p := uint32(pos)
	if o.order.untimed {
		p = o.order.now
	}
	o.order.put(p)
	return p
}

// settle empties the front, so that index and order have all blocks.
func (o *Olken) settle() {
	f := o.front
	if f == nil {
		return
	}
	next := o.position()
	for i := f.held - 1; i >= 0; i-- {
		*o.index.slot(f.blocks[i]) = o.putBelow(f.pos[i])
	}
	if !o.order.untimed {
		o.order.extend(next-o.order.now, nil)
	}
	f.held = 0
}
