package interp

import (
	"slices"
	"testing"
)

// A run ends each time the thread comes to a waypoint with its registers, and goes on
// from there; what is not in the mask does not count.
func TestWaypoints(t *testing.T) {
	// 1: inc rcx; mov [rdi], rcx; and rbx, 3 after inc rbx; jmp 1
	regs, mem := target(t, "48 ff c1 48 89 0f 48 ff c3 48 83 e3 03 eb f1")
	m := New()
	at := func(rcx, rbx uint64, mask uint32) Waypoint {
		s := Waypoint{PC: regs.RIP, Mask: mask}
		s.Regs[RCX], s.Regs[RBX] = regs.GPR[RCX]+rcx, rbx
		return s
	}
	regs.GPR[RBX] = 0
	m.Start(regs, mem)
	ways := []Waypoint{at(7, 3, 1<<RCX|1<<RBX), at(0, 2, 1<<RBX), at(9, 2, 1<<RCX|1<<RBX)}
	m.Waypoints().Set(ways)
	var got [][2]int
	for accesses := 0; len(got) < 5; {
		end := m.Run(Limit{Accesses: 100, Instructions: 60})
		accesses += len(m.Accesses())
		if end.Cause != Arrived {
			break
		}
		which := slices.IndexFunc(ways, func(w Waypoint) bool { return w.PC == m.rip && w.others(m.r[:]) == 0 })
		got = append(got, [2]int{which, accesses})
	}
	// rbx is 2 after 2, 6, 10 rounds and so on, 3 after 7; after 9 it is 1.
	want := [][2]int{{1, 2}, {1, 6}, {0, 7}, {1, 10}, {1, 14}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
	m.Start(regs, mem)
	if end := m.Run(Limit{Accesses: 20, Instructions: 1000}); end.Cause != AccessesDone {
		t.Errorf("waypoints outlive Start: %+v", end)
	}
}
