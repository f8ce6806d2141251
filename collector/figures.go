package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/sampler"
)

// HoldTime is the q-quantile of how long a thread was held for a sample, over
// the last few thousand; 0 if there were none. Valid after Wait.
func (s *Session) HoldTime(q float64) time.Duration { return s.held.quantile(q) }

// Choice is what a session took, and why nothing better.
type Choice struct {
	Name string `json:"name"`
	// Best: it is as good as rdx can use.
	Best bool   `json:"best"`
	Why  string `json:"why,omitempty"` // "" if it was the first choice
}

// Choices are the session's source and clock.
func (s *Session) Choices() (source, clock Choice) {
	return s.choice(s.source.Name(), s.source.Unit(), s.whySource), s.choice(s.clock.Name, s.clock.Unit, s.whyClock)
}

func (*Session) choice(name, unit string, why error) Choice {
	c := Choice{Name: name, Best: unit == sampler.Accesses}
	if why != nil {
		c.Why = oneLine(why).Error()
	}
	return c
}
