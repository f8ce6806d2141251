package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/cost"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// recordFlags are those of both attach and run.
type recordFlags struct {
	output   string
	duration time.Duration
	overhead float64
	floor    float64
	holdCost time.Duration
	period   time.Duration
	rate     float64

	measureRate bool
	burst       string
	unwatched   bool
	engine      string
	grain       string
	source      string
	latency     bool
	clock       string
	stack       string
	slots       int
	bins        int
	follow      bool
	heap        bool
	interrupt   bool
	seed        uint64
	caches      []string
	verbose     bool
	quiet       bool

	until      string // how well a miss ratio is to be known
	untilCache string

	costsFailed error // to measure what accesses cost

	given func(flag string) bool
}

func (f *recordFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.given = fs.Changed
	file := "profile to write; - for standard output"
	fs.SetNormalizeFunc(oldNames)
	if cmd.Name() == "run" {
		file = "profile to write" // standard output is the program's
	}
	fs.StringVarP(&f.output, "output", "o", "rdx.pb.gz", file)
	fs.DurationVarP(&f.duration, "duration", "d", 0, "how long to sample (default: until the target exits, Ctrl-C or SIGTERM)")
	fs.StringVar(&f.until, "until", "", "end when the miss ratio at the second cache, or at --cache, is known within so many percent of it, and say meanwhile how well it is")
	fs.StringVar(&f.untilCache, "cache", "", "with --until, the size of the cache, such as 1M")
	fs.Float64Var(&f.overhead, "overhead", 1, "percent of the target's CPU time that rdx may cost")
	fs.Float64Var(&f.floor, "overhead-floor", 0.2, "percent of one CPU's time as it goes by that rdx may cost a target that uses little of it, up to a tenth of what it uses, where that is more than --overhead; 0: no more than that")
	fs.DurationVar(&f.holdCost, "hold-cost", 0, "CPU time that a hold costs the target after its end; where the source is the clock (default: as measured once on this machine, in five seconds, and kept in $RDX_CACHE, /var/cache/rdx or the user's cache folder; else as long as it was held)")
	fs.DurationVar(&f.period, "period", 0, "mean CPU time between two ticks of a thread, of which --overhead decides how many become samples (default: by what a sample and a tick cost)")
	fs.Float64Var(&f.rate, "access-rate", 0, "accesses per nanosecond of CPU time, or per instruction if those are the clock; where no PMU counts accesses (default: as --measure-rate finds)")
	fs.BoolVar(&f.measureRate, "measure-rate", true, "find the access rate by following the program from a few of its holds, while it runs on; where no PMU counts accesses (a fifth of the overhead, and up to 3 % of another CPU)")
	fs.StringVar(&f.burst, "burst", "auto", "accesses to read ahead of each sample: a number, off, or auto for as many as the clock can't time")
	fs.StringVar(&f.engine, "burst-engine", collector.Interpret, "how: interpret (on copies; the thread stays where it is), or step (the thread makes the accesses itself, stopped at every few instructions, auto for 30 accesses, words only; it is held for up to 5 ms, so that --overhead allows few; docs/explanation/reading-ahead.md)")
	fs.StringVar(&f.grain, "granularity", collector.Auto, "what counts as one datum: line (64 bytes; half of it is watched, by all of a thread's watchpoints, and the rest extrapolated), word (8 bytes), or auto for lines where rdx reads ahead (not with pebs and ibs)")
	fs.StringVar(&f.source, "source", collector.Auto, "what picks the samples: pebs or ibs (Intel's and AMD's own samples of accesses, with address), pmu (the processor's counter of loads and stores), clock (CPU time) or auto, the best that works")
	fs.BoolVar(&f.latency, "latency", false, "with pebs, sample loads by the load-latency event where no other reports latencies; it prefers slow loads (the profile's column latency)")
	fs.StringVar(&f.clock, "clock", collector.Auto, "what reuse times are measured in: pmu (loads and stores counted, or instructions), cpu-time or auto")
	fs.StringVar(&f.stack, "stack", collector.OwnStack, "where a reuse is looked for: own (in the thread itself), private (other threads' writes invalidate), shared (a reuse is any thread's) or both (each sample for one of the two)")
	fs.BoolVar(&f.unwatched, "unwatched", false, "watch for no reuse, only read ahead, as on machines without watchpoints: takes no debug register, and ratios at large caches are bounds")
	fs.IntVar(&f.slots, "slots", 0, "watchpoints per thread, 1 to 4; fewer leave some to a debugger (default 4, 3 with --burst-engine step)")
	fs.IntVar(&f.bins, "bins", 16, "bins per octave of the reuse times written")
	fs.BoolVar(&f.follow, "follow", false, "profile processes the target starts, too")
	fs.BoolVar(&f.heap, "heap", false, "tell data in the heap by where they were allocated (top --by data): puts probes on malloc and its kin, which change the target's copy of their code and make each call dearer (docs/explanation/safety.md)")
	fs.BoolVar(&f.interrupt, "interrupt", false, "sample threads that block all signals, too, by interrupting them; that may cut short a transfer to a pipe or socket that they begin just then (docs/explanation/safety.md, item 13); without it their CPU time is counted as not sampled")
	fs.Uint64Var(&f.seed, "seed", 0, "of rdx's random choices outside the kernel (default: by the clock)")
	fs.StringSliceVar(&f.caches, "caches", nil, "cache sizes to predict misses for, smallest first (default: this machine's), e.g. 48K,1M,32M")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "say all of what is known of the profile, and log what rdx does")
	quietFlag(cmd, &f.quiet)
}

