package collector

import (
	"fmt"
	"time"

	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// tracing is the tracing thread, as those see it who run on it.
type tracing struct {
	account *account

	tracer  *ptrace.Tracer
	start   time.Time // of the session
	closing bool      // nothing new is begun
}

// events are what the tracer tells (ptrace.Handler): threads that come and go, and their stops.
type events struct {
	*targets
	*handler
}

// begin begins the session.
func (s *tracing) begin(tracer *ptrace.Tracer, now time.Time) { s.tracer, s.start = tracer, now }

// close has nothing new begun from here on.
func (s *tracing) close() { s.closing = true }

// once has f called on the tracing thread, between two stops. What was to be called so and has not been is forgotten.
func (s *tracing) once(after time.Duration, f func()) {
	if err := s.tracer.Once(after, f); err != nil {
		s.account.fail(err)
	}
}

// Stops that come with being traced are outside of the budget, which samples are
// taken by: to save in samples what they take would leave none of processes that
// live for milliseconds. The account has them, beside that of samples.

// stopCost is how many stops there were and what they took.
type stopCost struct {
	n       uint64
	heldFor time.Duration
}

// stopped is how long threads stood still in stops: while they were served, and
// as long as for most holds (the median) to wake the tracing thread before, if it was to be, and to
// run again afterwards. In a session without holds these two are not known and not in it.
func (s *timing) stopped(counted ptrace.StopCounts) stopCost {
	return stopCost{counted.N, counted.Served + time.Duration(counted.Woke)*s.wakes.quantile(.5) + time.Duration(counted.N)*s.resumes.quantile(.5)}
}

// comment is the account's line about them, given the target's CPU time in ns; "" if there were none.
func (c stopCost) comment(cpu uint64) string {
	if c.n == 0 {
		return ""
	}
	return fmt.Sprintf("stops at fork, exec, new threads, signals and ends of processes: %d, which took %v, %s CPU time, besides; --overhead does not bound them",
		c.n, c.heldFor.Round(time.Microsecond), ofTarget(2, float64(c.heldFor), float64(cpu)))
}
