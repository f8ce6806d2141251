package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// HoldTime is the q-quantile of how long a thread was held for a sample, over
// the last few thousand; 0 if there were none. Valid after Wait.
func (s *Session) HoldTime(q float64) time.Duration { return s.sampling.timing.held.quantile(q) }

// ProgramTimes are what the kernel took to run the BPF programs, if that was
// counted. Valid after Wait.
func (s *Session) ProgramTimes() ([]sampler.ProgramTime, error) {
	return s.unloaded.times, s.unloaded.noTimes
}

// Choice is what a session took, and why nothing better.
type Choice struct {
	Name string `json:"name"`
	// Best: it is as good as rdx can use.
	Best bool   `json:"best"`
	Why  string `json:"why,omitempty"` // "" if it was the first choice
}

// Choices are the session's source and clock.
func (s *Session) Choices() (source, clock Choice) {
	return s.sampling.src.choice(), s.sampling.timing.choice()
}

func (s *sourceState) choice() Choice {
	return choice(s.source.Name(), s.source.Unit() == sampler.Accesses || s.source.Reports() != sampler.NoAccess, s.whySource)
}

func (s *timing) choice() Choice {
	return choice(s.clock.Name, s.clock.Unit == sampler.Accesses, s.why)
}

func choice(name string, best bool, why error) Choice {
	c := Choice{Name: name, Best: best}
	if why != nil {
		c.Why = oneLine(why).Error()
	}
	return c
}
