//go:build !amd64

package trace

func pairEntries(_ *pairer, _ []*segment, _ int32, _ []uint64, i int) int { return i }
