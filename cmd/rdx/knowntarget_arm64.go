package main

// See knowntarget_amd64.go. Here a round is long because the array is.
const (
	selfTestWords    = 1 << 18
	walkInstructions = 5
)

// walk makes one access a word and no other.
//
//go:noinline
func walk(array []uint64) (sum uint64) {
	for _, v := range array {
		sum += v
	}
	return sum
}
