// Needs: nothing.
package ahead

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Against a map: rounds that grow the table, that find it large, blocks that collide, and one after 2^32 others.
func TestLastTouches(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var l lastTouches
	for round := range 30 {
		if round == 20 {
			l.round = math.MaxUint32 // the next is as the first
		}
		l.reset()
		want := map[uint64]int{}
		blocks := 1 + r.IntN(20_000)
		for touch := range 30_000 {
			block := uint64(r.IntN(blocks)) << (round % 40) // those far apart have the same low bits
			before, ok := want[block]
			if !ok {
				before = -1
			}
			if got := l.swap(block, touch); got != before {
				t.Fatalf("round %d, block %#x: touch before %d, want %d", round, block, got, before)
			}
			want[block] = touch
		}
		if l.used != len(want) {
			t.Fatalf("round %d: %d blocks, want %d", round, l.used, len(want))
		}
	}
}
