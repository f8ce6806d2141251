package model

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

// The same in two instruction sets each; see olkenbelow_amd64.h.

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
