package collector

import (
	"testing"
	"time"
)

// The trap of a use right behind a hold tells when the thread ran again; one behind
// other traps, or of an earlier hold, does not.
func TestNoteResume(t *testing.T) {
	const ms = uint64(time.Millisecond)
	for _, tc := range []struct {
		name  string
		time  uint64 // of the trap
		traps uint32 // with it
		holds uint32
		busy  bool
		want  time.Duration // -1: nothing is noted
	}{
		{"first trap", 5*ms + 61_500, 11, 3, false, 60 * time.Microsecond},
		{"first trap, all processors busy", 5*ms + 61_500, 11, 3, true, 60 * time.Microsecond},
		{"others ran", 9 * ms, 11, 3, false, mostResume},
		{"others had their turn", 9 * ms, 11, 3, true, busyResume},
		{"sooner than a trap takes", 5*ms + 1000, 11, 3, false, 0},
		{"a trap before it", 5*ms + 61_500, 12, 3, false, -1},
		{"held again since", 5*ms + 61_500, 11, 2, false, -1},
	} {
		s, _ := newPairing()
		s.timing.busy = tc.busy
		s.timing.calibration.Cost = 3000
		th := s.targets.byIndex[3]
		th.shared.Traps, th.shared.Holds = 10, 3
		th.noteLetGo(5 * time.Millisecond)
		trap := trapAt(use, 1000, tc.traps, 0x1004)
		trap.Time, trap.Holds = tc.time, tc.holds
		s.traps.deliver(trap)
		s.timing.held.add(time.Millisecond)
		s.timing.held.add(time.Millisecond)
		if want := max(tc.want, 0); s.timing.resumed() != 2*want || (s.timing.resumes.last.n > 0) != (tc.want >= 0) {
			t.Errorf("%s: two holds' threads waited %v, %d noted; want %v each", tc.name, s.timing.resumed(), s.timing.resumes.last.n, tc.want)
		}
	}
}
