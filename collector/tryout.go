package collector

import "fmt"

// tryOut makes sure, before any target is touched, that watchpoints and clock
// work in a thread of the profiler itself.
func (s *Session) tryOut() error {
	points, err := s.kernel.ProbeWatchpoints()
	if err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	if err := points.Usable(); err != nil {
		return fmt.Errorf("start session: %w", err)
	}
	s.calibration, err = s.kernel.Calibrate(calibrations)
	return err
}
