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
	own, err := currentCPU()
	if err != nil {
		t.Fatal(err)
	}
	var only unix.CPUSet
	only.Set(own)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		t.Fatal(err)
	}
	// With one CPU allowed there is nowhere to go.
	var confined Placement
	for range 3 * placementWindow {
		if err := confined.Note(own); err != nil {
			t.Fatal(err)
		}
	}
	if now, _ := currentCPU(); now != own {
		t.Errorf("left the only CPU allowed, %d, for %d", own, now)
	}
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	// Nor where the others have gone offline, as this one that never was there.
	gone := Placement{allowed: only, known: true}
	gone.allowed.Set(maxCPUs - 1)
	for range 3 * placementWindow {
		cpu, _ := currentCPU()
		gone.allowed.Clear(own)
		gone.allowed.Set(cpu)
		own = cpu
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
