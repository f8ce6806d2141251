package collector

import (
	"fmt"
	"math"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// A target that uses little CPU time, such as a server that waits for requests, would have hardly any holds in a session
// of seconds: so the budget is at least a share of one CPU's time as it goes by, the floor. Of the CPU time of such a target
// that is a larger share than --overhead; but never more than mostOfIdle, so that what it does at times is not slowed much.

const (
	// mostOfIdle is the largest share of the target's CPU time that the floor comes to.
	mostOfIdle = 0.1
	// floorMemory is over how long it is judged how much of a CPU the target uses: a time constant.
	floorMemory = 10 * time.Second
)

// floor is the least budget, and what follows from it.
type floor struct {
	share float64 // of one CPU's time as it goes by; 0: there is none
	given float64 // --overhead, as a share of the target's CPU time

	cpu, at uint64 // when it was looked at last: the target's CPU time and the time, ns
	// Exponentially weighted: how long it was lately, and the CPU time in that.
	lately, ran float64
	allowed     float64 // ns that the budget came to by then
	raised      float64 // of these, by the floor
}

// look takes how much the target has run until now, and returns the share of its CPU time that is its budget from now on.
func (f *floor) look(cpu uint64, now time.Duration) (share float64) {
	if f.share == 0 {
		return f.given
	}
	if f.at == 0 {
		f.at = uint64(now)
	}
	passed, ran := float64(uint64(now)-f.at), float64(cpu-min(f.cpu, cpu))
	fade := math.Exp(-passed / float64(floorMemory))
	f.lately, f.ran = f.lately*fade+passed, f.ran*fade+ran
	share = f.given
	if f.ran > 0 {
		share = max(f.given, min(f.share*f.lately/f.ran, mostOfIdle))
	}
	f.allowed += share * ran
	f.raised += (share - f.given) * ran
	f.cpu, f.at = cpu, uint64(now)
	return share
}

// allows is how many ns the budget comes to when the target has run for cpu, of which the share from the last look on counts.
func (f *floor) allows(cpu uint64, share float64) float64 {
	if f.share == 0 {
		return share * float64(cpu)
	}
	return f.allowed + share*float64(cpu-min(f.cpu, cpu))
}

// comment is the account's line about it, "" where it made no difference.
func (f *floor) comment(cpu uint64) string {
	if f.raised < 0.1*f.given*float64(cpu) || cpu == 0 {
		return ""
	}
	return fmt.Sprintf(model.BudgetRaised+": the budget was %.2f%% of it, not %.2f%%, to come to %.2f%% of one CPU (--overhead-floor)",
		100*f.allowed/float64(cpu), 100*f.given, 100*f.share)
}
