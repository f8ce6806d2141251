package exact_test

import (
	"fmt"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
)

// In a b b c a the second b comes at once, and between both a are two other blocks.
func ExampleAnalysis() {
	a, err := exact.New(64, model.LinearBins(1, 16))
	if err != nil {
		panic(err)
	}
	for _, block := range []uint64{'a', 'b', 'b', 'c', 'a'} {
		if err := a.Add([]model.Access{{Addr: 64 * block, Size: 8, Op: model.Load}}); err != nil {
			panic(err)
		}
	}
	fmt.Println(a.Touches(), "touches of", a.Blocks(), "blocks,", a.Distances().Cold, "of them the first")
	for blocks := uint64(1); blocks <= 3; blocks++ {
		fmt.Printf("a cache of %d: %.0f%% miss\n", blocks, 100*a.Distances().MissRatio(blocks))
	}
	// Output:
	// 5 touches of 3 blocks, 3 of them the first
	// a cache of 1: 80% miss
	// a cache of 2: 80% miss
	// a cache of 3: 60% miss
}
