package model

import (
	"slices"
	"strings"
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
	// block itself, other records tell: sums over accesses leave them out, see Kind.OfLine.
	FalseSharing   // another thread wrote the line first, where the thread itself does not touch it
	TrueSharing    // another thread wrote the line first, where the thread touches it, too
	UnknownSharing // whether another thread wrote the line first is not known
	NumKinds
)

// OfLine says whether records of the kind are no outcome of an access.
func (k Kind) OfLine() bool { return k == FalseSharing || k == TrueSharing || k == UnknownSharing }

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

// IsFile says whether the mapping is of an ELF image; nil is of none.
func (m *Mapping) IsFile() bool {
	if m == nil {
		return false
	}
	return m.File == "[vdso]" || m.File != "" && !strings.HasPrefix(m.File, "[") && !strings.HasPrefix(m.File, "//anon") && !strings.HasPrefix(m.File, "anon_inode:")
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

// Cache is one level of the cache hierarchy.
type Cache struct {
	Level string // "L1d", "L2", "L3"
	Size  int64  // bytes
	Ways  int    // 0 if unknown
	Line  int    // bytes
	// Assumed: neither the kernel nor the processor tells the size, as on some virtual machines.
	Assumed bool
}

// FoundWithin is how many bytes of data a program can go through and still find them at what the machine's cache of
// this number costs: its size, or less.
func (p *Profile) FoundWithin(cache int) int64 {
	size := p.Caches[cache].Size
	if cache < len(p.Costs) && p.Costs[cache].Within > 0 {
		return min(size, p.Costs[cache].Within)
	}
	return size
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
	// Rate turns the native unit into accesses: accesses per unit, of CPU time with what the kernel takes of it. 1
	// for an access counter.
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
	// WaitWithin is the factor within which WaitNS is known, with 95 %; 0: not at all.
	WaitWithin float64
	// ColdNS is what was taken out of timed reuses for each block that was fetched again after a hold, in ns; 0: nothing.
	ColdNS float64
	// Misplaced is the factor within which miss ratios are known, with 95 %, as each hold is to tell of as long a time, and how long
	// accesses wait is known within bounds only; 0: that is not known.
	Misplaced float64
	// ColdWithin is the factor within which ColdNS is known, with 95 %, were the rate; 0: within eight.
	ColdWithin float64
	// ColdByRate is by which share of it more ColdNS would be if accesses took no time: it is what stretches of known accesses took beyond
	// the time of these. 0: it does not hang on the rate.
	ColdByRate float64
	// WaitsLow and WaitsHigh are the ends of the 95 % interval of the share of the time in user mode in which data are waited for, by how
	// much slower the program is, as far as that is known, than a model of the processor says of code whose lines are near; WaitsError is the
	// standard error of the logarithm of that, 0 where nothing is known of it.
	WaitsLow, WaitsHigh, WaitsError float64
	Resolution                      float64 // native units below which two times cannot be told apart
}

// TouchRate turns the native unit into the unit of reuse times.
func (c *Clock) TouchRate() float64 {
	if c.Touches > 0 {
		return c.Rate * c.Touches
	}
	return c.Rate
}

// RateIs says whether the rate, or that of one of the sessions that were merged, is from a source.
func (c *Clock) RateIs(source string) bool {
	return slices.Contains(strings.Split(c.RateSource, MergedSources), source)
}

// MergedSources is between the sources of sessions that were merged.
const MergedSources = " + "

// slowest is how many times as long as at its lowest rate an access takes by the clock's own: the accesses of a stretch of time
// are so many times fewer at most.
func (c *Clock) slowest() float64 {
	if c.RateLow > 0 && c.RateLow < c.Rate {
		return c.Rate / c.RateLow
	}
	return 1
}

// CommentKind is what a comment is about, for which no field is there: it begins with that. A profile's file has comments
// as text, so that they are told by their kind and by nothing else that they say.
type CommentKind string

// The kinds that something is asked by. They are of no type, so that a comment is written as kind and text.
const (
	HeapProbed     = "probes on the allocators: "
	NothingWatched = "no reuse was watched for"                      // all was learned by reading ahead
	BudgetRaised   = "the target used little CPU time"               // the budget was more than its share of that
	BudgetWaits    = "each hold waited until the budget paid for it" // why there are few
	NoSample       = "no sample came: "                              // why there is no observation
	Overhead       = "overhead by the profiler's own account: "      // what sampling cost
	HeldFor        = "thread held per sample: "                      // how long
	NamesMissing   = "symbols: symbolize "                           // why functions have no name
	SymbolsPartly  = "symbols: "                                     // what else could not be read of symbols

	// What the figures are worth is less for these.
	EndedEarly      = "session ended early"
	MergedFrom      = "merged from"
	ChangedSince    = "changed since it was profiled"
	RatesDiffer     = "access rates of the sessions differ"
	InterruptIdle   = "--interrupt is without effect"
	FollowingProbes = "following probes took" // so much CPU time
)

// Of says whether a comment is of the kind.
func (k CommentKind) Of(comment string) bool { return strings.HasPrefix(comment, string(k)) }

// Said is what the profile's comments of a kind say, without what it is told by.
func (p *Profile) Said(k CommentKind) (said []string) {
	for _, c := range p.Comments {
		if k.Of(c) {
			said = append(said, c[len(k):])
		}
	}
	return said
}

// LimitsFigures says whether a comment is about what the figures are worth.
func LimitsFigures(comment string) bool {
	return slices.ContainsFunc([]CommentKind{EndedEarly, MergedFrom, ChangedSince, RatesDiffer, InterruptIdle, FollowingProbes},
		func(k CommentKind) bool { return k.Of(comment) })
}

// Unwatched says whether all was learned by reading ahead.
func (p *Profile) Unwatched() bool { return len(p.Said(NothingWatched)) > 0 }

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
	// Touched is the most memory, in bytes, that they can have touched in all, one part after the other; 0 if that is not
	// known. No more blocks are touched for the last time.
	Touched int64
	// DesignEffect is how many of the observations that were read ahead tell as
	// much as one independent one: those of one hold lie close together. It is
	// worked out from the records, see SetDesignEffect; 0 where each has its own hold.
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
	// CostsOn are what they cost on data of several sizes, in the order of these. Empty likewise.
	CostsOn []Cost
	// Touches are how memory is touched, and Moments where time goes, as far as that is known.
	Touches  []Touch
	Moments  []Moment
	Counts   []Count // sorted by name
	Comments []string

	room []Record // see copied
}
