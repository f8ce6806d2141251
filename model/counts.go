package model

import (
	"slices"
	"strings"
)

// Count is a number that the reader of a profile must know of, under a name of the tables below.
type Count struct {
	Name CountName `json:"name"`
	N    int64     `json:"n"`
}

// CountName names a count, in words: it is what a profile's file has and what a reader is shown.
type CountName string

// CountFamily begins the names of counts that differ in why something happened.
type CountFamily string

// Reason is why: what comes behind the beginning of a family's names. Those that the kernel, the
// interpreter and the unwinder give are theirs.
type Reason string

// Of is the family's name with that reason.
func (f CountFamily) Of(why Reason) CountName { return CountName(string(f) + string(why)) }

// Why is the reason that a name of the family has; ok is false for a name of none.
func (f CountFamily) Why(n CountName) (why Reason, ok bool) {
	rest, ok := strings.CutPrefix(string(n), string(f))
	return Reason(rest), ok
}

// Has says whether the name is of the family.
func (f CountFamily) Has(n CountName) bool {
	_, ok := f.Why(n)
	return ok
}

// Families of counts.
const (
	LostBecause CountFamily = "lost: " // samples that did not become observations
	// NotWatched is of observations that could not be watched in all threads, so that only what
	// was read ahead of them is known.
	NotWatched   CountFamily = "not watched in all threads, but read ahead of: "
	BurstEnded   CountFamily = "bursts ended: "
	StackCut     CountFamily = "stacks cut short: "
	ProbeWithout CountFamily = "access rate: probes without a rate: "
	LapsLost     CountFamily = "laps behind holds not timed: "
)

// What ticks, holds and the draw came to.
const (
	Samples         CountName = "samples"
	Candidates      CountName = "candidates"
	DrawLost        CountName = "candidates that lost the draw for a slot"
	HeldAlready     CountName = "candidates of a thread on hold"
	Holds           CountName = "holds"
	HoldInterrupts  CountName = "holds by interrupt"
	HoldsInSyscall  CountName = "holds that came in a system call"
	OtherStops      CountName = "stops besides holds"
	TicksPassedOver CountName = "ticks passed over until a new thread had its period"
	TicksLate       CountName = "first ticks passed over, their thread having been in the kernel at their time"
	TicksStepping   CountName = "ticks while stepping over a watchpoint"
	TicksInKernel   CountName = "ticks of the source in the kernel"
	TicksNoMemory   CountName = "ticks of the source without a memory access"
	ReadAhead       CountName = "accesses read ahead"
	ReadTime        CountName = "bursts that read the processor's clock, whose time there is a guess"
	NoSlot          CountName = "samples without a slot, in whose place others of the time are watched"
	NoReuseLeft     CountName = "observations that can have no reuse, their thread or memory being gone"
	Unsmeared       CountName = "timed reuses near the clock's resolution, placed by their distribution without the traps' noise"
	RateProbes      CountName = "access rate: probes"
)

// CPU time, in nanoseconds.
const (
	CPUTarget CountName = "CPU time of the target, ns"
	// CPUSampled is what the samples were drawn from; the other two are what they could not be
	// drawn from.
	CPUSampled CountName = "CPU time sampled, ns"
	CPUMasked  CountName = "CPU time not sampled, of threads that block all signals, ns"
	CPUWaiting CountName = "CPU time not sampled, of threads that block all signals and have waited within 10 ms, ns"
	// CPUChildren is that of child processes of a program that was started, where they are not
	// followed.
	CPUChildren CountName = "CPU time of child processes, which were not followed, ns"
	CPUWatched  CountName = "CPU time of the target with words watched, ns"
	CPUNoSource CountName = "CPU time without a source, ns"
)

// IsCPUTime says whether a count is of CPU time.
func (n CountName) IsCPUTime() bool {
	return slices.Contains([]CountName{CPUTarget, CPUSampled, CPUMasked, CPUWaiting, CPUChildren, CPUWatched, CPUNoSource}, n)
}

