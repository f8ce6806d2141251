package collector

import "time"

// HoldTime is the q-quantile of how long a thread was held for a sample, over
// the last few thousand; 0 if there were none. Valid after Wait.
func (s *Session) HoldTime(q float64) time.Duration { return s.held.quantile(q) }
