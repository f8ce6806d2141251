package report

import (
	"fmt"

	"github.com/rdx-profiler/rdx/model"
)

// noSample is what explain has found.
func noSample(p *model.Profile) string {
	for _, why := range p.Said(model.NoSample) {
		return why
	}
	return ""
}

// lossAdvice is what to do about losses, by their reason.
func lossAdvice(reason model.Reason) string {
	switch {
	case reason == model.SignalsBlocked:
		return "" // it has been given
	case reason.NeedsRegister():
		return "; others use some of the processor's four, a debugger's watchpoints or another profiler: --slots 3, or fewer, leaves them theirs"
	}
	return "; profile longer"
}

// namesMissing are the reasons why code has no names, shortened for a summary.
func namesMissing(p *model.Profile) (why []string) {
	why = p.Said(model.NamesMissing)
	const most = 2
	if n := len(why) - most; n > 0 {
		why = append(why[:most], fmt.Sprintf("and %d reasons more, in the profile's comments (go tool pprof -comments)", n))
	}
	return why
}
