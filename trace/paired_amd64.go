package trace

// pairEntries is pairer.plain up to the last entries of w, in assembly: the compiler has too few registers for it.
//
//go:noescape
func pairEntries(t *pairer, segments []*segment, thread int32, w []uint64, i int) int
