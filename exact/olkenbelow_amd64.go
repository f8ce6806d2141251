package exact

// findNear sets the slots of those blocks that are in the bucket they belong to, and left to the indexes of
// the others; it returns how many. It writes no pointers but to slots.
//
//go:noescape
func findNear(x *blockIndex, blocks, hashes []uint64, slots *[batch]*uint32, left *[batch]uint32) int

// findFirst finds those of n missed blocks that are in their first buckets, and sets
// their slots and what is recent. The others are left in missed, in their order;
// it returns how many. It writes pointers without the collector's write barrier:
// all point into tables that the index holds.
//
//go:noescape
func findFirst(missed *[batch]missedBlock, n int, blocks []uint64, slots *[batch]*uint32, recent *[numRecent]recentSlot) int

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
