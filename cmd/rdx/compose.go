package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

func newComposeCmd() *cobra.Command {
	var f corunFlags
	cmd := &cobra.Command{
		Use:   "compose FILE...",
		Short: "Predict miss ratios of programs that share a cache",
		Long: `compose predicts, from profiles of programs that ran alone, the miss ratio of each
when all share one cache: footprints add, and data stays in the cache until the
programs together have touched as much as it holds. The cache is fully associative
with LRU replacement; programs share no data and do not slow each other down.

` + ratesHelp,
		Example: `  rdx compose a.pb.gz b.pb.gz --cache 32m
  rdx compose --rates 2,1 --format csv a.pb.gz b.pb.gz --cache 1m,32m`,
		Args: profiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args, true, func(set *corunSet) (report, error) {
				r := composeReport{Rates: set.how}
				for _, size := range set.sizes {
					rows, err := compose(set, size)
					if err != nil {
						return nil, err
					}
					r.Rows = append(r.Rows, rows...)
				}
				return &r, nil
			})
		},
	}
	f.register(cmd)
	return cmd
}

const ratesHelp = `How fast a program accesses memory weighs in as much as its locality. The rates are
those the profiles tell (accesses in their duration) unless --rates gives them. If one
of the profiles does not tell, as those of rdx exact do not, they are taken as equal.`

// profiles is the argument check of commands that read several profiles.
func profiles(least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return usageError{fmt.Errorf("%s: name %d or more profiles, such as a.pb.gz", cmd.Name(), least)}
		}
		return nil
	}
}

// corunFlags are the flags of all commands on programs in a shared cache.
type corunFlags struct {
	caches []string
	rates  []string
	format string
}

func (f *corunFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.caches, "cache", nil, "size of the shared cache, such as 32m")
	cmd.Flags().StringSliceVar(&f.rates, "rates", nil, "accesses of each program per unit of time, relative to each other")
	cmd.Flags().StringVar(&f.format, "format", "text", "text, json or csv")
}

// run is what these commands have in common: it reads the profiles and writes
// the report on them. Unless there may be several sizes of cache, one is wanted.
func (f *corunFlags) run(cmd *cobra.Command, paths []string, several bool, analyze func(*corunSet) (report, error)) error {
	if err := oneOf("format", f.format, reportFormats); err != nil {
		return err
	}
	if len(f.caches) > 1 && !several {
		return usageError{errors.New("--cache: want one size")}
	}
	set, err := f.load(paths)
	if err != nil {
		return err
	}
	r, err := analyze(set)
	if err != nil {
		return err
	}
	return writeReport(cmd.OutOrStdout(), f.format, r)
}

// corunSet is the programs that a command was given.
type corunSet struct {
	programs []model.Corunner
	least    []float64 // miss ratio of each below which its profile cannot tell
	block    int
	sizes    []int64 // of caches, bytes
	how      string  // the rates were obtained
}

// leastOfAll is the miss ratio of all accesses below which it is chance: that of
// programs whose own are all at what is just quotable.
func (s *corunSet) leastOfAll() float64 {
	sum, rates := 0.0, 0.0
	for i, p := range s.programs {
		sum += p.Rate * s.least[i]
		rates += p.Rate
	}
	return sum / rates
}

func (s *corunSet) blocks(size int64) float64 { return float64(size) / float64(s.block) }

// load reads the profiles and the sizes.
func (f *corunFlags) load(paths []string) (*corunSet, error) {
	s := &corunSet{how: "from the profiles"}
	if len(f.caches) == 0 {
		return nil, usageError{errors.New("say how large the cache is with --cache, such as --cache 32m")}
	}
	for _, c := range f.caches {
		n, err := sampler.ParseSize(c)
		if err != nil {
			return nil, usageError{fmt.Errorf("--cache: %w", err)}
		}
		s.sizes = append(s.sizes, n)
	}
	if f.rates != nil && len(f.rates) != len(paths) {
		return nil, usageError{fmt.Errorf("--rates has %d numbers for %d profiles", len(f.rates), len(paths))}
	}
	unknown, guessed := "", 0 // rates: a profile that does not tell, those that guess
	for i, path := range paths {
		p, err := readProfile(path)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.block = p.Block
		} else if p.Block != s.block {
			return nil, fmt.Errorf("%s: blocks of %d bytes, those of %s have %d (profile both with the same block size)", path, p.Block, paths[0], s.block)
		}
		c, err := corunner(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		c.Name = path
		if f.rates != nil {
			s.how = "given"
			if c.Rate, err = strconv.ParseFloat(f.rates[i], 64); err != nil || !(c.Rate > 0) || math.IsInf(c.Rate, 0) {
				return nil, usageError{fmt.Errorf("--rates: %q is not a finite number above 0", f.rates[i])}
			}
		}
		if c.Rate <= 0 {
			unknown = path
		}
		if strings.Contains(p.Clock.RateSource, "default") {
			guessed++
		}
		s.programs = append(s.programs, c)
		s.least = append(s.least, leastQuotable(p))
	}
	switch {
	case f.rates != nil:
	case unknown != "":
		s.how = fmt.Sprintf("taken as equal, as %s does not tell its own: give --rates", filepath.Base(unknown))
		for i := range s.programs {
			s.programs[i].Rate = 1
		}
	case guessed > 0:
		s.how += fmt.Sprintf(", which for %d of them is a guess at accesses per CPU time", guessed)
	}
	return s, nil
}

