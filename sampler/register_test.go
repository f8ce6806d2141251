// Needs: root, bpf, watchpoint. Registers of CPUs that are kept and moved.
package sampler

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
)

// openRegister waits for one, as long as another process has debug registers taken.
func openRegister(t testing.TB, k *Kernel, cpu, slot int, writes bool) *Register {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		r, err := k.OpenRegister(cpu, slot, writes)
		if err == nil {
			return r
		}
		if !errors.Is(err, ErrNoSlot) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// pinned keeps the test's thread on one CPU, the one that it is returned.
func pinned(t *testing.T) int {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	cpu, err := currentCPU()
	if err != nil {
		t.Fatal(err)
	}
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			t.Error(err)
		}
	})
	return cpu
}

// Needs: root, bpf, watchpoint. A register that is kept traps as often as it was last moved
// for: no more for what was left before, also when it had been used up, and never where it
// was before, nor while it is parked.
func TestRegister(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(NumSlots, Needs{Others: true})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	points, err := k.ProbeWatchpoints()
	if err != nil {
		t.Fatal(err)
	}
	if !points.Revives {
		t.Errorf("an event that has come to its limit can't be started again: registers would be taken anew after each such datum (%+v)", points)
	}
	cpu := pinned(t)
	all := newWords()
	words := []*atomic.Uint64{&all[0].word, &all[1].word} // to index the array looks at its start
	touch := func(i, n int) (traps int) {
		before, err := k.Stats()
		if err != nil {
			t.Fatal(err)
		}
		touchWord(words[i], n)
		after, err := k.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return int(after.OtherProcess - before.OtherProcess)
	}
	for _, writes := range []bool{false, true} {
		r := openRegister(t, k, cpu, 1, writes)
		seen := func(n int) int { // touchWord loads
			if writes {
				return 0
			}
			return n
		}
		for round, step := range []struct{ word, limit, touches, traps int }{
			{0, 8, 5, 5},
			{1, 8, 20, 8}, // 3 are left of the first 8
			{0, 4, 20, 4}, // used up before
			{1, 8, 0, 0},
			{0, 8, 20, 8}, // none used
			{1, 10, 3, 3},
			{1, 8, 20, 8}, // 7 are left
			{0, 20, 0, 0},
			{1, 8, 30, 20}, // more are left than are asked for
		} {
			if err := r.Move(uint64(uintptr(unsafe.Pointer(words[step.word]))), step.limit); err != nil {
				t.Fatal(err)
			}
			if n := touch(1-step.word, 5); n != 0 {
				t.Errorf("writes %v, move %d: %d traps at another word", writes, round, n)
			}
			if n := touch(step.word, step.touches); n != seen(step.traps) {
				t.Errorf("writes %v, move %d: %d traps, want %d", writes, round, n, seen(step.traps))
			}
			if err := r.Park(); err != nil {
				t.Fatal(err)
			}
			if n := touch(step.word, 5); n != 0 {
				t.Errorf("writes %v, move %d: %d traps while parked", writes, round, n)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Needs: root, bpf, watchpoint. Of a kernel that can't start an event again a register that is spent is an
// error, not a watch that sees nothing.
func TestRegisterSpent(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(NumSlots, Needs{Others: true})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	cpu := pinned(t) // without ProbeWatchpoints: nothing is known to revive
	word := &newWords()[0].word
	addr := uint64(uintptr(unsafe.Pointer(word)))
	r := openRegister(t, k, cpu, 0, false)
	defer r.Close()
	for range 2 { // what is left is enough for the second
		if err := r.Move(addr, 2); err != nil {
			t.Fatal(err)
		}
		touchWord(word, 1)
		if err := r.Park(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Move(addr, 1); err != nil {
		t.Fatal(err)
	}
	touchWord(word, 5)
	if err := errors.Join(r.Park(), r.Move(addr, 1)); !errors.Is(err, ErrSpent) {
		t.Errorf("moved when spent: %v", err)
	}
}
