package collector

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// ErrInterrupted says that the context was over before the first sample. A program that was to be
// started has not been.
var ErrInterrupted = errors.New("interrupted before the first sample")

// interrupted says whether it is.
func (c *Config) interrupted() error {
	if c.Context != nil && c.Context.Err() != nil {
		return ErrInterrupted
	}
	return nil
}

// findTargets replaces the numbers, which may be of threads, by those of their processes.
func (c *Config) findTargets() error {
	var found []int
	var failed error
	for _, id := range append([]int{c.PID}, c.Others...) {
		pid, err := ptrace.FindTarget(id)
		if err == nil && pid == os.Getpid() {
			err = errors.New("attach: a profiler cannot hold itself")
		}
		if err != nil {
			if failed = err; !c.Found {
				return err
			}
			continue
		}
		if !slices.Contains(found, pid) {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		return failed
	}
	c.PID, c.Others = found[0], found[1:]
	return nil
}

// prepareTime bounds what a target with a hundred gigabytes takes.
const prepareTime = time.Second

// prepare finds out what can be read of the targets at no risk, before they are traced: as long as that is not known,
// and the user may not look whether pages are there, samples would be lost.
func (s *targets) prepare() {
	if s.cfg.PID == 0 {
		return
	}
	end := time.Now().Add(prepareTime)
	for _, pid := range append([]int{s.cfg.PID}, s.cfg.Others...) {
		s.locate.Await(ptrace.Living(pid), time.Until(end))
	}
}

// seize attaches to the processes, or to the one that was started. Call it on the tracing thread.
func (s *targets) seize() error {
	defer func() { s.attached = len(s.threads) }()
	if s.child != 0 {
		return s.tracing.tracer.Seize(s.child)
	}
	var failed error
	seized := 0
	for _, pid := range append([]int{s.cfg.PID}, s.cfg.Others...) {
		switch err := s.tracing.tracer.Seize(pid); {
		case err == nil:
			seized++
		case !s.cfg.Found:
			return err
		default:
			failed = err
			s.account.lose(model.NotAttached)
		}
	}
	if seized == 0 {
		return failed
	}
	return nil
}
