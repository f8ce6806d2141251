package model

import "fmt"

// Record is what was seen of one use, or of several alike: the use, and in parts what else is
// known. Which parts a record has goes by its kind, see Kind.Parts; those that it does not have
// are zero.
type Record struct {
	// First comes what is read of all records, so that of millions little memory is.
	Kind  Kind
	Op    Op // of the use
	Stack StackKind
	TID   int
	Epoch int // numbers the stretches of the thread's run, in order, see there; 0 if that is not known

	Weight    // all
	Timing    // all that were timed, to an end or for as long as they were watched
	Derived   // all, once Derive was called
	HalfLine  // of the timed: those of which half of the block was watched
	Lookahead // of the timed: what was read ahead
	Cluster   // all

	Use  []*Location // call stack of the use, leaf first
	Data *Data       // what the use accessed; nil if that was not recorded
	// DataSource is where the uses found their data, "" if their source does
	// not tell. What that cost is in Profile.Latencies.
	DataSource string
	Ending     // all that were ended by an access
}

// Ending is the access that ended what a record is of: the reuse, or another thread's write.
type Ending struct {
	Reuse []*Location // its call stack, leaf first
	// Rare is nil where all of it is zero, as of nearly all records: see Record.Words. It is not to be changed, as copies of the
	// record have the same: see Record.SetWords.
	Rare *Words
}

// Words say more of the words that were used, and of who ended it.
type Words struct {
	// EndTID is the thread of the access that ended it, if that is not the record's TID, else 0.
	EndTID int
	// Address of the word used, and of the word that EndTID wrote; 0 where no
	// other thread had to do with it.
	Address, Written uint64
	// Member and WrittenMember say which of a struct's these are, as "hits of struct stats"; "" if that is not known. Of a record that is not of
	// sharing, Member says what of Data it is: a member, "stats.hits, offset 0 of 48", and of a stack the variable, "sums" or "box: stats.hits, ...".
	Member, WrittenMember string
}

// Words are the record's.
func (r *Record) Words() (w Words) {
	if r.Rare != nil {
		w = *r.Rare
	}
	return w
}

// SetWords changes them.
func (r *Record) SetWords(w Words) {
	if r.Rare = nil; w != (Words{}) {
		kept := w // w itself would be kept of all records
		r.Rare = &kept
	}
}

// Member is Words().Member, which is asked of all records.
func (r *Record) Member() string {
	if r.Rare == nil {
		return ""
	}
	return r.Rare.Member
}

// Timing is when a use ended.
type Timing struct {
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
}

// Lookahead is what was counted by reading ahead of a use.
type Lookahead struct {
	// Distinct is the number of different blocks touched from the use to just
	// before the reuse, the block itself among them, where that was counted:
	// the stack distance is one less. Where the reuse came after what was read
	// ahead (not Exact), or none was seen, it is that number from the use on for the
	// After accesses behind it: the distance is no less. 0 where nothing was counted.
	Distinct uint64
	// After is how many accesses behind the use were read ahead without a
	// reuse; 0 where the reuse was among them, or nothing was read ahead.
	After uint64
	// Hot is how many blocks, at most, a set has that takes the block in: those that were touched most often in other holds, at
	// other times; 0 where none is known.
	Hot uint64
}

// HalfLine is of records of which, after the After accesses, only half of the block was watched:
// four words with the one that was used among them. Time is that of the half.
type HalfLine struct {
	Half bool
	// Pair says how the aligned two words with the used one ended, Reuse or Censored, and
	// PairTime when; see HalfLineSurvival.
	Pair     Kind
	PairTime uint64
}

// Cluster says which records are not independent of each other.
type Cluster struct {
	// Hold numbers the hold that the use was read ahead in, among those of all profiles: what was
	// seen in one hold is not independent. 0 where each observation has its own.
	Hold uint64
	// Open is what share of the accesses that were read ahead in that hold had no reuse there; 0
	// where that is not known. What waits for its data is among them.
	Open float64
	// Group is the part of the jackknife that the record's clusters were put into when sessions
	// were packed to be merged, 1 to JackknifeGroups; 0: none yet. It takes the place of Hold.
	Group int
}

// Weight is what a record stands for.
type Weight struct {
	Observations int64   // how many observations this record sums
	Accesses     float64 // how many of the program's accesses they stand for
	// Squares is the sum of the squares of what independent ones of them stand for, where
	// sessions of different weight were merged; 0: they are equal, see Profile.Squares.
	Squares float64
}

// Derived is what Derive finds; it is zero before.
type Derived struct {
	Reuses   float64   // accesses with this reuse after Kaplan-Meier
	Misses   []float64 // of those, predicted misses per Profile.Caches; not to be changed, as other records may have the same
	Distance float64   // sum of stack distance over Observations after Kaplan-Meier, in bytes
}

// Parts says which parts records of a kind can have.
type Parts struct {
	Ended bool // Ending; a thread that may have ended it, and the address, others can have, too
	Timed bool // Timing, Lookahead and HalfLine
}

var kindParts = [NumKinds]Parts{
	Reuse:          {Ended: true, Timed: true},
	Cold:           {},
	Censored:       {Timed: true},
	Invalidated:    {Ended: true, Timed: true},
	Pruned:         {Timed: true},
	Lost:           {},
	FalseSharing:   {Ended: true, Timed: true},
	TrueSharing:    {Ended: true, Timed: true},
	UnknownSharing: {},
}

// Parts are those that records of the kind can have.
func (k Kind) Parts() Parts {
	if k >= NumKinds {
		return Parts{}
	}
	return kindParts[k]
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
func (r *Record) outcome() bool { return r.Kind != Lost && !r.Kind.OfLine() }

// MeanDistance is the mean stack distance of the record's reuses, in bytes;
// ok is false if it has none. It undoes the weighting of Distance, which is
// per observation while Reuses is per access.
func (r *Record) MeanDistance() (bytes float64, ok bool) {
	if r.Kind != Reuse || !(r.Reuses > 0) || !(r.Accesses > 0) || r.Observations <= 0 {
		return 0, false
	}
	return r.Distance / r.Reuses * (r.Accesses / float64(r.Observations)), true
}

// Check is an error if a record has of a part that records of its kind do not have.
func (r *Record) Check() error {
	parts := r.Kind.Parts()
	switch {
	case !parts.Ended && (len(r.Reuse) > 0 || r.Words().Written != 0):
		return fmt.Errorf("a record of %v has an end: %+v", r.Kind, r.Ending)
	case !parts.Timed && (r.Timing != Timing{} || r.Lookahead != Lookahead{} || r.HalfLine != HalfLine{}):
		return fmt.Errorf("a record of %v has a time: %+v, %+v, %+v", r.Kind, r.Timing, r.Lookahead, r.HalfLine)
	}
	return nil
}
