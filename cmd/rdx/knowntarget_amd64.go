package main

const (
	// selfTestWords make rounds of some hundred microseconds: far above what any
	// usable clock resolves, far below the time between samples.
	selfTestWords = 1 << 12
	// walkSteps takes a word some tens of nanoseconds, each step waiting for the last.
	walkSteps = 64
	// walkInstructions is how many Go's compiler makes of one word of walk: what a
	// clock of instructions must find.
	walkInstructions = 7 + walkSteps*6 + 2
)

// walk makes one access a word and no other. The arithmetic in between makes a
// round long although the array is small: how fast a large one is walked depends
// on the neighbours in the shared cache, and on how much of it is left in the
// private ones after a hold.
//
//go:noinline
func walk(array []uint64) (sum uint64) {
	for _, v := range array {
		for range walkSteps {
			sum = sum*6364136223846793005 + v
		}
	}
	return sum
}
