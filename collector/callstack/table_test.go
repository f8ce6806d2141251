package callstack

import (
	"testing"

	"github.com/rdx-profiler/rdx/sampler/unwind"
)

func TestHolder(t *testing.T) {
	const sp = 0x1000
	frames := []unwind.Frame{{PC: 1, CFA: 0x1020}, {PC: 2, CFA: 0x1100}, {PC: 3}}
	none := Held{Frame: -1}
	for addr, want := range map[uint64]Held{0: none, sp - redZone - 8: none, sp - redZone: {0, 0x20 + redZone, -redZone}, sp: {0, 0x20, 0}, 0x1018: {0, 8, 0x18},
		0x1020: {1, 0xe0, 0}, 0x10f8: {1, 8, 0xd8}, 0x1100: none, 0x5000: none} {
		if got := holder(frames, sp, addr); got != want {
			t.Errorf("%#x: %+v, want %+v", addr, got, want)
		}
	}
}
