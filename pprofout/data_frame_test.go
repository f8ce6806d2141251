package pprofout

import (
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// A datum on a stack whose frame was not found has no function's name.
func TestFunctionAt(t *testing.T) {
	stack := []*model.Location{{Lines: []model.Line{{Function: "inner"}, {Function: "outer"}}}}
	for i, want := range map[int]string{-1: "an unknown function", 0: "outer", 1: "an unknown function"} {
		if got := functionAt(stack, i); got != want {
			t.Errorf("frame %d: %q, want %q", i, got, want)
		}
	}
}
