package estimate

import (
	"testing"

	"github.com/rdx-profiler/rdx/collector/target"
)

// A draft of a profile, by which its rate is foretold, has no stacks: of who takes a word from whom neither.
func TestDraftHasNoStacks(t *testing.T) {
	m := recorder{stage: &stage{bare: true}}
	if s := m.stackAt(&target.Process{}, 1, 0x1000); s != nil {
		t.Errorf("a stack of %d", len(s))
	}
}
