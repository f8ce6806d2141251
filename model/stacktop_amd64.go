package model

// touchTop touches runs, see Touches, up to the first for which t is not ready: where its
// block is not there and no place is free, where another one of the same tag is there (with AVX-512), or where there
// are no more ages. It returns how many. It sets dist and time of those found. For the others it sets time to
// the position of the touch, and what t says of them. All must be as long as blocks, at most topChunk.
func touchTop(t *stackTop, blocks []uint64, runs []uint8, dist, time []uint64, from int) int {
	if haveAVX512 {
		return touchTop512(t, blocks, runs, dist, time, from)
	}
	return touchTop256(t, blocks, runs, dist, time, from)
}

// countTop is touchTop of blocks of which only distances are counted: those found to
// found. Positions stay as they are.
func countTop(t *stackTop, blocks []uint64, found *[topBlocks]uint64, from int) int {
	if haveAVX512 {
		return countTop512(t, blocks, found, from)
	}
	return countTop256(t, blocks, found, from)
}

// sortTop sets sorted to the places held, the youngest's first, and the ages of the youngest keep to keep and down,
// those of the others to 0.
func sortTop(t *stackTop, keep int) {
	if haveAVX512 {
		sortTop512(t, keep)
	} else {
		sortTop256(t, keep)
	}
}

// findNear sets the slots of those blocks that are in the bucket they belong to, and left to the indexes of
// the others; it returns how many. It writes no pointers but to slots.
func findNear(x *blockIndex, blocks, hashes []uint64, slots *[batch]*uint32, left *[batch]uint32) int {
	if haveAVX512 {
		return findNear512(x, blocks, hashes, slots, left)
	}
	return findNear256(x, blocks, hashes, slots, left)
}

// readBuckets has read the buckets that the hashes belong to.
//
//go:noescape
func readBuckets(x *blockIndex, hashes []uint64)

// readOrder has read what touches of the positions in the first n slots will need; any
// may be wrong.
//
//go:noescape
func readOrder(o *timedOrder, slots *[batch]*uint32, n int)

// takeSlots takes the positions that the slots hold out of the order, one after the other, and sets dist to how many live ones
// were above each, and so many more as above says. For coldPos it sets Infinite; it returns how many those are. None may
// be there twice. Slots, above and dist are of one length.
func takeSlots(o *timedOrder, slots []*uint32, above []uint8, dist []uint64) (cold int) {
	if haveAVX512 {
		return takeSlots512(o, slots, above, dist)
	}
	return takeSlots256(o, slots, above, dist)
}

// removeRun is runTree.remove.
func removeRun(t *runTree, run uint32) uint32 {
	if haveAVX512 {
		return removeRun512(t, run)
	}
	return removeRun256(t, run)
}

// The same in two instruction sets each; see stacktop_amd64.h.

//go:noescape
func touchTop512(t *stackTop, blocks []uint64, runs []uint8, dist, time []uint64, from int) int

//go:noescape
func touchTop256(t *stackTop, blocks []uint64, runs []uint8, dist, time []uint64, from int) int

//go:noescape
func countTop512(t *stackTop, blocks []uint64, found *[topBlocks]uint64, from int) int

//go:noescape
func countTop256(t *stackTop, blocks []uint64, found *[topBlocks]uint64, from int) int

//go:noescape
func sortTop512(t *stackTop, keep int)

//go:noescape
func sortTop256(t *stackTop, keep int)

//go:noescape
func findNear512(x *blockIndex, blocks, hashes []uint64, slots *[batch]*uint32, left *[batch]uint32) int

//go:noescape
func findNear256(x *blockIndex, blocks, hashes []uint64, slots *[batch]*uint32, left *[batch]uint32) int

//go:noescape
func takeSlots512(o *timedOrder, slots []*uint32, above []uint8, dist []uint64) (cold int)

//go:noescape
func takeSlots256(o *timedOrder, slots []*uint32, above []uint8, dist []uint64) (cold int)

//go:noescape
func removeRun512(t *runTree, run uint32) uint32

//go:noescape
func removeRun256(t *runTree, run uint32) uint32

//go:noescape
func findFirst512(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) int

//go:noescape
func findFirst256(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) int
