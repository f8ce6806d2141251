package collector

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// A thread that is let go waits for its turn on a CPU. The kernel counts the wait
// (/proc/PID/task/TID/schedstat); it is looked up for one hold in resumeEvery,
// and the lower quartile of what was found is taken for all of them, as the
// thread may also have waited for others between two holds. The kernel begins to
// count when the CPU queues the thread: that an idle one has to wake up first is
// not in it.
const resumeEvery = 16

// mostResume bounds what a hold is charged for the wait: who waits for longer, waits
// while others run, of the target's threads or not, and has that turn later. Of a
// thousand busy threads each waits for a second between two holds, held or not.
const mostResume = time.Millisecond

// noteResume is called in a hold, at its end.
func (s *Session) noteResume(t *thread) {
	switch t.shared.Holds % resumeEvery {
	case 0:
		t.waited, t.waiting = runDelay(t.process.pid, t.tid)
	case 1:
		if now, ok := runDelay(t.process.pid, t.tid); ok && t.waiting && now >= t.waited {
			s.resumes.add(now - t.waited)
		}
		t.waiting = false
	}
}

// resumed is how long all holds' threads waited to run again.
func (s *Session) resumed() time.Duration {
	return time.Duration(s.held.last.n) * min(s.resumes.quantile(.25), mostResume)
}

// runDelay is how long the thread has waited to run so far.
func runDelay(pid, tid int) (time.Duration, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(n), err == nil
}
