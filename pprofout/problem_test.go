package pprofout

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// A profile's comment says by its kind whether code has no name for a problem, however the error was put together.
func TestProblemComments(t *testing.T) {
	damaged := errors.New("damaged")
	for _, c := range []struct {
		err  error
		want string
	}{
		{damaged, model.SymbolsPartly + "f: damaged"},
		{noNames("2 addresses without a name: %w", damaged), model.NamesMissing + "f: 2 addresses without a name: damaged"},
		{oneLine(errors.Join(damaged, fmt.Errorf("DWARF: %w", errTooLong))), model.NamesMissing + "f: damaged; DWARF: " + errTooLong.Error()},
		{fmt.Errorf("data: %w", safeopen.ErrStalled), model.NamesMissing + "f: data: " + safeopen.ErrStalled.Error()},
	} {
		p := Problem{"f", c.err}
		if got := p.Comment(); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