// oldNames are those that flags had in former versions.
func oldNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "gap" {
		name = "period"
	}
	return pflag.NormalizedName(name)
}

func newAttachCmd() *cobra.Command {
	var f recordFlags
	var of targets
	var every time.Duration
	var live bool
	cmd := &cobra.Command{
		Use:   "attach [flags] NAME|PID...",
		Short: "Profile running processes",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, named, err := of.find(args, os.DirFS("/proc"), "/sys/fs/cgroup")
			if err != nil {
				return err
			}
			for _, n := range named {
				if !f.quiet {
					fmt.Fprintln(cmd.ErrOrStderr(), "rdx:", n)
				}
			}
			f.follow = f.follow || of.follows()
			cfg := collector.Config{PID: pids[0], Others: pids[1:], Found: len(named) > 0 || of.follows()}
			if live && cmd.Flags().Changed("every") {
				return report.BadInput(errors.New("--web and --every do not go together: rdx web shows what --every has written"))
			}
			if f.until != "" && (live || cmd.Flags().Changed("every")) {
				return report.BadInput(errors.New("--until ends one session: leave it out, or --every and --web"))
			}
			if live {
				return f.recordLive(cmd, cfg)
			}
			if cmd.Flags().Changed("every") {
				return f.recordEvery(cmd, cfg, every)
			}
			return f.record(cmd, cfg)
		},
	}
	of.register(cmd)
	cmd.Flags().BoolVar(&live, "web", false, "show in a browser what has been seen so far, as rdx web does; the session is then several short ones, of which the merge is shown and written")
	cmd.Flags().DurationVar(&every, "every", 0, "write a profile of its own for each so long part, numbered: rdx-0001.pb.gz and so on, for rdx phases")
	f.register(cmd)
	return cmd
}

func newRunCmd() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Start a program and profile it from its first instruction on",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return report.BadInput(errors.New("run: name a program after --"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.record(cmd, collector.Config{Command: args})
		},
	}
	// Flags behind the program's name are the program's.
	cmd.Flags().SetInterspersed(false)
	f.register(cmd)
	return cmd
}

const (
	mostPeriod    = time.Minute            // of a thread's CPU time: few run as long as many such
	mostCost      = 100 * time.Millisecond // hundreds of times what the slowest machine has
	leastOverhead = 0.0001                 // percent; a hold costs some tenths of a millisecond
)

