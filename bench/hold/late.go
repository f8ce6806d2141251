// What it costs a profiler to learn of a sampled access
// late: reuses that come before its watchpoint are missed, and the next, longer
// one is taken for the datum's. A source without a hold, such as Arm's SPE, is
// tens of microseconds late; one that holds the thread at the sample, such as
// PEBS, by the few instructions that its interrupt takes.
//
// Streams of accesses are simulated, sampled at random, and the
// reuse times found compared with those of all accesses. Accuracy is
// 1 - sum |R_i - R'_i| / 2 over bins of one octave.

package main

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sort"
)

// pattern makes a stream of n accesses to numbered words.
type pattern struct {
	name string
	make func(r *rand.Rand, n int) []int32
}

var patterns = []pattern{
	{"one word again and again, then the next", func(_ *rand.Rand, n int) []int32 {
		return each(n, func(i int) int32 { return int32(i / 16) })
	}},
	{"cyclic walk of 1,000 words", func(_ *rand.Rand, n int) []int32 {
		return each(n, func(i int) int32 { return int32(i % 1000) })
	}},
	{"cyclic walk of 300,000 words", func(_ *rand.Rand, n int) []int32 {
		return each(n, func(i int) int32 { return int32(i % 300_000) })
	}},
	{"random of 100,000 words", func(r *rand.Rand, n int) []int32 {
		return each(n, func(int) int32 { return r.Int32N(100_000) })
	}},
	{"Zipf of 1,000,000 words, s = 1.1", func(r *rand.Rand, n int) []int32 {
		z := rand.NewZipf(r, 1.1, 1, 1_000_000-1)
		return each(n, func(int) int32 { return int32(z.Uint64()) })
	}},
	{"90 % of 64 words, 10 % a walk of 100,000", func(r *rand.Rand, n int) []int32 {
		walk := int32(0)
		return each(n, func(int) int32 {
			if r.IntN(10) > 0 {
				return r.Int32N(64)
			}
			walk = (walk + 1) % 100_000
			return 64 + walk
		})
	}},
}

func each(n int, f func(i int) int32) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// delays in accesses; at one access a nanosecond 70,000 are the 70 µs that
// user space takes from a sample to a watchpoint in a thread that runs on.
var delays = []int{0, 10, 30, 100, 1000, 10_000, 70_000}

// late prints the table of docs/explanation/sources.md.
func late(n, samples int, seed uint64) {
	fmt.Print("| accuracy, late by accesses: |")
	for _, d := range delays {
		fmt.Printf(" %d |", d)
	}
	fmt.Print("\n|---|")
	for range delays {
		fmt.Print("---|")
	}
	fmt.Println()
	for _, p := range patterns {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newStream(p.make(r, n))
		fmt.Printf("| %s |", p.name)
		truth := s.all()
		for _, d := range delays {
			fmt.Printf(" %.1f %% |", 100*accuracy(truth, s.sampled(r, samples, d)))
		}
		fmt.Println()
	}
}

// stream knows where each word is accessed.
type stream struct {
	words []int32
	at    [][]int32 // by word, in order
}

func newStream(words []int32) *stream {
	s := &stream{words: words}
	for i, w := range words {
		for int(w) >= len(s.at) {
			s.at = append(s.at, nil)
		}
		s.at[w] = append(s.at[w], int32(i))
	}
	return s
}

// Times are counted in bins of one octave; the last is of those without reuse.
type histogram [65]float64

func bin(t int) int { return bits.Len(uint(t)) }

const notReused = 64

// all reuse times.
func (s *stream) all() histogram {
	var h histogram
	for _, at := range s.at {
		for i := 1; i < len(at); i++ {
			h[bin(int(at[i]-at[i-1]))]++
		}
		if len(at) > 0 {
			h[notReused]++
		}
	}
	return h
}

// sampled is the times found by watching from delay accesses after each sample
// on: longer and shorter ones with the same mean, as interrupts are.
func (s *stream) sampled(r *rand.Rand, samples, delay int) histogram {
	var h histogram
	for range samples {
		use := r.IntN(len(s.words))
		from := use + int(float64(delay)*r.ExpFloat64())
		at := s.at[s.words[use]]
		next := sort.Search(len(at), func(i int) bool { return int(at[i]) > from })
		if next == len(at) {
			h[notReused]++
		} else {
			h[bin(int(at[next])-use)]++
		}
	}
	return h
}

func accuracy(a, b histogram) float64 {
	var sumA, sumB, differ float64
	for i := range a {
		sumA += a[i]
		sumB += b[i]
	}
	for i := range a {
		d := a[i]/sumA - b[i]/sumB
		differ += max(d, -d)
	}
	return 1 - differ/2
}
