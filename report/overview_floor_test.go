package report

import (
	"slices"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// That a target's budget was more than its share of the CPU time is said in the summary.
func TestBudgetRaisedIsSaid(t *testing.T) {
	said := model.BudgetRaised + ": the budget was 4.00% of it"
	var o overview
	o.warnUnheld(&model.Profile{Comments: []string{"something else", said}})
	if !slices.Equal(o.Warnings, []string{said}) {
		t.Errorf("warnings %q", o.Warnings)
	}
}