// fill puts the flags of sampling into a configuration.
func (f *recordFlags) fill(cfg *collector.Config) error {
	// What is zero there means the default, which nobody asks for by a 0.
	zero := func(flag string, is bool) bool { return is && f.given(flag) }
	switch {
	case !(f.overhead > 0 && f.overhead <= 100):
		return report.BadInput(fmt.Errorf("--overhead %g: want a percentage above 0 and at most 100", f.overhead))
	case f.overhead < leastOverhead:
		return report.BadInput(fmt.Errorf("--overhead %g: want %g or more: less pays for hardly a hold an hour", f.overhead, leastOverhead))
	case !(f.floor >= 0 && f.floor <= 100):
		return report.BadInput(fmt.Errorf("--overhead-floor %g: want a percentage from 0 to 100", f.floor))
	case f.holdCost < 0 || f.holdCost > mostCost:
		return report.BadInput(fmt.Errorf("--hold-cost %v: want 0 to %v (some tenths of a millisecond are usual; left out, it is measured)", f.holdCost, mostCost))
	case f.bins < 1 || f.bins > 1000:
		return report.BadInput(fmt.Errorf("--bins %d: want 1 to 1000", f.bins))
	case f.slots < 0 || f.slots > sampler.NumSlots || zero("slots", f.slots == 0):
		return report.BadInput(fmt.Errorf("--slots %d: want 1 to %d", f.slots, sampler.NumSlots))
	case f.duration < 0 || zero("duration", f.duration == 0):
		return report.BadInput(fmt.Errorf("--duration %v: want more than 0", f.duration))
	case zero("period", f.period == 0) || f.period > mostPeriod:
		return report.BadInput(fmt.Errorf("--period %v: want %v or more, and at most %v", f.period, 2*sampler.MinPeriod, mostPeriod))
	case cfg.Command != nil && f.output == "-":
		return report.BadInput(errors.New("run -o -: standard output is the program's: name a file"))
	}
	cfg.Duration = f.duration
	cfg.Overhead = f.overhead / 100
	cfg.Floor = f.floor / 100
	cfg.Period = f.period
	cfg.AccessRate = f.rate
	cfg.MeasureRate = f.measureRate
	switch f.burst {
	case "off":
	case "auto":
		cfg.Burst = collector.AutoBurst
	default:
		var err error
		if cfg.Burst, err = strconv.Atoi(f.burst); err != nil || cfg.Burst < 0 {
			return report.BadInput(fmt.Errorf("--burst %s: want a number of accesses, off or auto", f.burst))
		}
	}
	cfg.BurstEngine = f.engine
	cfg.Granularity = f.grain
	cfg.Source = f.source
	cfg.Latency = f.latency
	cfg.Clock = f.clock
	cfg.Stack = f.stack
	cfg.Slots = f.slots
	cfg.Unwatched = f.unwatched
	cfg.BinsPerOctave = f.bins
	cfg.Follow = f.follow
	cfg.Heap = f.heap
	cfg.Interrupt = f.interrupt
	cfg.Seed = f.seed
	return nil
}

// costOfHolds is what a hold costs after its end: as given, as kept, or measured now; 0 where none of these is to be had.
func (f *recordFlags) costOfHolds(cmd *cobra.Command) time.Duration {
	if f.holdCost > 0 || f.source != collector.Auto && f.source != collector.Clock || f.engine == collector.Step || f.burst == "off" {
		return f.holdCost
	}
	kept, before, known := keptHoldCost()
	if known || kept == nil {
		return before.After
	}
	m := sampler.Machine{Proc: os.DirFS("/proc"), Sys: os.DirFS("/sys")}
	if _, err := m.AccessEvents(); err == nil && f.source == collector.Auto {
		return 0 // a counter will be the source
	}
	if m.ForeignIDs() {
		return 0 // the session will be refused
	}
	say := func(format string, args ...any) {
		if !f.quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "rdx: "+format+"\n", args...)
		}
	}
	say("what a hold costs on this machine is measured, once, in five seconds (--hold-cost sets it)")
	c, err := collector.MeasureHoldCost(cmd.Context())
	if err == nil {
		busy := ""
		if c.Busy {
			busy = " (the machine is busy: it will be measured again in an hour)"
		}
		say("a hold costs %v ± %v after its end%s", c.After.Round(time.Microsecond), c.Error.Round(time.Microsecond), busy)
		err = kept.Write(c)
	} else {
		c = before // that of a while ago is nearer than nothing
		c.Busy = true
	}
	if errors.Is(err, collector.ErrHoldCost) {
		err = errors.Join(err, kept.Write(c))
	}
	if err != nil {
		say("%v", err)
	}
	return c.After
}

// busyKept is how long what was measured on a busy machine is taken to hold, and failedKept after how long it is tried again
// where it could not be measured: until then holds are charged with what they may cost at most, and there are fewer.
const busyKept, failedKept = time.Hour, 2 * time.Minute

// keptHoldCost is what was measured here before; kept is nil where nothing can be kept.
func keptHoldCost() (kept *cost.Kept, c collector.HoldCost, known bool) {
	kept, err := cost.Keep("hold-cost", version.Get().String())
	if err != nil {
		return nil, c, false
	}
	if !kept.Read(&c) || !c.Valid() {
		return kept, collector.HoldCost{}, false
	}
	known = !(c.Busy && kept.Age() > busyKept) && !(c.After == 0 && kept.Age() > failedKept)
	return kept, c, known
}

