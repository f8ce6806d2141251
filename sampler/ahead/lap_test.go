// Needs: nothing.
package ahead

import (
	"math/rand/v2"
	"testing"

	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// lapLog is of a loop of 1,000 lines, 8 rounds of it: of each line one access, by 250 lines of code, and of one word every other
// access.
func lapLog(t *testing.T, rounds int) *Locator {
	t.Helper()
	const lines = 1000
	l := NewLocator()
	l.Reserve(Window{First: 4000, Most: 2 * lines * rounds, Block: sampler.LineSize})
	l.log.reset(sampler.LineSize)
	l.first = 4000
	var all []interp.Access
	for range rounds {
		for i := range uint64(lines) {
			all = append(all,
				interp.Access{Addr: 0x10000 + 64*i, Size: 8, PC: 0x400000 + i/4*64, Inst: int32(len(all))},
				interp.Access{Addr: 0x8000, Size: 4, PC: 0x400000 + i/4*64 + 8, Inst: int32(len(all) + 1)})
		}
	}
	l.log.keep(all)
	return l
}

// The longest lap of a loop is from one round to the next. Of all rounds the first has lines that were not touched before.
func TestLap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	l := lapLog(t, 8)
	if lap, ok := l.Lap(r.IntN); ok {
		t.Errorf("a lap of %d accesses, fewer than there may be", lap.Accesses)
	}
	l = lapLog(t, 8)
	for i := range l.log.all {
		if i%3 == 0 { // a round has 3,000 of others now
			l.log.all[i].Addr += 1 << 30
		}
	}
	seen := map[uint64]bool{}
	for range 50 {
		lap, ok := l.Lap(r.IntN)
		if !ok {
			t.Fatal("no lap")
		}
		seen[lap.Word] = true
		if lap.Accesses != 6000 || lap.Before != 0 || lap.from >= l.first || lap.to-lap.from != lap.Accesses {
			t.Fatalf("lap %+v", lap)
		}
		if a := l.log.all[lap.from]; lap.Use.PC != a.PC || lap.Use.Addr != a.Addr || a.Addr/8*8 != lap.Word {
			t.Fatalf("its use is %+v, of %+v", lap.Use, a)
		}
		wantData, wantCode := map[uint64]bool{}, map[uint64]bool{}
		data, code := l.LapLines(lap)
		for i, a := range l.log.all[:lap.to+1] {
			if _, ok := wantData[a.Addr/64]; !ok {
				wantData[a.Addr/64] = i > lap.from
			}
			if _, ok := wantCode[a.PC/64]; !ok {
				wantCode[a.PC/64] = i > lap.from
			}
		}
		if data != later(wantData) || code != later(wantCode) {
			t.Fatalf("%d lines of data and %d of code, want %d and %d", data, code, later(wantData), later(wantCode))
		}
	}
	if len(seen) < 3 {
		t.Errorf("always the same words: %v", seen)
	}
}

func later(first map[uint64]bool) (n int) {
	for _, is := range first {
		if is {
			n++
		}
	}
	return n
}

// A word that is touched often before the lap begins is not watched: each would be a trap.
func TestLapTouchedOften(t *testing.T) {
	l := NewLocator()
	l.log.reset(sampler.LineSize)
	l.first = 4000
	var all []interp.Access
	for i := range 20000 {
		a := interp.Access{Addr: 0x10000 + 8*uint64(i), Size: 8, PC: 0x400000, Inst: int32(i)}
		if i < 100 || i == 15000 {
			a.Addr = 0x8000
		}
		all = append(all, a)
	}
	l.log.keep(all)
	for i := range 100 {
		if lap, ok := l.Lap(func(int) int { return i }); ok {
			t.Fatalf("%+v", lap)
		}
	}
}
