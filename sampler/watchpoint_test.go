// Needs: root, bpf, watchpoint. Watchpoints that are kept and moved.
package sampler

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
)

// What is left of a place counts for the next, and never for more traps than were asked for there.
func TestWatchpointMoves(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(1, Needs{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if w, err := k.ProbeWatchpoints(); err != nil {
		t.Fatal(err)
	} else if !w.Moves {
		t.Skip("this kernel does not move watchpoints")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	index, thread, err := k.AddThread(unix.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	defer k.RemoveThread(index)
	words := newWords()
	addr := func(i int) uint64 { return uint64(uintptr(unsafe.Pointer(&words[i].word))) }
	traps := func(i, touches int) int {
		before := thread.Traps
		touchWord(&words[i].word, touches)
		return int(thread.Traps - before)
	}
	threadTime := func(t *testing.T) uint64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
			t.Fatal(err)
		}
		return uint64(ts.Nano())
	}
	w, err := k.Arm(int(thread.Tid), 0, addr(0), 3)
	opened := threadTime(t)
	const least = 50_000
	for threadTime(t) < opened+2*least {
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { w.Close() }()
	if n := traps(0, 1); n != 1 {
		t.Errorf("one touch traps %d times", n)
	}
	if err := w.Park(); err != nil {
		t.Fatal(err)
	}
	if err := w.Move(addr(1), 1); !errors.Is(err, ErrNotMoved) {
		t.Errorf("two traps are left, one is asked for: %v", err)
	}
	for i, asked := range []int{2, 2, 5, 34, 40} {
		if i > 0 && i != 2 && !k.rearms {
			// It has taken all its traps: where that ends it, another is armed.
			if err := w.Move(addr(1), asked); !errors.Is(err, ErrNotMoved) {
				t.Fatalf("after its last trap: %v", err)
			}
			if w, err = k.Renew(w, int(thread.Tid), 0); err != nil {
				t.Fatal(err)
			}
		} else if same, err := k.Renew(w, int(thread.Tid), 0); err != nil || same != w {
			t.Fatalf("one that can be moved is renewed, %v", err)
		}
		if err := w.Move(addr(1), asked); err != nil {
			t.Fatal(err)
		}
		age, err := w.Age()
		if err != nil {
			t.Fatal(err)
		}
		if now := threadTime(t) - opened; age > now-least {
			t.Errorf("just moved, and armed for %d ns of the %d since it was opened", age, now)
		}
		if i == 1 { // with traps left
			asked--
			if n := traps(1, asked); n != asked {
				t.Errorf("%d touches trap %d times", asked, n)
			}
		} else if n := traps(1, asked+3); n != asked {
			t.Errorf("armed for %d traps it takes %d", asked, n)
		}
		if n := traps(0, 3); n != 0 {
			t.Errorf("%d traps where it was before", n)
		}
		if later, err := w.Age(); err != nil || later < age {
			t.Errorf("armed for %d ns, then for %d, %v", age, later, err)
		}
		if err := w.Park(); err != nil {
			t.Fatal(err)
		}
		if n := traps(1, 3); n != 0 {
			t.Errorf("%d traps of one that is parked", n)
		}
	}
}

// BenchmarkArm takes a debug register of its own thread and gives it back, or moves one that is kept.
func BenchmarkArm(b *testing.B) {
	if unix.Geteuid() != 0 {
		b.Skip("needs root, for BPF")
	}
	k, err := Load(1, Needs{})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	word := uint64(uintptr(unsafe.Pointer(&newWords()[0].word)))
	b.Run("opened", func(b *testing.B) {
		for range b.N {
			w, err := k.Arm(unix.Gettid(), 0, word, 2)
			if err != nil {
				b.Fatal(err)
			}
			w.Close()
		}
	})
	b.Run("moved", func(b *testing.B) {
		w, err := k.Arm(unix.Gettid(), 0, word, 2)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { w.Close() }()
		for range b.N {
			if err := errors.Join(w.Park(), w.Move(word, 2)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
