package ahead

import (
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/bpf"
	"github.com/rdx-profiler/rdx/sampler"
)

// stampAt is a stamp at some microseconds with a first register of its own.
func stampAt(us, first uint64, near byte) sampler.Stamp {
	s := sampler.Stamp{RDXStamp: bpf.RDXStamp{Clock: us * 1000}}
	stampFirst(&s, first)
	for i, addr := range s.Pointers() {
		if addr == first {
			s.Near[i][5] = near
		}
	}
	return s
}

// memoryWith has one byte other than zero where the test's stamps have theirs.
func memoryWith(near byte) func(uint64, []byte) bool {
	return func(addr uint64, b []byte) bool {
		clear(b)
		if addr != 0 {
			b[5] = near
		}
		return true
	}
}

// like has the machine where but one waypoint is, so many of whose registers are others.
func like(waypoint, others int) func(int) (int, bool) {
	return func(i int) (int, bool) { return others, i == waypoint }
}

// A stamp is where the thread was once, with the memory near its registers; met twice
// at different accesses, it tells nothing.
func TestMeetings(t *testing.T) {
	stamps := []sampler.Stamp{stampAt(500, 1, 0), stampAt(800, 2, 0), stampAt(1200, 1, 7), stampAt(1800, 3, 0), stampAt(2700, 4, 0), stampAt(2800, 4, 0)}
	m := newMeetings(stamps)
	if open := m.open(); len(open) != 4 {
		t.Fatalf("%d stops are open, want 4: two stamps are the same", len(open))
	}
	m.at(like(0, 0), 10, 100, memoryWith(0))
	m.at(like(1, 0), 20, 200, memoryWith(0))
	m.at(like(2, 0), 30, 300, memoryWith(7))
	m.at(like(3, 0), 40, 400, memoryWith(1)) // other things lie near it, and it is the only such place
	if got, want := m.accesses(), []int{10, 20, 30, 40, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if m.at(like(1, 0), 20, 210, memoryWith(0)) {
		t.Error("as many accesses: no matter which it was")
	}
	if !m.at(like(1, 0), 50, 500, memoryWith(0)) {
		t.Error("met again, and still open")
	}
	if got, want := m.accesses(), []int{10, -1, 30, 40, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A replay goes on until the last stamp must have come, and no further.
func TestMeetingsFar(t *testing.T) {
	m := newMeetings([]sampler.Stamp{stampAt(500, 1, 0), stampAt(1000, 2, 0)})
	m.open()
	if got := m.far(); got != perNS*1_000_000 {
		t.Errorf("nothing met: %d instructions", got)
	}
	m.at(like(0, 0), 10, 500_000, memoryWith(0))
	if got := m.far(); got != 3*1_000_000 {
		t.Errorf("one instruction a nanosecond: %d", got)
	}
	m.at(like(1, 0), 20, 2_000_000, memoryWith(0))
	if got := m.far(); got != beyond*2_000_000 {
		t.Errorf("the last met after 2,000,000 instructions: %d", got)
	}
	// A program whose rounds are all the same was met in its first one.
	m.fast = 3
	if got := m.far(); got != beyond*2_000_000 {
		t.Errorf("at most 1.5 times as fast as it was met: %d", got)
	}
	m.fast = 8
	if got := m.far(); got != int(beyond*8*1_000_000) {
		t.Errorf("four times as fast as it was met: %d", got)
	}
}

// Where what was read late is another by then it goes by the place that is the most like the stamp, if there is but one: where two
// or three registers differ by all stamps together, which were all about as fast to come to.
func TestMeetingsLikest(t *testing.T) {
	type at struct{ waypoint, others, accesses, instructions int }
	for _, c := range []struct {
		name string
		way  []at
		want []int
	}{
		{"one register", []at{{0, 1, 10, 100}, {0, 2, 20, 200}, {1, 1, 30, 300}}, []int{10, 30, -1}},
		{"all registers, later", []at{{0, 1, 10, 100}, {0, 1, 20, 200}, {0, 0, 30, 300}}, []int{30, -1, -1}},
		{"one register twice", []at{{0, 1, 10, 100}, {0, 1, 20, 200}, {0, 2, 30, 300}}, []int{-1, -1, -1}},
		{"two registers, steadily", []at{{0, 2, 10, 1000}, {1, 2, 20, 2100}, {2, 3, 30, 2900}}, []int{10, 20, 30}},
		{"two registers, without the last", []at{{0, 2, 10, 1000}, {1, 2, 20, 2100}}, []int{-1, -1, -1}},
		{"two registers, too soon", []at{{0, 2, 10, 1000}, {1, 2, 20, 2100}, {2, 2, 22, 2150}}, []int{-1, -1, -1}},
		{"two registers twice, then three", []at{{0, 2, 10, 1000}, {0, 2, 15, 1500}, {0, 3, 17, 1700}, {1, 2, 20, 2100}, {2, 2, 30, 2900}}, []int{-1, -1, -1}},
		{"four registers", []at{{0, 4, 10, 1000}, {1, 2, 20, 2100}, {2, 2, 30, 2900}}, []int{-1, -1, -1}},
	} {
		m := newMeetings([]sampler.Stamp{stampAt(500, 1, 0), stampAt(1000, 2, 0), stampAt(1500, 3, 0)})
		m.open()
		for _, a := range c.way {
			if m.at(like(a.waypoint, a.others), a.accesses, a.instructions, memoryWith(1)) {
				m.open()
			}
		}
		if got := m.accesses(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
