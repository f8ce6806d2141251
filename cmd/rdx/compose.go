package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler"
)

func newComposeCmd() *cobra.Command {
	var f corunFlags
	cmd := &cobra.Command{
		Use:   "compose FILE...",
		Short: "Predict miss ratios of programs that share a cache",
		Args:  profiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args, true, func(set *report.CorunSet) (report.Report, error) {
				r := report.ComposeReport{Rates: set.How}
				for _, size := range set.Sizes {
					rows, err := report.Compose(set, size)
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

// profiles is the argument check of commands that read several profiles.
func profiles(least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return report.BadInput(fmt.Errorf("%s: name %d or more profiles, such as a.pb.gz", cmd.Name(), least))
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
func (f *corunFlags) run(cmd *cobra.Command, paths []string, several bool, analyze func(*report.CorunSet) (report.Report, error)) error {
	if err := report.OneOf("format", f.format, report.Formats); err != nil {
		return err
	}
	if len(f.caches) > 1 && !several {
		return report.BadInput(errors.New("--cache: want one size"))
	}
	set, err := f.load(paths)
	if err != nil {
		return err
	}
	r, err := analyze(set)
	if err != nil {
		return err
	}
	return report.Write(cmd.OutOrStdout(), f.format, r)
}

// load reads the profiles and the sizes.
func (f *corunFlags) load(paths []string) (*report.CorunSet, error) {
	s := &report.CorunSet{How: "from the profiles"}
	if len(f.caches) == 0 {
		return nil, report.BadInput(errors.New("say how large the cache is with --cache, such as --cache 32m"))
	}
	for _, c := range f.caches {
		n, err := sampler.ParseSize(c)
		if err != nil {
			return nil, report.BadInput(fmt.Errorf("--cache: %w", err))
		}
		s.Sizes = append(s.Sizes, n)
	}
	if f.rates != nil && len(f.rates) != len(paths) {
		return nil, report.BadInput(fmt.Errorf("--rates has %d numbers for %d profiles", len(f.rates), len(paths)))
	}
	unknown, guessed := "", 0 // rates: a profile that does not tell, those that guess
	for i, path := range paths {
		p, err := readProfile(path)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.Block = p.Block
		} else if p.Block != s.Block {
			return nil, fmt.Errorf("%s: blocks of %d bytes, those of %s have %d (profile both with the same block size)", path, p.Block, paths[0], s.Block)
		}
		c, err := report.Corunner(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		c.Name = path
		if f.rates != nil {
			s.How = "given"
			if c.Rate, err = strconv.ParseFloat(f.rates[i], 64); err != nil || !(c.Rate > 0) || math.IsInf(c.Rate, 0) {
				return nil, report.BadInput(fmt.Errorf("--rates: %q is not a finite number above 0", f.rates[i]))
			}
		}
		if c.Rate <= 0 {
			unknown = path
		}
		if p.Clock.RateIs(model.AssumedRate) || p.Clock.RateIs(model.EstimatedRate) {
			guessed++
		}
		s.Programs = append(s.Programs, c)
		s.Least = append(s.Least, report.LeastQuotable(p))
	}
	switch {
	case f.rates != nil:
	case unknown != "":
		s.How = fmt.Sprintf("taken as equal, as %s does not tell its own: give --rates", filepath.Base(unknown))
		for i := range s.Programs {
			s.Programs[i].Rate = 1
		}
	case guessed > 0:
		s.How += fmt.Sprintf(", which for %d of them is a guess at accesses per CPU time", guessed)
	}
	return s, nil
}
