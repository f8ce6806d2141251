package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// A thread that is let go runs when an idle processor has woken up, or when it has
// its turn on a busy one. How long that took is told by the first trap behind the
// hold, if that is the use, some microseconds of the thread's time later.

// mostResume bounds what a hold is charged for the wait: who waits for longer, waits
// while others run, of the target's threads or not, and has that turn later. Of a
// thousand busy threads each waits for a second between two holds, held or not.
const mostResume = time.Millisecond

// busyResume is the bound where no processor was idle: one that was asleep takes no longer to wake up. Whoever waits for longer
// there waits while another has its turn, and none of its own is lost by that.
const busyResume = 200 * time.Microsecond

// noteLetGo is called in a hold, at its end.
func (t *thread) noteLetGo(now time.Duration) {
	t.letGo, t.letGoTraps = now, t.shared.Traps
}

// noteResume takes the trap of a use for when the thread ran again, if it had none
// since it was let go. Half of what a trap costs lies before its time is taken.
func (s *timing) noteResume(t *thread, trap *sampler.Trap) {
	if trap.Traps != t.letGoTraps+1 || trap.Holds != t.shared.Holds {
		return
	}
	wait := time.Duration(trap.Time) - t.letGo - time.Duration(s.calibration.Cost/2)
	most := mostResume
	if s.busy {
		most = busyResume
	}
	s.resumes.add(min(max(wait, 0), most))
}

// resumed is how long all holds' threads waited to run again: those without such a
// trap waited as long as the others.
func (s *timing) resumed() time.Duration {
	if s.resumes.last.n == 0 {
		return 0
	}
	return s.resumes.sum / time.Duration(s.resumes.last.n) * time.Duration(s.held.last.n)
}
