package ahead

import (
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// What ends reading is how many blocks were touched behind the first accesses, within a tenth, also where they are a page or lines in a row
// apart, and not before the least.
func TestBreadth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const first, least, each = 100, 400, 50
	for name, address := range map[string]func(i int) uint64{
		"a row of lines": func(i int) uint64 { return 1<<40 + uint64(i)*64 },
		"a page apart":   func(i int) uint64 { return 1<<46 + uint64(i)*4096 },
		"anywhere":       func(int) uint64 { return rnd.Uint64() >> 17 },
		"few":            func(i int) uint64 { return uint64(i%300) * 64 },
	} {
		for _, blocks := range []int{1, 200, 960, MostBreadth} {
			var g accessLog
			var b breadth
			g.reset(64)
			w := Window{First: first, Blocks: blocks, Least: least}
			seen := map[uint64]bool{}
			for n := 0; n < 20_000; n += each {
				for i := range each {
					a := address(n + i)
					g.all = append(g.all, interp.Access{Addr: a, Size: 8})
					if n+i >= first {
						seen[a/64] = true
					}
				}
				if b.reaches(&g, &w) {
					break
				}
			}
			n, enough := len(g.all), b.ones >= blocks
			switch {
			case enough != (len(seen) >= blocks) && len(seen) < blocks*9/10:
				t.Errorf("%s: %d blocks are taken for %d", name, len(seen), blocks)
			case enough && (n < least || n > least && len(seen) > blocks*10/9+each):
				t.Errorf("%s: %d blocks, %d wanted, after %d accesses", name, len(seen), blocks, n)
			case name == "few" && blocks > 300 && n != 20_000:
				t.Errorf("it ends after %d accesses to 300 blocks, where %d are wanted", n, blocks)
			}
		}
	}
}
