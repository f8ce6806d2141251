package collector

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// profilerCost is the profiler's own CPU time. Where a processor is idle it takes nothing from the target; where none is, it runs in
// the place of somebody. The account of samples does not have it.
type profilerCost struct {
	before time.Duration // at the start of the session
	total  time.Duration // since then, as last looked
	full   time.Duration // of it, while no processor was idle
}

// begin is called at the start of the session.
func (o *profilerCost) begin(now time.Duration) { o.before = now }

// look is to be called again and again. allBusy says whether no processor is idle now; the time since the last
// look is taken to be like that.
func (o *profilerCost) look(now time.Duration, allBusy bool) {
	spent := now - o.before - o.total
	o.total += spent
	if allBusy {
		o.full += spent
	}
}

// profilerTime is this process's CPU time.
func profilerTime() time.Duration { return clockTime(unix.CLOCK_PROCESS_CPUTIME_ID) }

// comment says what it was, of a target that ran for so many ns, beside an account of that share.
func (o *profilerCost) comment(cpu uint64, account float64) string {
	most := ""
	if float64(o.full) <= sane*float64(cpu) {
		most = fmt.Sprintf(", so that with the account it is %.2f%% at most", 100*(account+float64(o.full)/float64(max(cpu, 1))))
	}
	return fmt.Sprintf("the profiler's own CPU time: %v, %s, %.0f%% of it while no processor was idle%s; symbols are still to come",
		o.total.Round(time.Millisecond), ofTarget(1, float64(o.total), float64(cpu)), 100*float64(o.full)/float64(max(o.total, 1)), most)
}

// sane is above which times the target's CPU time something is not told in per cent any more.
const sane = 10

// ofTarget is a time beside the CPU time of a target, both in ns, with so many decimals. A target may have used none.
func ofTarget(decimals int, spent, cpu float64) string {
	switch {
	case cpu <= 0:
		return "as against none of the target's"
	case spent > sane*cpu:
		return fmt.Sprintf("more than %d times the target's", sane)
	}
	return fmt.Sprintf("%.*f%% of the target's", decimals, 100*spent/cpu)
}
