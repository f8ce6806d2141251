// Needs: nothing.

package exact

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// kernel makes accesses of words.
type kernel struct{ all []model.Access }

func (k *kernel) load(pc, addr uint64) {
	k.all = append(k.all, model.Access{Addr: addr, Size: 8, PC: pc, Op: model.Load})
}
func (k *kernel) store(pc, addr uint64) {
	k.all = append(k.all, model.Access{Addr: addr, Size: 8, PC: pc, Op: model.Store})
}

const (
	arrayA = 1 << 30
	arrayB = 2 << 30
	arrayC = 3 << 30
)

// stream is the triad of STREAM, c[i] = a[i] + s b[i], or with one source the copy, over so many words, passes times.
func stream(words, passes uint64, triad bool) *kernel {
	k := &kernel{}
	for range passes {
		for i := range words {
			k.load(1, arrayA+8*i)
			if triad {
				k.load(2, arrayB+8*i)
			}
			k.store(3, arrayC+8*i)
		}
	}
	return k
}

// chase goes through lines in a random order, laps times.
func chase(lines, laps int) *kernel {
	k := &kernel{}
	order := rand.New(rand.NewPCG(4, 5)).Perm(lines)
	for range laps {
		for _, i := range order {
			k.load(1, arrayA+64*uint64(i))
		}
	}
	return k
}

// multiply is that of two matrices of n x n in blocks of b x b, the innermost loop along a row of the result where blocks are
// smaller than the matrix, else along a column of the second.
func multiply(n, b uint64) *kernel {
	k := &kernel{}
	if b == n {
		for i := range n {
			for j := range n {
				for x := range n {
					k.load(1, arrayA+8*(i*n+x))
					k.load(2, arrayB+8*(x*n+j))
				}
				k.store(3, arrayC+8*(i*n+j))
			}
		}
		return k
	}
	for ii := uint64(0); ii < n; ii += b {
		for xx := uint64(0); xx < n; xx += b {
			for jj := uint64(0); jj < n; jj += b {
				for i := ii; i < ii+b; i++ {
					for x := xx; x < xx+b; x++ {
						k.load(1, arrayA+8*(i*n+x))
						for j := jj; j < jj+b; j++ {
							k.load(2, arrayB+8*(x*n+j))
							k.load(3, arrayC+8*(i*n+j))
							k.store(3, arrayC+8*(i*n+j))
						}
					}
				}
			}
		}
	}
	return k
}

// What kernels of known traffic bring into a cache of 8 KiB, 128 lines, and write back from it, in lines: within 25 %.
func TestTrafficByConstruction(t *testing.T) {
	const n, b = 96, 8
	for _, c := range []struct {
		name          string
		kernel        *kernel
		fills, writes float64
	}{
		{"copy", stream(40_000, 3, false), 3 * 2 * 5000, 3 * 5000},
		{"triad", stream(40_000, 3, true), 3 * 3 * 5000, 3 * 5000},
		{"copy in the cache", stream(400, 50, false), 2 * 50, 0},
		{"chase", chase(20_000, 4), 4 * 20_000, 0},
		{"chase in the cache", chase(100, 50), 100, 0},
		// A column of b is 96 lines: eight columns are in the cache before its lines go. A row of a stays.
		{"multiply", multiply(n, n), n * n * n / 8, n * n / 8},
		// Of each of (n/b)^3 products of blocks, b's is new, c's too; a's stays for a row of them.
		{"multiply, blocked", multiply(n, b), 2 * (n / b) * (n / b) * (n / b) * b * b / 8, (n / b) * (n / b) * (n / b) * b * b / 8},
	} {
		p, err := NewPatterns([]int64{8 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Add(c.kernel.all); err != nil {
			t.Fatal(err)
		}
		all, dirty := p.Result()
		var got model.Traffic
		for _, x := range all {
			got.Add(x.Traffic[0])
		}
		fills, writes := float64(got.Fills), float64(got.WriteBacks)
		t.Logf("%-20s %8.0f lines in, %8.0f known; %7.0f back, %7.0f known, %d dirty at the end", c.name, fills, c.fills, writes, c.writes, dirty[0])
		if math.Abs(fills/c.fills-1) > .25 || math.Abs(writes-c.writes) > .25*c.writes+float64(dirty[0]) {
			t.Errorf("%s: %v lines in, %v back; want %v, %v", c.name, fills, writes, c.fills, c.writes)
		}
	}
}