// The source of accesses, where the kernel did not let it go on.
const (
	SourceUncounted  CountName = "accesses that the source did not count, throttled or without a counter"
	SourceShared     CountName = "source's counter shared with others, ns"
	SourceUnweighed  CountName = "source throttled without a clock that counts: weights do not make up for it, ns"
	SourceThrottles  CountName = "times the kernel throttled the source"
	SourceThrottled  CountName = "source throttled by the kernel, ns at most"
	ThreadsBlind     CountName = "threads of which it can't be told whether their source was throttled"
	ThreadsUncounted CountName = "threads of which nothing counts what a throttled source misses"
	ThreadsNeverTick CountName = "threads that ended before their first tick"
	EventsUnknown    CountName = "events of threads already gone"
)

// Watchpoints and traps.
const (
	TrapsUnawaited   CountName = "traps nobody waited for"
	TrapsStray       CountName = "traps of watchpoints that the kernel did not know as such, kept from the target"
	TrapsStrayOfRdx  CountName = "traps of rdx's own watchpoints that the kernel did not know as such"
	TrapsElsewhere   CountName = "traps in other threads"
	TrapsEarly       CountName = "traps in other threads before the use or after the end"
	TrapsOtherSpaces CountName = "traps in other processes at the same address"
	WatchesGivenUp   CountName = "watchpoints given up, as they slowed copying"
	WatchesPassed    CountName = "samples not watched, as that would slow copying"
	WatchesSpared    CountName = "times a thread's watchpoints were given up, as the kernel copied what they watch again and again"
	TrapsCopying     CountName = "traps of the kernel, as it copied what was watched; their time is not in reuse times"
	CopiesUnread     CountName = "processes that ended before it was known what they copied beside watched words"
	WatchesPruned    CountName = "watchpoints pruned"
	WordsUnwatched   CountName = "words of lines no longer watched for a new datum's sake"
	CutOff           CountName = "observations cut off, as the traps of a CPU were used up"
)

// What several threads do.
const (
	// JoinedHolds is how many holds were joined with those of other threads, by cache line: then
	// the profile tells of lines that others write, and not of words alone.
	JoinedHolds CountName = "holds joined by line with those of other threads"
	// TurnHolds is of how many of these the threads wait for each other, by what they take from each other.
	TurnHolds CountName = "holds joined by line of threads that wait for each other"
	// SwiftHolds is of how many of these lines come back sooner than they go from processor to processor, by what is taken of them.
	SwiftHolds CountName = "holds joined by line of which lines come back sooner than they can move"
	// LateHolds is of how many of these the others had no processor as other programs had it.
	LateHolds CountName = "holds joined by line while other programs had the other threads' processors"
	// ApartAccesses is the standard error of what threads take from each other, in accesses, as it is not known whether they work on
	// the same data at the same times.
	ApartAccesses CountName = "accesses that may find their line written or not, by whether threads are at work on it at the same times"
	// FalseSharingUnknown is how many observations could have told of false sharing, where
	// none did.
	FalseSharingUnknown CountName = "observations of whose line no other word could be watched, so that false sharing is not known"
	LinesUnwatched      CountName = "observations of whose line no other word was watched, for which others stand"
	ReusesLeftOut       CountName = "reuses read ahead left out, as other threads came first where others of the same code were watched"
)

// Call stacks and the heap.
const (
	Stacks          CountName = "stacks"
	StacksNotCopied CountName = "stacks not copied at a trap"
	// StacksShortened is how many stacks were too deep for the fleet's back end, or had to be
	// shorter for there to be no more samples than a server takes.
	StacksShortened CountName = "stacks cut short for the fleet's back end"
	BlocksAllocated CountName = "blocks allocated"
	BlocksNotKept   CountName = "blocks not kept, table full"
)

// Exact profiles.
const (
	// ExactAccesses are the program's; an exact profile's touches are more, one for each block
	// that an access overlaps.
	ExactAccesses  CountName = "accesses of the program"
	ExactBlocks    CountName = "distinct blocks"
	ExactForgotten CountName = "touches of rare pairs, whose places were forgotten"
)

