// Needs: nothing.
package sampler

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestRunningOf(t *testing.T) {
	if n, err := runningOf([]byte("0.20 0.18 0.12 3/80 11206\n")); n != 3 || err != nil {
		t.Errorf("%d, %v; want 3", n, err)
	}
	for _, bad := range []string{"", "0.20 0.18 0.12", "0.20 0.18 0.12 x/80 11206"} {
		if n, err := runningOf([]byte(bad)); err == nil {
			t.Errorf("%q: %d", bad, n)
		}
	}
}

// As many threads that spin as there are processors, beside the one that asks, leave none idle.
func TestAllBusy(t *testing.T) {
	cpus := runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cpus + 1))
	var stop atomic.Bool
	defer stop.Store(true)
	for range cpus {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		busy, err := AllBusy(cpus)
		if err != nil {
			t.Fatal(err)
		}
		if busy {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("not said of a machine on which each processor has a thread that spins")
		}
	}
	if busy, err := AllBusy(1 << 20); busy || err != nil {
		t.Errorf("of a million processors: %v, %v", busy, err)
	}
}
