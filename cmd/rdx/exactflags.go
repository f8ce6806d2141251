package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// exactFlags say how rdx exact analyses.
type exactFlags struct {
	jobs        int
	approximate string
	piece       int
	log2        bool
	shards      shardsFlag
	sampled     float64
	late        bool
	pruneAfter  int
	seed        uint64
	gpu         string // a device, gpuFirst or gpuList; "" for none
	gpuSegment  int
}

func (f *exactFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVar(&f.jobs, "jobs", runtime.NumCPU(), "processors to use for a shared stack; the result does not depend on it")
	fs.Lookup("jobs").DefValue = "all"
	fs.BoolVar(&f.log2, "log2", false, "count distances in bins of an octave only: faster, without reuse times and footprint")
	fs.Var(&f.shards, "shards", "estimate from a sample of blocks, in bounded memory: rate=0.01, or size=8192 blocks")
	fs.Float64Var(&f.sampled, "sampled", 0, "measure only this share of the accesses, at random, such as 1e-6 (Schuff's sampler)")
	fs.BoolVar(&f.late, "late", false, "with --sampled: threads' accesses meet at reuses only, as in Schuff's parallel sampler")
	fs.IntVar(&f.pruneAfter, "prune-after", 100, "with --sampled: after so many samples give up those longer than 99 % of them; 0 never")
	fs.Uint64Var(&f.seed, "seed", 1, "with --sampled: of the random choice")
	fs.StringVar(&f.approximate, "approximate", "", "merge what jobs find as HP-RDA does: plain, or factor with its effective factor; for comparison, the exact merge is not slower")
	fs.StringVar(&f.gpu, "gpu", "", "analyse on a GPU: the first one, or =N or =a part of its name; =list shows them")
	fs.Lookup("gpu").NoOptDefVal = gpuFirst
	fs.IntVar(&f.gpuSegment, "gpu-segment", 0, "touches that a GPU analyses at once (default: what suits its memory); the exact result does not depend on it")
	fs.IntVar(&f.piece, "piece", 0, "touches that a job analyses at once (default 32768); the exact result does not depend on it")
}

// check reports flags that do not go together. sizes are in blocks.
func (f *exactFlags) check(stack string, sizes []uint64) error {
	if f.jobs < 1 || f.jobs > 1024 {
		return report.BadInput(fmt.Errorf("--jobs %d: want 1 to 1024", f.jobs))
	}
	if f.piece < 0 || f.piece > 1<<24 {
		return report.BadInput(fmt.Errorf("--piece %d: want up to %d", f.piece, 1<<24))
	}
	if f.approximate != "" {
		if err := report.OneOf("approximate", f.approximate, []string{"plain", "factor"}); err != nil {
			return err
		}
	}
	if !(f.sampled >= 0 && f.sampled <= 1) {
		return report.BadInput(fmt.Errorf("--sampled %v: want a share above 0 and up to 1", f.sampled))
	}
	if f.pruneAfter < 0 {
		return report.BadInput(fmt.Errorf("--prune-after %d: want 0 or more", f.pruneAfter))
	}
	var modes []string
	for _, m := range []struct {
		name string
		set  bool
	}{{"--log2", f.log2}, {"--shards", f.shards.value != exact.ShardsConfig{}}, {"--sampled", f.sampled > 0}, {"--approximate", f.approximate != ""}} {
		if m.set {
			modes = append(modes, m.name)
		}
	}
	if len(modes) > 1 {
		return report.BadInput(fmt.Errorf("%s: choose one of them", strings.Join(modes, " and ")))
	}
	if stack == "private" && len(modes) > 0 && f.sampled == 0 {
		return report.BadInput(fmt.Errorf("%s is for --stack shared", modes[0]))
	}
	if f.gpu != "" && (f.sampled > 0 || f.shards.value != exact.ShardsConfig{}) {
		return report.BadInput(fmt.Errorf("%s is for processors, and fast there; leave it or --gpu out", modes[0]))
	}
	if f.gpuSegment < 0 || f.gpuSegment > 1<<24 {
		return report.BadInput(fmt.Errorf("--gpu-segment %d: want up to %d", f.gpuSegment, 1<<24))
	}
	if f.log2 {
		for _, n := range sizes {
			if n == 0 || n&(n-1) != 0 {
				return report.BadInput(fmt.Errorf("--sizes: with --log2 only sizes of a power of two of blocks are known"))
			}
		}
	}
	return nil
}

// shardsFlag is rate=R or size=N.
type shardsFlag struct {
	text  string
	value exact.ShardsConfig
}

func (f *shardsFlag) String() string { return f.text }
func (f *shardsFlag) Type() string   { return "rate=R|size=N" }

func (f *shardsFlag) Set(s string) error {
	key, value, _ := strings.Cut(s, "=")
	c := exact.ShardsConfig{}
	var err error
	switch key {
	case "rate":
		c.Rate, err = strconv.ParseFloat(value, 64)
	case "size":
		c.Size, err = strconv.Atoi(value)
	default:
		return fmt.Errorf("want rate=R or size=N")
	}
	if err != nil {
		return fmt.Errorf("want a number after %s=", key)
	}
	if _, err := exact.NewShards(1, model.LogBins(1), c); err != nil {
		return err
	}
	f.text, f.value = s, c
	return nil
}
