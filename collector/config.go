package collector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

// Config of a session. The zero value of a field means its default.
type Config struct {
	PID    int   // attach to this process, or
	Others []int // and to these
	// Context ends Start where it is done before the first sample.
	Context context.Context
	Found   bool     // they were looked for: those that have ended since, or can't be traced, are left out
	Command []string // start this one

	Duration time.Duration // 0: until the target exits or the context ends
	Overhead float64       // share of the target's CPU time the profiler may cost; 0.01
	Floor    float64       // share of one CPU's time as it goes by that it may cost at least, up to a tenth of the target's CPU time; 0: none
	// HoldCost is what a hold costs a thread after its end, as MeasureHoldCost finds; 0: it is taken to be as much as it was held.
	HoldCost  time.Duration
	Period    time.Duration // mean CPU time between two ticks of a thread; 0: by the cost of a sample
	Slots     int           // watchpoints a thread; 4, 3 with Step
	Unwatched bool          // nothing is watched, only read ahead of; so it is, too, where a machine has no watchpoints
	Follow    bool          // new processes of the target too
	Seed      uint64        // of all random draws outside the kernel; 0: by the clock

	// Burst is how many accesses are read ahead of each sample: 0 for none,
	// AutoBurst for as many as the clock can't time.
	Burst int
	// BurstEngine is Interpret or Step; Interpret.
	BurstEngine string
	// Granularity is what counts as one datum: Word, 8 bytes, Line, 64, or
	// Auto, Line where it can be.
	Granularity string
	// AccessRate in accesses per nanosecond of CPU time, or per instruction if
	// that is the clock; 0: as MeasureRate finds, or DefaultAccessRate.
	AccessRate float64
	// MeasureRate finds the access rate by probes, where no PMU counts accesses.
	MeasureRate bool

	// Interrupt has threads that block all signals held by PTRACE_INTERRUPT, which
	// may cut a transfer short: docs/explanation/safety.md, item 13. Else they are not sampled.
	Interrupt bool

	// Stack is OwnStack, PrivateStack, SharedStack or BothStacks; OwnStack.
	Stack string

	// Heap puts probes on the target's allocators, so that data in the heap are
	// known by where they were allocated. That writes breakpoints into the
	// target's copy of their code.
	Heap bool

	Source string // Auto, PEBS, IBS, PMU or Clock; Auto
	Clock  string // Auto, CPUTime or PMU; Auto
	// Latency: sample loads by an event that reports latencies even where it
	// prefers slow loads.
	Latency bool

	Caches        []model.Cache
	Costs         AccessCosts
	BinsPerOctave int // 16

	Log *zap.Logger
	// Look is the size of a cache, in bytes, of whose miss ratio Progress tells now and then how well it is known; 0: none.
	Look int64
	// Progress is called about ten times a second, from the session's loop.
	Progress func(Progress)

	source sampler.Source // a test's, instead of the one Source names
	clock  *sampler.Clock // likewise
	period float64        // likewise, in the source's unit
	// replayEagerly: a test's probes are followed all the time.
	replayEagerly bool
	turns         *turns        // those of MeasureHoldCost
	stepLimit     time.Duration // likewise: of a burst of steps; ahead.StepLimit
	// armLine watches a whole line by one debug register; nil where none can.
	armLine armLine
	// copyCost is sampler.CopyCost, or a test's.
	copyCost func() (perByte float64, err error)
}

// AutoBurst reads ahead further than the clock resolves. A counter resolves some
// tens of accesses. CPU time resolves half a microsecond of a tight loop, but not
// of other code: a trap leaves caches and branch history cold, and what would
// take a tenth of a microsecond takes several. Each access read ahead lengthens
// a hold by some tenths of a microsecond, pages and all.
const (
	AutoBurst = -1
	// timedBurst is as far as a hold of a millisecond or two reaches, one less than an edge of all bins: holds that begin where the code
	// waits tell of what comes after it, and the first cache's misses are counted; farBurst where that takes farther, see farther.
	timedBurst   = 16383
	farBurst     = 65535
	sharedBurst  = 2047
	countedBurst = 63
)

