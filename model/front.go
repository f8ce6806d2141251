package model

// front is the top of the stack of pieces as it is: the blocks touched last, in
// their order, which are compared all at once; see also stackTop. The order below has
// no bits for them: a block that is displaced gets there with the position of its last
// touch, which is after those of all that are there.
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

	trial
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

// trial tells whether it is worth while to keep the top of a stack: of tried touches, found
// were in it. Where those are few, it pauses for off touches.
type trial struct {
	tried, found, off int
	pauses            int
}

// useless is whether too few touches are found.
func (t *trial) useless() bool {
	if t.tried < frontTrial {
		return false
	}
	few := t.found < t.tried/frontLeast
	t.tried, t.found = 0, 0
	return few
}

func (t *trial) pause() {
	t.off = frontPause
	t.pauses++
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
