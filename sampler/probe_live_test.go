// Needs: root, bpf, watchpoint.
package sampler

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/internal/needs"
)

func TestProbeWatchpoints(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(NumSlots, Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	w, err := k.ProbeWatchpoints()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", w)
	if w.Free < 1 || w.Free > probeFree {
		t.Errorf("%d watchpoints free", w.Free)
	}
	if err := w.Usable(); err != nil {
		t.Error(err)
	}
	if w.WholeLine != (w.WhyNot == "") || w.WholeLine && !slices.Contains(w.Lengths, LineSize) {
		t.Errorf("whole lines: %v, %q, lengths %v", w.WholeLine, w.WhyNot, w.Lengths)
	}
	if !w.Copies && needs.TellsCopies() {
		t.Error("the kernel's own accesses to a watched word are not told from the thread's")
	}
	// Nothing is left behind: a second look finds the same.
	again, err := k.ProbeWatchpoints()
	if err != nil || again.Free != w.Free {
		t.Errorf("second probe: %d free, want %d: %v", again.Free, w.Free, err)
	}
}

// A range that is cut short to a word, or is refused, is no whole line.
func TestWatchesLine(t *testing.T) {
	needs.Watchpoints(t)
	k, err := Load(1, Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	index, thread, err := k.AddThread(tid)
	if err != nil {
		t.Fatal(err)
	}
	defer k.RemoveThread(index)
	page, err := unix.Mmap(-1, 0, probeBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	for _, tc := range []struct {
		name string
		arm  func(addr uint64, traps int) (*Watchpoint, error)
		says string
	}{
		{"its first word only", func(addr uint64, traps int) (*Watchpoint, error) { return k.Arm(tid, 0, addr, traps) }, "fires 0 times at byte 8"},
		{"its last word only", func(addr uint64, traps int) (*Watchpoint, error) { return k.Arm(tid, 0, addr+56, traps) }, "fires 0 times at byte 0"},
		{"the word before, too", func(addr uint64, traps int) (*Watchpoint, error) { return k.Arm(tid, 0, addr-8, traps) }, "fires 1 times at byte -8"},
		{"refused", func(uint64, int) (*Watchpoint, error) { return nil, unix.EOPNOTSUPP }, "no range breakpoints (operation not supported)"},
		{"no register", func(uint64, int) (*Watchpoint, error) { return nil, ErrNoSlot }, ErrNoSlot.Error()},
	} {
		if err := watchesLine(thread, page, tc.arm); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}
