package trace

// The compiler has too few registers for the two loops that every access goes
// through: in assembly they take half the time.

// encodeEntries is entryBatch.entries.
//
//go:noescape
func encodeEntries(x *entryBatch)

// encodeListed is listed.
//
//go:noescape
func encodeListed(words, list []uint64, states []wordState, sizes, values []byte) int
