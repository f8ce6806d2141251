package exact

import (
	"math"
	"reflect"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Values are counted one by one or in their bins, and as if there were many of them; sums go over 64 bits.
func TestTallyAdd(t *testing.T) {
	bins := model.LogBins(10)
	got, want, windows := newTally(bins), newTally(bins), newWindowTally(bins)
	sums := map[uint64]uint64{}
	for _, v := range []uint64{0, 1, 2, smallValues - 1, smallValues, smallValues + 1, 1 << 40, math.MaxUint64 - 1, model.Infinite} {
		for k := range uint64(5) {
			got.add(v)
			if v == model.Infinite {
				continue
			}
			windows.addTo(bins.Index(v), v, 7+k)
			sums[v] += 7 + k
		}
		if v == model.Infinite {
			want.cold += 5
		} else {
			want.addMany(v, 5)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("added one by one the tally is another")
	}
	if b := got.bin[bins.Index(math.MaxUint64-1)]; b.n != 5 || b.sumHi != 4 {
		t.Errorf("largest: %+v, want 5 with a sum of 4 * 2^64 and more", b)
	}
	for v := range uint64(smallValues) {
		if windows.small[v] != sums[v] {
			t.Errorf("windows of %d: %d, want %d", v, windows.small[v], sums[v])
		}
	}
	var large uint64
	for _, n := range windows.bin {
		large += n
	}
	// Those of 4096 and 4097 share a bin.
	if want := sums[smallValues] + sums[smallValues+1]; windows.bin[bins.Index(smallValues)] != want || large != want+sums[1<<40]+sums[math.MaxUint64-1] {
		t.Errorf("windows: %d of 4096, %d in all bins", windows.bin[bins.Index(smallValues)], large)
	}
}
