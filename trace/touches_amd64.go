package trace

// touchedAtOnce is how many entries toucher.simple may take before touchShort is called again.
const touchedAtOnce = 1

// touchShort is toucher.simple for short entries, up to the last ones of w, in assembly: the
// compiler has too few registers for it.
//
//go:noescape
func touchShort(t *toucher, segments []*segment, w []uint64, i int) int
