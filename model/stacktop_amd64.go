package model

// touchTop touches runs, see Touches, up to the first for which t is not ready: where its
// block is not there and no place is free, where another one of the same tag is there, or where there
// are no more ages. It returns how many. It sets dist and time of those found. For the others it sets time to
// the position of the touch, and what t says of them. All must be as long as blocks, at most topChunk.
//
//go:noescape
func touchTop(t *stackTop, blocks []uint64, runs []uint8, dist, time []uint64, from int) int

// countTop is touchTop of blocks of which only distances are counted: those found to
// found. Positions stay as they are.
//
//go:noescape
func countTop(t *stackTop, blocks []uint64, found *[topBlocks]uint64, from int) int

// sortTop sets sorted to the places held, the youngest's first, and the ages of the youngest keep to keep and down,
// those of the others to 0.
//
//go:noescape
func sortTop(t *stackTop, keep int)

// findNear sets the slots of those blocks that are in the bucket they belong to, and left to the indexes of
// the others; it returns how many. It writes no pointers but to slots.
//
//go:noescape
func findNear(x *blockIndex, blocks, hashes []uint64, slots *[batch]*uint32, left *[batch]uint32) int

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
//
//go:noescape
func takeSlots(o *timedOrder, slots []*uint32, above []uint8, dist []uint64) (cold int)

// removeRun is runTree.remove.
//
//go:noescape
func removeRun(t *runTree, run uint32) uint32