// costsKept is how long what accesses cost is taken to hold: neighbours on the machine come and go.
const costsKept = 10 * time.Minute

// keptCosts has the session know what accesses cost on this machine, if that was measured since it has its processor: for
// those who may not take the time and memory to measure it.
func keptCosts(cfg *collector.Config) (known bool) {
	var m cost.Machine
	kept, err := cost.Keep("access-costs", version.Get().String())
	if known = err == nil && kept.Read(&m) && m.Valid(m.Sizes); known {
		tellCosts(cfg, m)
	}
	return known
}

func tellCosts(cfg *collector.Config, m cost.Machine) {
	for _, c := range m.On {
		cfg.Costs.On = append(cfg.Costs.On, model.Cost{Bytes: c.Bytes, Waits: c.Waits, Streams: c.Streams, Apart: c.Apart})
	}
	cfg.Costs.Cycle = m.Cycle
	if len(m.Sizes) < 2 {
		return
	}
	cfg.Costs.Conflicts.Rooms = [2]int{cost.Room(m.Sizes[0]), m.Conflicts.Room}
	for i, s := range m.Conflicts.Steps { // the most crowded first
		degree := pipeline.Degrees - 1 - i
		cfg.Costs.Conflicts.Loads[degree], cfg.Costs.Conflicts.Stores[degree] = s.Loads, s.Stores
	}
}

// measureCosts has the session know what accesses cost on this machine: as kept, or measured now. Without it less is told
// of where data come from, and of how fast code is.
func measureCosts(ctx context.Context, cfg *collector.Config) error {
	var m cost.Machine
	var sizes []int64
	for _, cache := range cfg.Caches {
		sizes = append(sizes, cache.Size)
	}
	kept, err := cost.Keep("access-costs", version.Get().String())
	if err != nil || !kept.Read(&m) || kept.Age() > costsKept || !m.Valid(sizes) {
		var failed error
		if m, failed = cost.MeasureApart(ctx, sizes); failed != nil {
			return failed
		}
		if err == nil {
			err = kept.Write(m)
		}
	}
	tellCosts(cfg, m)
	if err != nil {
		cfg.Log.Warn("what accesses cost is not kept, and measured each time", zap.Error(err))
	}
	return nil
}

// cacheSizes reads the --caches flag; without it they are this machine's.
func cacheSizes(sizes []string) ([]model.Cache, error) {
	if len(sizes) > 0 {
		var out []model.Cache
		for i, s := range sizes {
			size, err := sampler.ParseSize(s)
			if err != nil {
				return nil, report.BadInput(fmt.Errorf("--caches: %w", err))
			}
			if i > 0 && size <= out[i-1].Size {
				return nil, report.BadInput(fmt.Errorf("--caches %s: want the smallest first, and each once", strings.Join(sizes, ",")))
			}
			out = append(out, model.Cache{Level: fmt.Sprintf("C%d", i+1), Size: size})
		}
		return out, nil
	}
	found, err := sampler.Caches(os.DirFS("/sys"))
	if err != nil {
		return nil, err
	}
	var out []model.Cache
	for _, c := range found {
		out = append(out, model.Cache(c))
	}
	return out, nil
}

// readUntil reads --until and --cache.
func (f *recordFlags) readUntil(cfg *collector.Config) (u report.Until, err error) {
	switch {
	case f.until == "" && f.untilCache != "":
		err = errors.New("--cache says at which cache --until is to be met: name that, too, as in --until 20%")
	case f.until == "":
		return u, nil
	case cfg.Stack != collector.OwnStack && cfg.Stack != "":
		err = fmt.Errorf("--until goes with --stack %s only: leave out one of the two", collector.OwnStack)
	default:
		u.Within, err = report.ParseUntil(f.until)
	}
	if err == nil && f.untilCache != "" {
		if u.Size, err = sampler.ParseSize(f.untilCache); err != nil {
			err = fmt.Errorf("--cache: %w", err)
		}
	} else if n := len(cfg.Caches); n > 0 {
		u.Size = cfg.Caches[min(1, n-1)].Size
	}
	if err != nil {
		return u, report.BadInput(err)
	}
	cfg.Look = u.Size
	return u, nil
}
