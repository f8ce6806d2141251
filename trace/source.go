package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// Source reads a trace access by access: an AccessReader. What Damage
// lists is an error at the end, unless Partial is set.
type Source struct {
	Partial bool // use what there is of a damaged trace

	r     *Reader
	batch []model.Access
	err   error
}

// NewSource reads from where the reader stands.
func NewSource(r *Reader) *Source { return &Source{r: r} }

var _ BatchReader = (*Source)(nil)

// Next reads the next access and reports whether there is one.
func (s *Source) Next() bool {
	if len(s.batch) > 1 {
		s.batch = s.batch[1:]
		return true
	}
	return s.NextBatch() != nil
}

// NextBatch is the next accesses, nil if there are none. They stay valid until
// the next call.
func (s *Source) NextBatch() []model.Access {
	if s.batch = nil; s.err == nil {
		_, s.batch, s.err = s.r.Next()
	}
	return s.batch
}

// Record returns the access that Next has read. Lines there are none.
func (s *Source) Record() (*model.Access, *BadLine) { return &s.batch[0], nil }

// Err is the error that ended reading, nil at the end of a whole trace.
func (s *Source) Err() error {
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		return s.err
	}
	if d := s.r.Damage(); len(d) > 0 && !s.Partial {
		return fmt.Errorf("%d parts of the trace could not be read, the first at %s", len(d), d[0])
	}
	return nil
}

// Touches reads all that is left as touches, as RunTouches does of a program: each
// is called on another goroutine. Its first error ends the reading.
func (s *Source) Touches(blocks model.Granularity, each func(*model.Touches) error) error {
	t := newToucher(blocks)
	return readBatches(s, t.start, t, each)
}
