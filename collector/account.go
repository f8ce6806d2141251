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
func (s *account) lose(why model.Reason) { s.count(model.LostBecause.Of(why), 1) }

// count adds to what the profile will have under a name.
func (s *account) count(name model.CountName, n int64) { s.losses[name] += n }

// warn has the user told something before the session is over.
func (s *account) warn(text string) { s.warnings = append(s.warnings, text) }

// takeWarnings takes those that nobody was told of yet.
func (s *account) takeWarnings() []string {
	told := s.warnings
	s.warnings = nil
	return told
}

// tells says whether there is anything that whoever waits should know at once.
func (s *account) tells() bool { return s.failed || len(s.warnings) > 0 }

// loseHold counts the samples of a hold that gave none.
func (s *holds) loseHold(why model.Reason) {
	s.account.count(model.LostBecause.Of(why), int64(s.perHoldWanted()))
}
