// Needs: root, bpf, watchpoint.
package sampler

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What user space adds to Spent while a word is looked at again may be longer than the interval in which it does, as
// steps that began before it. Then the interval is the shortest there is, and not 2^64 ns less a little; the next one is
// as long as it was.
func TestSpentLongerThanInterval(t *testing.T) {
	k, err := Load(NumSlots, Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	defer k.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const looks = 3
	if err := k.SetAgain(time.Minute, 0, looks, 12); err != nil {
		t.Fatal(err)
	}
	index, thread, err := k.AddThread(unix.Gettid())
	if err != nil {
		t.Fatal(err)
	}
	defer k.RemoveThread(index)
	counter, err := k.OpenCounter(index, int(thread.Tid))
	if err != nil {
		t.Fatal(err)
	}
	if counter != nil {
		defer counter.Close()
	}
	word := &newWords()[0].word
	slot := &thread.Slots[0]
	slot.Seq++
	slot.State = SlotArmed
	w, err := k.Arm(int(thread.Tid), 0, uint64(uintptr(unsafe.Pointer(word))), 2+looks)
	if err != nil {
		t.Skip("needs a watchpoint:", err)
	}
	defer w.Close()
	word.Load() // the use
	word.Load() // its reuse
	thread.Spent += uint64(time.Hour)
	word.Load()
	word.Load()
	var again []uint64
	var trap Trap
	for {
		ok, err := k.ReadTrap(&trap)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if trap.Index == index && trap.Seq == slot.Seq && trap.Kind == TrapReuse && trap.Again > 0 {
			again = append(again, trap.Again)
		}
	}
	if len(again) != 2 || again[0] != 1 || again[1] <= 1 || again[1] > uint64(time.Minute) {
		t.Errorf("later intervals of %d ns, want one of 1 and one of microseconds", again)
	}
}