// Why a sample is lost, or an observation not watched.
const (
	SignalsBlocked   Reason = "thread blocks the hold signals"
	SignalsWaited    Reason = "thread blocks the hold signals, and has waited within 10 ms"
	SignalsInSyscall Reason = "thread that blocks the hold signals in a system call"
	SignalNotSent    Reason = "hold signal not sent"
	SignalOfTarget   Reason = "the target's own signal came first"
	HoldsTooMany     Reason = "too many holds a second"
	HoldWithoutStop  Reason = "hold did not stop the thread"
	HeldUnreadable   Reason = "held thread not readable"
	TicksMissed      Reason = "ticks throttled or without a free counter"
	NoAddress        Reason = "access without an address"
	ReportDropped    Reason = "report of the access dropped, ring full"
	TrapDropped      Reason = "trap record dropped, ring full"
	TrapWithoutTime  Reason = "trap without a time"
	TrapOfGoneThread Reason = "trap of a thread that is gone"
	TrapOfGoneWatch  Reason = "trap of a watchpoint that is gone"
	UseDropped       Reason = "record of the use dropped"
	UseNotSeen       Reason = "use not seen"
	UseElsewhere     Reason = "use by another instruction"
	HandlerBetween   Reason = "signal handler between the trap of a use and the use"
	EndUnknown       Reason = "end not known"
	CountersUnread   Reason = "threads whose counters could not be read"
	ClockUnread      Reason = "clock not readable"
	WatchClockUnread Reason = "watchpoint clock not readable"
	ClockStood       Reason = "clock stood still between use and reuse"
	ClockBackwards   Reason = "clock ran backwards between use and reuse"
	ConstantUnknown  Reason = "constant of two traps not measured again"
	ThreadNotSampled Reason = "thread not sampled"
	NotAttached      Reason = "process not attached to"
	NotInAllThreads  Reason = "not watched in all threads"
	NotArmed         Reason = "watchpoint not armed"
	NoBreakpoint     Reason = "no breakpoint where the thread goes on"
	SlowsCopying     Reason = "not watched, as that would slow copying"
	TouchedOften     Reason = "word touched too often before the use" // each would be a trap
	NoRegister       Reason = "no free debug register"
	RegistersAwaited Reason = "debug registers of the CPUs still to be had"
	RegistersRefused Reason = "debug registers of a CPU taken by another process"
	RegisterFailed   Reason = "debug register of a CPU could not be moved"
	ThreadsRefused   Reason = "debug registers of a thread taken by another process"
)

// NeedsRegister says whether a reason is that others had the processor's debug registers.
func (w Reason) NeedsRegister() bool {
	return slices.Contains([]Reason{NoRegister, RegistersAwaited, RegistersRefused, RegisterFailed, ThreadsRefused}, w)
}

// Why a probe of the access rate gave none.
const (
	ProbeUnended     Reason = "session ended"
	ProbeUnreadable  Reason = "process not readable"
	ProbeNotRun      Reason = "not run on in time"
	ProbeMoments     Reason = "moments not told apart"
	ProbeAnotherHold Reason = "another hold came"
	ProbeTraps       Reason = "too much time taken by traps"
)

// CountOf is the number of that name, 0 if there is none.
func (p *Profile) CountOf(name CountName) int64 {
	for _, c := range p.Counts {
		if c.Name == name {
			return c.N
		}
	}
	return 0
}

// AddCount adds a count to the profile, unless it is 0.
func (p *Profile) AddCount(name CountName, n uint64) {
	if n > 0 {
		p.Counts = append(p.Counts, Count{Name: name, N: int64(n)})
	}
}

// Lost is how many samples were lost, for any reason.
func (p *Profile) Lost() (n int64) {
	for _, c := range p.Counts {
		if LostBecause.Has(c.Name) {
			n += c.N
		}
	}
	return n
}
