package collector

import "github.com/rdx-profiler/rdx/model"

// account counts what was lost, and keeps the first error and what the user is to be told. It
// belongs to the tracing thread.
type account struct {
	losses    map[model.CountName]int64
	err       error    // the first that ended the session early
	failed    bool     // the session can't go on
	warnings  []string // not yet in a Progress
	outlivedN int      // observations whose thread or memory was gone before a reuse
}

// fail remembers the first error; the session goes on with what it has.
func (s *account) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Failure is the error of a session that could not go on: what it sampled by is
// gone. Its profile ends there.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

// abort ends the session. Its error comes before others.
func (s *account) abort(err error) {
	s.err = Failure{err}
	s.failed = true
}

// lose counts a sample that did not become an observation.
func (s *account) lose(why model.Reason) { s.losses[model.LostBecause.Of(why)]++ }

// loseHold counts the samples of a hold that gave none.
func (s *holds) loseHold(why model.Reason) {
	s.account.losses[model.LostBecause.Of(why)] += int64(s.perHoldWanted())
}
