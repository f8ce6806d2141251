package collector

// fail remembers the first error; the session goes on with what it has.
func (s *Session) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Failure is the error of a session that could not go on: what it sampled by is
// gone. Its profile ends there.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

// abort ends the session. Its error comes before others.
func (s *Session) abort(err error) {
	s.err = Failure{err}
	s.failed = true
}

// lose counts a sample that did not become an observation.
func (s *Session) lose(reason string) { s.losses["lost: "+reason]++ }

// loseHold counts the samples of a hold that gave none.
func (s *Session) loseHold(reason string) { s.losses["lost: "+reason] += int64(s.perHoldWanted()) }
