//go:build !amd64

package trace

func encodeEntries(x *entryBatch) { x.entries() }

func encodeListed(words, list []uint64, states []wordState, sizes, values []byte) int {
	return listed(words, list, states, sizes, values)
}

func packMost([]byte) int { return 0 }
