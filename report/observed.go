package report

import (
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// Observed says whether there is anything to draw a curve of.
func Observed(p *model.Profile) bool {
	return slices.ContainsFunc(p.Records, func(r model.Record) bool {
		return r.Kind != model.Lost && !r.Kind.OfLine() && r.Accesses > 0
	})
}
