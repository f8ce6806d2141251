package estimate

import "math"

// Totals sum over threads that are gone.
type Totals struct {
	CPU     uint64  // ns in which the thread ran, as far as ticks tell
	Ticked  float64 // in the source's unit: the ticks' periods added up
	Unheld  float64 // of ticked: when nothing could hold the thread
	Counted float64 // likewise: by the source's own count, 0 if it has none
	Cut     float64 // likewise: counted at most in periods that made no tick
	Clock   float64 // in the clock's unit
	Tally   float64 // in its own
	Tallied float64 // of ticked: of threads with a tally
	Traps   uint64  // of watchpoints
	Spent   uint64  // ns in their programs
	Shared  uint64  // ns in which the source's counter was not counting
	Blind   int     // threads of which it can't be told whether their source was throttled
	// Throttles is how often the kernel stopped an event of the source, and stopped
	// for how many ns altogether, at most.
	Throttles, Stopped uint64
	Unclock            int // threads whose clock could not be read
}

// UnheldTime is the CPU time, in ns, in which nothing could hold the threads.
func (sum Totals) UnheldTime() uint64 {
	return uint64(math.Round(float64(sum.CPU) * (sum.Unheld / max(sum.Ticked, 1))))
}

// PerTally is how much of the source's unit goes with a count of the tallies, 0 if there
// are none.
func (sum Totals) PerTally() float64 {
	if sum.Tally == 0 {
		return 0
	}
	return sum.Tallied / sum.Tally
}

// Missed is how many ticks did not come for what was counted: throttled by the
// kernel, or given up by rdx beyond what it knows of.
func (sum Totals) Missed(period float64) uint64 {
	return uint64(max((sum.Counted-sum.Ticked-sum.Cut)/period, 0))
}
