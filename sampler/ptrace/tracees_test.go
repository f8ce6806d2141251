// Needs: nothing.
package ptrace

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Against a plain list.
func TestTracees(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	got, want := newTracees(), map[int]int{}
	for range 20000 {
		tid, pid := rng.IntN(40), rng.IntN(8)
		switch rng.IntN(4) {
		case 0, 1:
			got.add(tid, pid)
			want[tid] = pid
		case 2:
			got.remove(tid)
			delete(want, tid)
		case 3:
			if rng.IntN(10) == 0 {
				got.removeAll(pid)
				for tid, p := range want {
					if p == pid {
						delete(want, tid)
					}
				}
			}
		}
		any := false
		for _, p := range want {
			any = any || p == pid
		}
		p, ok := got.process(tid)
		if w, is := want[tid]; p != w || ok != is || got.len() != len(want) || got.any(pid) != any {
			t.Fatalf("thread %d: %d %v, want %d %v; %d threads, want %d; process %d: %v, want %v", tid, p, ok, w, is, got.len(), len(want), pid, got.any(pid), any)
		}
	}
	got.clear()
	if got.len() != 0 || len(got.in) != 0 {
		t.Error("not empty")
	}
}
