package model

import (
	"slices"
	"time"
)

// Kind says how the observation of one use ended.
type Kind uint8

const (
	Reuse       Kind = iota // the same thread touched the block again
	Cold                    // the access was the block's first
	Censored                // observation ended before any reuse
	Invalidated             // another thread wrote the block first
	Pruned                  // given up on purpose, see Record.Time for when
	Lost                    // the profiler failed; nothing is known
	// Records of the following kinds tell of the cache line of accesses whose outcome, for the
	// block itself, other records tell: sums over accesses leave them out, see Kind.Beside.
	FalseSharing   // another thread wrote the line first, where the thread itself does not touch it
	TrueSharing    // another thread wrote the line first, where the thread touches it, too
	UnknownSharing // whether another thread wrote the line first is not known
	NumKinds
)

// Beside says whether records of the kind are no outcome of an access.
func (k Kind) Beside() bool { return k == FalseSharing || k == TrueSharing || k == UnknownSharing }

var kindNames = [NumKinds]string{"reuse", "cold", "censored", "invalidated", "pruned", "lost", "false_sharing", "true_sharing", "unknown_sharing"}

func (k Kind) String() string {
	if k >= NumKinds {
		return "unknown"
	}
	return kindNames[k]
}

// ParseKind is the inverse of Kind.String; ok is false for any other word.
func ParseKind(s string) (k Kind, ok bool) {
	for i, n := range kindNames {
		if n == s {
			return Kind(i), true
		}
	}
	return 0, false
}

// Op is what the sampled access did. A read-modify-write instruction is a
// load and a store; the sample is one of the two.
type Op uint8

const (
	OpUnknown Op = iota
	Load
	Store
)

func (o Op) String() string {
	switch o {
	case Load:
		return "load"
	case Store:
		return "store"
	}
	return ""
}

// StackKind says in which LRU stack the end of a use was looked for.
type StackKind uint8

const (
	StackOwn     StackKind = iota // the thread's own, other threads not looked at
	StackPrivate                  // the thread's own, in which other threads' writes invalidate
	StackShared                   // one of all threads: a reuse is anybody's
	numStackKinds
)

var stackNames = [numStackKinds]string{"own", "private", "shared"}

func (k StackKind) String() string {
	if k >= numStackKinds {
		return "unknown"
	}
	return stackNames[k]
}

// ParseStackKind is the inverse of StackKind.String; ok is false for any other
// word.
func ParseStackKind(s string) (k StackKind, ok bool) {
	i := slices.Index(stackNames[:], s)
	return StackKind(max(i, 0)), i >= 0
}

// Mapping is one executable mapping of the target, as in /proc/PID/maps.
type Mapping struct {
	Start, Limit, Offset uint64
	File                 string // as the target sees it; "[vdso]", "" for anonymous memory
	BuildID              string // hex of the GNU or Go build ID, "" if there is none
}

// Line is one source position. A Location has several where functions were
// inlined, the innermost first.
type Line struct {
	Function   string // demangled
	SystemName string // as in the symbol table
	File       string
	Line       int
	StartLine  int
}

// Location is one frame. Locations are shared between records: one per
// address and mapping.
type Location struct {
	Address uint64 // in the target's address space; 0 for a pseudo-frame
	Mapping *Mapping
	Lines   []Line // empty until symbolized
}

// Latency is the sum over all accesses that some uses stand for of the cycles
// that they took. It is no part of a Record, for a record is shown where the reuse
// is, and cycles where they are lost.
type Latency struct {
	Use        []*Location // leaf first
	Op         Op
	TID        int
	DataSource string
	Cycles     float64
}

// Record is what was seen of one use, or of several alike.
//
// The derived fields are filled in by Derive and are zero before it.
type Record struct {
	Kind  Kind
	Use   []*Location // call stack of the use, leaf first
	Reuse []*Location // of the reuse, or of the invalidating write
	Op    Op          // of the use
	Data  *Data       // what the use accessed; nil if that was not recorded
	TID   int
	// Epoch numbers the stretches of the thread's run, in order: uses of one
	// epoch are of about the same time. 0 if that is not known.
	Epoch int
	Stack StackKind

	// EndTID is the thread of the reuse or write, if it is not TID, else 0.
	EndTID int
	// Address of the word used, and of the word that EndTID wrote; 0 where no
	// other thread had to do with it.
	Address, Written uint64

	// Time is the reuse time in accesses for Reuse and Invalidated, and for
	// Censored and Pruned the age at which the observation ended.
	Time uint64
	// Native is Time in the unit of the profile's clock.
	Native uint64
	// BelowResolution: the reuse came sooner than the clock can tell; Time
	// and Native are then upper bounds.
	BelowResolution bool
	// Exact: Time was counted by reading ahead, not timed.
	Exact bool
	// Distinct is the number of different blocks touched from the use to just
	// before the reuse, the block itself among them, where that was counted:
	// the stack distance is one less. Where the reuse came after what was read
	// ahead (not Exact), it is that number from the use on for the After accesses
	// behind it. 0 where nothing was counted.
	Distinct uint64
	// After is how many accesses behind the use were read ahead without a
	// reuse; 0 where the reuse was among them, or nothing was read ahead.
	After uint64

	// Half: after the After accesses only half of the block was watched, four
	// words with the one that was used among them. Time is that of the half. Pair says how the aligned
	// two words with the used one ended, Reuse or Censored, and PairTime when;
	// see HalfLineSurvival.
	Half     bool
	PairTime uint64
	Pair     Kind

	// Hold numbers the hold that the use was read ahead in, among those of all profiles: what was
	// seen in one hold is not independent. 0 where each observation has its own.
	Hold uint64
	// Open is what share of the accesses that were read ahead in that hold had no reuse there; 0 where that is not
	// known. What waits for its data is among them.
	Open float64
	// Group is the part of the jackknife that the record's clusters were put into when sessions
	// were packed to be merged, 1 to JackknifeGroups; 0: none yet. It takes the place of Hold.
	Group int

	Observations int64   // how many observations this record sums
	Accesses     float64 // how many of the program's accesses they stand for
	// Squares is the sum of the squares of what independent ones of them stand for, where
	// sessions of different weight were merged; 0: they are equal, see Profile.Squares.
	Squares float64

	// DataSource is where the uses found their data, "" if their source does
	// not tell. What that cost is in Profile.Latencies.
	DataSource string

	Reuses   float64   // derived: accesses with this reuse after Kaplan-Meier
	Misses   []float64 // derived: of those, predicted misses per Profile.Caches
	Distance float64   // derived: sum of stack distance over Observations after Kaplan-Meier, in bytes
}

