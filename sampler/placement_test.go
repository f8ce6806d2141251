// Needs: two CPUs.
package sampler

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPlacement(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: its CPUs stay changed
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		t.Skip("needs two CPUs")
	}
	current, err := currentCPU()
	if err != nil {
		t.Fatal(err)
	}
	var only unix.CPUSet
	only.Set(current)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		t.Fatal(err)
	}
	// With one CPU allowed there is nowhere to go.
	var confined Placement
	for range 3 * placementWindow {
		if err := confined.Note(current); err != nil {
			t.Fatal(err)
		}
	}
	if now, _ := currentCPU(); now != current {
		t.Errorf("left the only CPU allowed, %d, for %d", current, now)
	}
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	// Nor where the others have gone offline, as this one that never was there.
	gone := Placement{allowed: only, known: true}
	gone.allowed.Set(maxCPUs - 1)
	for range 3 * placementWindow {
		cpu, _ := currentCPU()
		gone.allowed.Clear(current)
		gone.allowed.Set(cpu)
		current = cpu
		if err := gone.Note(cpu); err != nil {
			t.Fatal(err)
		}
	}
	var p Placement
	for range 100 * placementWindow {
		cpu, _ := currentCPU()
		if err := p.Note(cpu); err != nil {
			t.Fatal(err)
		}
		if now, _ := currentCPU(); now != cpu {
			return // moved away from the held thread
		}
	}
	t.Error("stays on the CPU of the threads it holds")
}

// A thread that was let go has its CPU for itself while the rest is done, and the tracing thread may run there again afterwards.
func TestGiveWay(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: its CPUs change
	var all, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		t.Skip("needs two CPUs")
	}
	var p Placement
	cpu, err := currentCPU()
	if err != nil {
		t.Fatal(err)
	}
	// It may be elsewhere by now: until it is there when asked.
	for range 100 {
		if err := p.GiveWay(cpu); err != nil {
			t.Fatal(err)
		}
		if p.away {
			break
		}
		cpu, _ = currentCPU()
	}
	if now, _ := currentCPU(); now == cpu || !p.away {
		t.Errorf("still on CPU %d, away %v", now, p.away)
	}
	if err := p.Return(); err != nil {
		t.Fatal(err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != all || p.away {
		t.Errorf("may run on %v after it, not on %v (%v)", after, all, err)
	}
	if err := p.Return(); err != nil {
		t.Fatal(err)
	}
	// On other CPUs than the thread's it stays.
	if err := p.GiveWay(maxCPUs - 1); err != nil || p.away {
		t.Errorf("left for a CPU that it was not on, %v", err)
	}
}
