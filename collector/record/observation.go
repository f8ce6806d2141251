package record

import (
	"time"

	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// State is how far an observation has come.
type State uint8

const (
	Armed State = iota // its use is still to come
	Used               // its use was seen
	Done               // reuse seen, or censored
	Void               // lost
)

// Observation is what is known of one use, and of its end.
type Observation struct {
	Process *target.Process
	TID     int
	Epoch   *Epoch
	Hold    int     // its number, from 1; 0 without
	Stands  float64 // observations that it stands for, of those its hold should have given
	State   State
	Kind    model.Kind

	// The use:
	Op       model.Op
	PC       uint64    // of the accessing instruction
	Addr     uint64    // of the datum, within the word watched
	Word     uint64    // that is watched, 0 if none is
	Code     CodeBlock // of the access that was sampled; none if its source reports accesses
	UseStack int       // in callstack.Table
	Data     model.Data
	Site     int    // in callstack.Table: where data's block was allocated, plus one; 0: not known
	Latency  uint32 // cycles the use took, 0 if its source does not tell
	Source   string // where its data came from, "" likewise

	// What it stands for, found when the session is over, but overlap:
	Rate    float64 // of accesses where it was sampled, by the mean over time; 0: not known
	Pace    float64 // of the thread at that time, likewise
	Overlap float64 // blocks that an access of its hold overlaps, on average; 0: not known
	Even    float64 // what its accesses count, so that all holds stand for as many touches; 0: 1

	OfHold

	// What was read ahead:
	Soon     int  // its thread's reuse time in accesses, whoever ended it; 0: there was none
	Counted  int  // reuse time in accesses, if that ended it, or when it was left
	After    int  // accesses read ahead without a reuse
	Distinct int  // blocks touched until then, or among after
	Checked  bool // its reuse was read ahead, and other threads are watched all the same
	NoSlot   bool // found no slot; counted is when it was left
	Lead     int  // of after, before the time was taken: it is not the use's

	// What was watched:
	ReuseStack      int     // stack of the reuse, in callstack.Table
	Native          float64 // reuse time or age, ns, if it was timed
	BelowResolution bool    // sooner than the clock resolves
	Smeared         float64 // native with the noise of two traps, even where it is below

	// Of a half line:
	Half       bool
	Pair       model.Kind // how its pair of words ended
	PairEnded  bool
	PairNative float64

	Stack  model.StackKind
	EndTID int // of another thread that ended it, else 0

	Sharing
}

// OfHold is what an observation has from its hold.
type OfHold struct {
	Fits  float64  // accesses that fit into its time, by the mean; 0: they are known, or not at all
	Open  float64  // share of its accesses without a reuse in what was read ahead
	Hot   uint64   // blocks of the smallest hot set with its block, by other holds; 0: of none
	Late  float64  // share of what it stands for that comes too late in it to count; negative where it comes early
	Heads []uint16 // as ahead.Followed's
	Lap   *Lap     // that alone is timed, nothing observed; nil: it is an observation
}

// Sharing is the rest of an observation where other threads are watched, too.
type Sharing struct {
	Merged    *Interleaving // with what was read ahead of others; nil: not known
	Threads   float64       // of its process that ran at the hold, its own among them; 0: not known
	Wall, End float64       // from use to end, and the end, in ns of sampler.Monotonic
	Age       float64       // the thread's own time when the end was learnt of, 0: unknown
	Line      []LineWord    // other words of the line that are watched
	Lined     bool          // they are, as far as slots and registers were free: other threads may write them
	ByWall    bool          // cut off at a time known by the wall clock alone
	LineSoon  int           // its thread's next touch of the line, after so many touches; 0: not as far as was read ahead
	Blind     bool          // others' watchpoints were used up before the use: whether they wrote the word is not known
	BlindLine bool          // likewise the rest of the line
}

// Times is how many observations o counts for, of those that its hold should have
// given.
func (o *Observation) Times() float64 {
	if o.Stands == 0 {
		return 1 // a hold of one
	}
	return o.Stands
}

// Touches is how many touches of blocks o counts for. Where accesses come faster, or overlap more blocks, a
// moment of CPU time stands for more of them.
func (o *Observation) Touches() float64 {
	n := o.Times() * max(o.Overlap, 1) * (1 - o.Late)
	if o.Rate > 0 {
		n *= o.Rate
	} else if o.Even > 0 {
		n *= o.Even
	}
	if o.Fits > 0 {
		n *= o.Fits
	}
	return n
}

// Placed says whether it is known in which code a random moment of CPU time found the
// access.
func (o *Observation) Placed() bool { return o.State == Done && o.Code.Process != nil }

// OwnTime is until when the observation's own thread, by what was read ahead, touched the datum again, or did not; 0 if
// nothing was.
func (o *Observation) OwnTime() int { return max(o.Soon, o.After) }

// threadsWithin is for how long as many threads are taken to run as at the hold.
const threadsWithin = time.Millisecond

// ProcessCPU is how long all threads of the process ran from the observation's use to its end, in ns. own says
// that its native time is the thread's CPU time.
func (o *Observation) ProcessCPU(byCPUTime bool) float64 {
	ran := o.Wall // by the thread itself
	if byCPUTime = byCPUTime && o.EndTID == 0; byCPUTime {
		ran = min(o.Native, o.Wall)
	}
	switch {
	case o.Wall == 0:
		return 0
	case o.Threads > 0 && o.Wall <= float64(threadsWithin):
		return ran + (o.Threads-1)*o.Wall
	case !byCPUTime:
		ran = 0
	}
	return max(o.Process.CPUBetween(o.End-o.Wall, o.End), ran)
}

// CodeBlockSize is how many bytes of code are taken to be alike: about a function.
const CodeBlockSize = 512

// CodeBlock is a block of a process's code.
type CodeBlock struct {
	Process *target.Process
	Number  uint64
}

func CodeAt(p *target.Process, pc uint64) CodeBlock { return CodeBlock{p, pc / CodeBlockSize} }

// LineWord is another word of a datum's line that is watched, too.
type LineWord struct {
	Addr uint64
	// Drawn is the probability that this word was drawn, and together that both
	// were, by place in observation.line.
	Drawn float64
	Both  [sampler.NumSlots]float64

	Seen  *LineWrite
	CutAt float64 // age in ns at which its slot was given to another datum, 0: kept to the end
}

// LineWrite is a write of another thread to the line of a datum, elsewhere.
type LineWrite struct {
	TID   int
	PC    uint64
	Stack int
	Wall  float64 // ns since the use
}

// Interleaving is a reuse that was read ahead, with the touches of others.
type Interleaving struct {
	Time     int  // touches of all from the use to the next, this one among them
	Distinct int  // blocks from the use on, its own among them
	Foreign  bool // that is another thread's
	// Common is whether others touch the block, too, and none writes it: then this tells more of it than a watchpoint.
	Common bool
}

// EndPair notes when the pair was touched.
func (o *Observation) EndPair(native float64) {
	o.Pair, o.PairEnded, o.PairNative = model.Reuse, true, native
}

// Weight is for how many touches the observation stands.
func (o *Observation) Weight() float64 { return o.Epoch.PerObservation() * o.Touches() }