// Estimated is how many accesses a record of Reuse or Invalidated stands for after
// Kaplan-Meier, once derived; of one that was invalidated without any cache to
// miss in it is Accesses, as of all others.
func (r *Record) Estimated() float64 {
	switch {
	case r.Kind == Reuse:
		return r.Reuses
	case r.Kind == Invalidated && len(r.Misses) > 0:
		return r.Misses[0]
	}
	return r.Accesses
}

// outcome says whether the record tells how uses ended.
func (r *Record) outcome() bool { return r.Kind != Lost && !r.Kind.Beside() }

// Cache is one level of the cache hierarchy.
type Cache struct {
	Level string // "L1d", "L2", "L3"
	Size  int64  // bytes
	Ways  int    // 0 if unknown
	Line  int    // bytes
}

// Cost is what an access costs that finds its data at one place, in ns.
type Cost struct {
	Waits   float64 // where the next address depends on it
	Streams float64 // where lines are read in order
}

// AssumedRate is the RateSource of a rate that nobody has given or measured.
const AssumedRate = "default"

// EstimatedRate is the RateSource of one that could not be measured: by the instructions that go with an access, and how many of
// these a processor makes, it lies between RateLow and RateHigh.
const EstimatedRate = "estimated"

// Clock says what reuse times are measured in.
type Clock struct {
	Name string // "cpu-time", or the name of the PMU events counted
	Unit string // of Native: "nanoseconds", "accesses"
	// Rate turns the native unit into accesses: accesses per unit. 1 for an
	// access counter.
	Rate       float64
	RateSource string // "default", "estimated", "flag", "measured"
	// RateLow and RateHigh are the ends of the rate's 95 % interval, or where it is assumed of the
	// rates that are possible; 0 where it is exact, as a count of accesses is.
	RateLow, RateHigh float64
	// Touches is how many blocks an access overlaps on average, 0 if that is not known. Reuse times
	// are in touches, one for each block, and so are weights: as an exact trace is analysed.
	Touches float64
	// PlainNS and WaitNS are how long an access is taken to last, in ns, and how much longer one that is Open, where a hold
	// stands for as many accesses as it would make in the time; 0 where how many these are is known better.
	PlainNS, WaitNS float64
	Resolution      float64 // native units below which two times cannot be told apart
}

// TouchRate turns the native unit into the unit of reuse times.
func (c *Clock) TouchRate() float64 {
	if c.Touches > 0 {
		return c.Rate * c.Touches
	}
	return c.Rate
}

// BudgetRaised begins the comment that the budget was more than its share of the CPU time.
const BudgetRaised = "the target used little CPU time"

// Profile is one profiling session, or several merged. It is all that is
// written and all that any later analysis needs.
type Profile struct {
	Start    time.Time
	Duration time.Duration
	Command  string // of the target

	Source        string  // access source: "cpu-clock", "ibs", ...
	Period        float64 // mean distance between samples, in Clock.Unit
	Clock         Clock
	Block         int // bytes that count as one datum: 8, 64, 4096
	BinsPerOctave int // resolution with which times are written
	Caches        []Cache
	// Writer is the rdx that took it, as rdx version prints it; "" if that is not known.
	Writer string
	// Resident is the most memory, in bytes, that the target's processes were seen to have touched, zero pages that were
	// only read included; 0 if that is not known. No stack distance is beyond it.
	Resident int64
	// DesignEffect is how many of the observations that were read ahead tell as
	// much as one independent one: those of one hold lie close together. 0 where
	// each has its own hold.
	DesignEffect float64
	// ExactDistances: the records' distances and misses were counted access by
	// access, not derived from their times, and stay as they are.
	ExactDistances bool

	Records []Record
	// Latencies are what uses cost whose source tells.
	Latencies []Latency
	// Costs are what accesses cost on the machine, by where data were found: in the first of Caches, in each
	// other, and behind the last. Empty if that is not known.
	Costs []Cost
	// Touches are how memory is touched, and Moments where time goes, as far as that is known.
	Touches  []Touch
	Moments  []Moment
	Counts   []Count // sorted by name
	Comments []string
}

// MeanDistance is the mean stack distance of the record's reuses, in bytes;
// ok is false if it has none. It undoes the weighting of Distance, which is
// per observation while Reuses is per access.
func (r *Record) MeanDistance() (bytes float64, ok bool) {
	if r.Kind != Reuse || !(r.Reuses > 0) || !(r.Accesses > 0) || r.Observations <= 0 {
		return 0, false
	}
	return r.Distance / r.Reuses * (r.Accesses / float64(r.Observations)), true
}
