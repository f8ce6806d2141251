// Needs: ptrace, gcc.
//go:build amd64

package ahead

import (
	"runtime"
	"testing"
)

// Nothing is allocated while a thread is held, once as much was read ahead before: other goroutines may allocate
// meanwhile, so that of some hundred holds a few may seem to.
func TestHoldAllocates(t *testing.T) {
	h := &locating{locator: NewLocator()}
	w := Window{First: 100, Most: 300, Block: 64}
	pick := func(n int) int { return n - 1 }
	holds, none := 0, 0
	var last uint64
	h.look = func(tid int) error {
		h.locator.Tend() // of the hold before
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := h.locator.Read(h.pid, tid, w, pick)
		runtime.ReadMemStats(&after)
		if holds++; holds > 100 {
			if last = after.Mallocs - before.Mallocs; last == 0 {
				none++
			}
		}
		return err
	}
	holdOften(t, mixed, h)
	// What other goroutines allocate meanwhile is counted, too: only that a hold can do without tells.
	if none < (holds-100)/4 {
		t.Errorf("of %d holds %d have allocated nothing, the last %d times", holds-100, none, last)
	}
}