// corunner takes from a profile what its program does to a shared cache. The
// rate is in accesses per second, 0 if the profile does not tell, as one of rdx exact does not.
func corunner(p *model.Profile) (model.Corunner, error) {
	var c model.Corunner
	survival, err := p.Survival()
	if err != nil {
		return c, err
	}
	if !(survival.Total() > 0) {
		return c, errNoObservations
	}
	var fp model.Footprint
	if err := fp.Reset(survival); err != nil {
		return c, err
	}
	times, err := p.Times()
	if err != nil {
		return c, err
	}
	c.Footprint = fp.At
	c.Cold = min(1, (times.Total()-times.Finite())/times.Total())
	// What ran under instrumentation took long for other reasons than its own.
	if p.Duration > 0 && !p.ExactDistances {
		var accesses float64
		for i := range p.Records {
			if p.Records[i].Kind != model.Lost {
				accesses += p.Records[i].Accesses
			}
		}
		c.Rate = accesses / p.Duration.Seconds()
	}
	return c, nil
}

var errNoObservations = errors.New("the profile has no observations")

// leastQuotable is the miss ratio that 10 of a profile's observations make:
// smaller ones are chance.
func leastQuotable(p *model.Profile) float64 {
	var n int64
	for i := range p.Records {
		if p.Records[i].Kind != model.Lost {
			n += p.Records[i].Observations
		}
	}
	return 10 / max(p.Independent(n), 10)
}

// quote writes a miss ratio, but not more of it than the profile can tell.
func quote(ratio, least float64) string {
	if ratio < least {
		return "<" + percent(least, 1)
	}
	return percent(ratio, 1)
}

// alone is a program's miss ratio with the cache to itself.
func alone(p model.Corunner, blocks float64) (float64, error) {
	if !(blocks > 0) {
		return 1, nil
	}
	r, err := model.Compose([]model.Corunner{p}, blocks)
	if err != nil {
		return 0, err
	}
	return r[0].MissRatio, nil
}

// shortNames are the rows' programs without their folders, by program; with them if
// two files have one name.
func shortNames[T any](rows []T, program func(*T) string) map[string]string {
	short, whole, of := map[string]string{}, map[string]string{}, map[string]string{}
	for i := range rows {
		p := program(&rows[i])
		short[p], whole[p] = printable(filepath.Base(p)), printable(p)
		of[short[p]] = p
	}
	if len(of) < len(short) {
		return whole
	}
	return short
}

// composeRow is one program in one cache.
type composeRow struct {
	Cache   int64   `json:"cache_bytes"`
	Program string  `json:"program"`
	Rate    float64 `json:"rate"`
	Alone   float64 `json:"miss_ratio_alone"`
	Shared  float64 `json:"miss_ratio_shared"`
	Bytes   float64 `json:"occupancy_bytes"`
	Least   float64 `json:"least_quotable"` // smaller miss ratios are chance
}

func compose(set *corunSet, size int64) ([]composeRow, error) {
	shared, err := model.Compose(set.programs, set.blocks(size))
	if err != nil {
		return nil, err
	}
	var rows []composeRow
	for i, p := range set.programs {
		a, err := alone(p, set.blocks(size))
		if err != nil {
			return nil, err
		}
		rows = append(rows, composeRow{size, p.Name, p.Rate, a, shared[i].MissRatio, shared[i].Blocks * float64(set.block), set.least[i]})
	}
	return rows, nil
}

type composeReport struct {
	Rates string       `json:"rates"`
	Rows  []composeRow `json:"programs"`
}

func (r *composeReport) rows() [][]string {
	rows := [][]string{{"cache_bytes", "program", "rate", "miss_ratio_alone", "miss_ratio_shared", "occupancy_bytes", "least_quotable"}}
	for _, x := range r.Rows {
		rows = append(rows, []string{strconv.FormatInt(x.Cache, 10), x.Program, number(x.Rate), number(x.Alone), number(x.Shared), number(x.Bytes), number(x.Least)})
	}
	return rows
}

func (r *composeReport) text() string {
	var b strings.Builder
	names := shortNames(r.Rows, func(x *composeRow) string { return x.Program })
	var size int64 = -1
	for _, x := range r.Rows {
		if x.Cache != size {
			size = x.Cache
			fmt.Fprintf(&b, "cache of %s, shared (access rates %s)\n", siBytes(float64(size)), r.Rates)
			fmt.Fprintf(&b, "%9s %9s %9s %9s  %s\n", "alone", "shared", "holds", "rate/s", "program")
		}
		fmt.Fprintf(&b, "%9s %9s %9s %9s  %s\n", quote(x.Alone, x.Least), quote(x.Shared, x.Least), siBytes(x.Bytes), siCount(x.Rate), names[x.Program])
	}
	return b.String()
}
