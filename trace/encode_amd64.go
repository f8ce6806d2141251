package trace

// The compiler has too few registers for the loops that every access goes through:
// in assembly they take half the time.

// encodeEntries is entryBatch.entries.
//
//go:noescape
func encodeEntries(x *entryBatch)

// encodeListed is listed.
//
//go:noescape
func encodeListed(words, list []uint64, states []wordState, sizes, values []byte) int

// packMost packs nibbles as packNibbles, as many as it can at 32 at a time, and returns
// their number.
//
//go:noescape
func packMost(b []byte) int
