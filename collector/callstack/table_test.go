package callstack

import (
	"testing"

	"github.com/rdx-profiler/rdx/sampler/unwind"
)

func TestHolder(t *testing.T) {
	const sp = 0x1000
	frames := []unwind.Frame{{PC: 1, CFA: 0x1020}, {PC: 2, CFA: 0x1100}, {PC: 3}}
	for addr, want := range map[uint64]int{0: -1, sp - redZone - 8: -1, sp - redZone: 0, sp: 0, 0x1018: 0, 0x1020: 1, 0x10f8: 1, 0x1100: -1, 0x5000: -1} {
		if got := holder(frames, sp, addr); got != want {
			t.Errorf("%#x is in frame %d, want %d", addr, got, want)
		}
	}
}
