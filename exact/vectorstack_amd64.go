package exact

// touchVector touches runs, see Touches, from one on while there are a free lane and ages, and returns how many have been touched. It sets
// dist and time of those found. For the others it sets dist to the number of blocks then held, time to the position of the touch, and what t
// says of them. All must be as long as blocks, at most vectorChunk.
//
//go:noescape
func touchVector(t *vectorStack, blocks []uint64, runs []uint8, dist, time []uint64, from int) int

// countVector is touchVector of blocks of which only distances are asked for. Positions stay as they are.
//
//go:noescape
func countVector(t *vectorStack, blocks []uint64, dist []uint8, from int) int

// sortVector sets sorted to the lanes held, the youngest's first, and gives the youngest keep the ages keep and down,
// and the others that of a free lane. keep is at most held.
//
//go:noescape
func sortVector(t *vectorStack, keep int)

// addOctaves adds to counts how many of the distances on top are of each bit length, less all for the first.
//
//go:noescape
func addOctaves(dist *[vectorChunk]uint8, counts *[vectorOctaves]uint64)

// eachOf[m] is the numbers of the bits that m has, one in each byte, the lowest first.
//
//lint:ignore U1000 the assembly uses it
var eachOf = func() (list [256]uint64) {
	for m := range list {
		n := 0
		for bit := range uint64(8) {
			if m>>bit&1 == 1 {
				list[m] |= bit << (8 * n)
				n++
			}
		}
	}
	return list
}()
