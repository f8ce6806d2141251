package cost

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// The test binary stands in for rdx, which measures in a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		os.Exit(Run(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// What is measured on is no memory of the process that asks: it would be the most that it ever had.
func TestMeasureApart(t *testing.T) {
	sizes := []int64{48 << 10, 512 << 10, 32 << 20}
	before := mostMemory(t)
	m, err := MeasureApart(t.Context(), sizes)
	if err != nil || !m.Valid(sizes) || m.Valid(sizes[1:]) {
		t.Fatalf("%+v, %v", m, err)
	}
	if got, want := m.On[len(m.On)-1].Bytes, int64(64<<20); got != want {
		t.Errorf("memory is measured on %d bytes, want %d", got, want)
	}
	if grown := mostMemory(t) - before; grown > 16<<10 {
		t.Errorf("this process had %d KiB more", grown)
	}
	if _, err := MeasureApart(t.Context(), []int64{-1}); err == nil || !strings.Contains(err.Error(), `"-1" is no size of a cache`) {
		t.Errorf("of a size that can't be: %v", err)
	}
}

// mostMemory is the most that this process had, in KiB.
func mostMemory(t *testing.T) (kib int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

func TestValid(t *testing.T) {
	sizes := []int64{48 << 10, 1 << 20}
	good := func() Machine {
		conflicts := Conflicts{Room: 256}
		for _, step := range conflictSteps {
			conflicts.Steps = append(conflicts.Steps, ConflictStep{step, [2]float64{2, 5}, [2]float64{10, 10}})
		}
		return Machine{sizes, []Cost{{16 << 10, 3, 1, 1}, {64 << 10, 5, 1, 2}}, .3, conflicts}
	}
	if m := good(); !m.Valid(sizes) {
		t.Error("a good one is not")
	}
	for name, spoil := range map[string]func(*Machine){
		"no room":         func(m *Machine) { m.Conflicts.Room = 0 },
		"steps missing":   func(m *Machine) { m.Conflicts.Steps = m.Conflicts.Steps[1:] },
		"other steps":     func(m *Machine) { m.Conflicts.Steps[0].Bytes = 3 },
		"no conflict":     func(m *Machine) { m.Conflicts.Steps[2].Stores[1] = math.NaN() },
		"other sizes":     func(m *Machine) { m.Sizes = []int64{32 << 10, 1 << 20} },
		"no cycle":        func(m *Machine) { m.Cycle = 0 },
		"endless cycle":   func(m *Machine) { m.Cycle = math.Inf(1) },
		"negative":        func(m *Machine) { m.On[1].Waits = -1 },
		"a second":        func(m *Machine) { m.On[0].Apart = 1e9 },
		"no number":       func(m *Machine) { m.On[0].Streams = math.NaN() },
		"on nothing":      func(m *Machine) { m.On[0].Bytes = 0 },
		"in no order":     func(m *Machine) { m.On[1].Bytes = 64 },
		"thousands of it": func(m *Machine) { m.On = make([]Cost, 1000) },
	} {
		if m := good(); func() bool { spoil(&m); return m.Valid(sizes) }() {
			t.Errorf("%s: valid", name)
		}
	}
}

func TestMeasure(t *testing.T) {
	costs, err := Measure([]int64{48 << 10, 512 << 10, 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", costs)
	want := []int64{16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	for i, c := range costs {
		if len(costs) != len(want) || c.Bytes != want[i] {
			t.Fatalf("costs on %+v, want %v", costs, want)
		}
	}
	for i, c := range costs {
		if !(c.Waits > 0 && c.Waits < 5000 && c.Streams > 0 && c.Streams < c.Waits*4 && c.Apart > 0 && c.Apart < c.Waits*4) {
			t.Errorf("level %d: %+v", i, c)
		}
	}
	first, last := costs[0], costs[len(costs)-1]
	if last.Waits < 3*first.Waits {
		t.Errorf("an access to memory waits %.1f ns, to the first cache %.1f", last.Waits, first.Waits)
	}
	// What waits for nothing goes at the rate of the loop: no chain of its own holds it up.
	if c := Cycle(); first.Streams > 5*c || first.Apart > 8*c || first.Waits < 5*c {
		t.Errorf("in the first cache %+v, a cycle is %.3f ns", first, c)
	}
}

// A cycle is that of a core of 0.8 to 6.5 GHz.
func TestCycle(t *testing.T) {
	if c := Cycle(); c < 1/6.5 || c > 1/0.8 {
		t.Errorf("a cycle of %.3f ns", c)
	}
}

// Sizes beyond what is used of the memory: what is measured on grows all the same, and once is enough.
func TestMeasureOfLarge(t *testing.T) {
	for _, sizes := range [][]int64{{4 << 30}, {1 << 30, 2 << 30}} {
		costs, err := Measure(sizes)
		if err != nil || len(costs) != 1 || costs[0].Bytes > 1<<30 {
			t.Errorf("%d: %+v, %v", sizes, costs, err)
		}
	}
}

// How much of it conflicts cost is the processor's: what is measured is possible.
func TestMeasureConflicts(t *testing.T) {
	const second = 1 << 20
	c, err := MeasureConflicts(second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c)
	if len(c.Steps) != len(conflictSteps) || c.Room < 32 || c.Room > second/64 {
		t.Fatalf("%+v", c)
	}
	if page := c.Steps[0]; page.Loads[1] < page.Loads[0]/2 {
		t.Errorf("lines a page apart take %+v, farther ones less", page)
	}
	for _, s := range c.Steps {
		for _, ns := range [][2]float64{s.Loads, s.Stores} {
			if !(ns[0] > 0 && ns[0] < 1000 && ns[1] > 0 && ns[1] < 5000) {
				t.Errorf("%+v", s)
			}
		}
	}
}