// MaxBurst bounds how long reading ahead may hold a thread: some tens of milliseconds, for who asks for it.
const MaxBurst = 1<<18 - 1

const (
	defaultOverhead = 0.01
	defaultPeriod   = 2 * time.Millisecond
	defaultBins     = 16
	calibrations    = 200
	tickInterval    = 100 * time.Millisecond
)

func (c *Config) setDefaults() error {
	set := func(p *float64, v float64) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.Overhead, defaultOverhead)
	if c.stepLimit == 0 {
		c.stepLimit = ahead.StepLimit
	}
	if c.copyCost == nil {
		c.copyCost = sampler.CopyCost
	}
	if c.Slots == 0 {
		c.Slots = sampler.NumSlots
		if c.BurstEngine == Step {
			c.Slots = stepSlots
		}
	}
	if c.BinsPerOctave == 0 {
		c.BinsPerOctave = defaultBins
	}
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if err := c.CheckChoice(); err != nil {
		return err
	}
	if err := c.checkNumbers(); err != nil {
		return BadConfig{fmt.Errorf("start session: %w", err)}
	}
	return nil
}

func (c *Config) checkNumbers() error {
	switch {
	case (c.PID == 0) == (len(c.Command) == 0):
		return errors.New("want either a process or a command")
	case c.PID < 0:
		return fmt.Errorf("%d is not a process number", c.PID)
	case !(c.Floor >= 0 && c.Floor <= 1):
		return fmt.Errorf("overhead floor of %g %%: want 0 to 100", 100*c.Floor)
	case !(c.Overhead > 0 && c.Overhead <= 1):
		return fmt.Errorf("overhead of %g %%: want more than 0 and at most 100", 100*c.Overhead)
	case c.BinsPerOctave < 1:
		return fmt.Errorf("%d bins per octave, want 1 or more", c.BinsPerOctave)
	case c.Burst < AutoBurst || c.Burst > MaxBurst:
		return fmt.Errorf("burst of %d accesses is not between 0 and %d", c.Burst, MaxBurst)
	case c.BurstEngine == Step && c.Burst > mostSteps:
		return fmt.Errorf("burst of %d accesses is more than the %d that stepping may take on", c.Burst, mostSteps)
	case !(c.AccessRate >= 0 && c.AccessRate <= 1000):
		return fmt.Errorf("access rate %v is not between 0 and 1000 accesses per nanosecond", c.AccessRate)
	case c.Period != 0 && c.Period < 2*sampler.MinPeriod:
		return fmt.Errorf("period %v is below %v", c.Period, 2*sampler.MinPeriod)
	case c.Interrupt && !ptrace.MendsSyscalls:
		return errors.New("threads that block all signals can't be interrupted on this architecture, where an interrupted system call can't be made again")
	case c.Interrupt && c.addresses():
		return fmt.Errorf("with source %s threads can't be interrupted: the access reported is over by then (use --source pmu)", c.Source)
	case c.HoldCost < 0:
		return fmt.Errorf("hold cost %v is negative", c.HoldCost)
	case c.Duration < 0:
		return fmt.Errorf("duration %v is negative", c.Duration)
	}
	return nil
}

// AccessCosts are what accesses cost on this machine; the zero value: usual ones are taken.
type AccessCosts struct {
	On        []model.Cost       // data of several sizes
	Cycle     float64            // ns
	Conflicts pipeline.Conflicts // of lines that compete for few sets of a cache; the zero value: that is not foretold
}

// pipelineCosts are those for the model of the processor.
func (c *Config) pipelineCosts() pipeline.Costs {
	var waits, rows []float64
	for _, cost := range model.CostsByLevel(c.Costs.On, c.Caches) {
		waits, rows = append(waits, cost.Waits), append(rows, cost.Streams)
	}
	costs := pipeline.Of(c.Costs.Cycle, waits, rows)
	costs.Conflicts = c.Costs.Conflicts
	return costs
}
