package collector

import (
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

const (
	// The constant of two traps is measured again so often, in the tracing
	// thread, by so many immediate reuses: about a millisecond.
	recalibrateEvery = 10 * time.Second
	recalibrations   = 20
)

// recalibrate follows the constant of two traps, which other load on the
// machine moves.
func (s *sampling) recalibrate() {
	if s.watches.none != nil {
		return
	}
	now := sampler.Monotonic()
	if s.timing.calibrated == 0 {
		s.timing.calibrated = now
	}
	if now-s.timing.calibrated < recalibrateEvery {
		return
	}
	s.timing.calibrated = now
	times, _, err := s.kernel.ImmediateReuses(recalibrations, s.pair)
	if err != nil {
		s.account.lose(model.ConstantUnknown)
		return
	}
	if len(times) > 0 {
		s.timing.calibration = s.timing.calibration.Join(times)
	}
}
