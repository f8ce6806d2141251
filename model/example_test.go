package model_test

import (
	"fmt"

	"github.com/rdx-profiler/rdx/model"
)

// A program that walks 100 blocks again and again, 1,000 times: each is reused after 100 accesses.
func ExampleAET() {
	times := model.NewHist(model.LinearBins(1, 200))
	for range 999 * 100 {
		times.Add(100, 1)
	}
	times.Cold = 100
	var m model.AET
	if err := m.Reset(times); err != nil {
		panic(err)
	}
	for _, blocks := range []uint64{50, 90, 110} {
		fmt.Printf("%d blocks: %.3f\n", blocks, m.MissRatio(times, blocks))
	}
	// Output:
	// 50 blocks: 1.000
	// 90 blocks: 1.000
	// 110 blocks: 0.001
}

// Distances in blocks, and what misses.
func ExampleHist_MissRatio() {
	h := model.NewHist(model.LinearBins(1, 100))
	h.Add(3, 10)
	h.Add(40, 30)
	h.Cold = 10
	fmt.Println(h.MissRatio(4), h.MissRatio(41))
	// Output: 0.8 0.2
}
