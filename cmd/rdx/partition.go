package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
)

func newPartitionCmd() *cobra.Command {
	var f corunFlags
	var ways, least int
	cmd := &cobra.Command{
		Use:   "partition FILE...",
		Short: "Find the best division of a cache's ways among programs",
		Long: `partition divides the ways of a cache among programs so that together they miss
least, and compares that with equal shares and with a cache that all share freely.
Each part is taken as a fully associative LRU cache of its size.

` + ratesHelp,
		Example: `  rdx partition a.pb.gz b.pb.gz c.pb.gz --cache 32m --ways 16`,
		Args:    profiles(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if ways < 1 || ways > 4096 {
				return usageError{fmt.Errorf("--ways %d: want 1 to 4096", ways)}
			}
			if least < 0 || least*len(args) > ways {
				return usageError{fmt.Errorf("%d programs with at least %d ways each do not fit in %d", len(args), least, ways)}
			}
			return f.run(cmd, args, false, func(set *corunSet) (report, error) { return partition(set, ways, least) })
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&ways, "ways", 16, "ways of the cache")
	cmd.Flags().IntVar(&least, "least", 1, "ways that each program gets at least")
	return cmd
}

// partitionRow is what one program gets under each policy.
type partitionRow struct {
	Program string  `json:"program"`
	Rate    float64 `json:"rate"`
	Ways    int     `json:"ways"`
	Best    float64 `json:"miss_ratio_best"`
	Equal   float64 `json:"miss_ratio_equal"`
	Free    float64 `json:"miss_ratio_shared"`
	Least   float64 `json:"least_quotable"` // smaller miss ratios are chance
}

// partitionReport compares the policies. Totals are misses per access of all.
type partitionReport struct {
	Cache int64          `json:"cache_bytes"`
	Ways  int            `json:"ways"`
	Rates string         `json:"rates"`
	Rows  []partitionRow `json:"programs"`
	Best  float64        `json:"misses_per_access_best"`
	Equal float64        `json:"misses_per_access_equal"`
	Free  float64        `json:"misses_per_access_shared"`
	Least float64        `json:"least_quotable"`
}

func partition(set *corunSet, ways, least int) (*partitionReport, error) {
	size := set.sizes[0]
	blocks := set.blocks(size)
	cost := make([][]float64, len(set.programs))
	ratio := make([][]float64, len(set.programs))
	rates := 0.0
	for i, p := range set.programs {
		rates += p.Rate
		for k := 0; k <= ways; k++ {
			m, err := alone(p, blocks*float64(k)/float64(ways))
			if err != nil {
				return nil, err
			}
			ratio[i] = append(ratio[i], m)
			cost[i] = append(cost[i], p.Rate*m)
		}
	}
	given, best, err := model.Partition(cost, least)
	if err != nil {
		return nil, err
	}
	shared, err := model.Compose(set.programs, blocks)
	if err != nil {
		return nil, err
	}
	r := &partitionReport{Cache: size, Ways: ways, Rates: set.how, Best: best / rates, Least: set.leastOfAll()}
	for i, p := range set.programs {
		equal, err := alone(p, blocks/float64(len(set.programs)))
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, partitionRow{p.Name, p.Rate, given[i], ratio[i][given[i]], equal, shared[i].MissRatio, set.least[i]})
		r.Equal += p.Rate * equal / rates
		r.Free += p.Rate * shared[i].MissRatio / rates
	}
	return r, nil
}

func (r *partitionReport) rows() [][]string {
	rows := [][]string{{"program", "rate", "ways", "miss_ratio_best", "miss_ratio_equal", "miss_ratio_shared", "least_quotable"}}
	for _, x := range r.Rows {
		rows = append(rows, []string{x.Program, number(x.Rate), strconv.Itoa(x.Ways), number(x.Best), number(x.Equal), number(x.Free), number(x.Least)})
	}
	return append(rows, []string{"all", "", strconv.Itoa(r.Ways), number(r.Best), number(r.Equal), number(r.Free), number(r.Least)})
}

func (r *partitionReport) text() string {
	var b strings.Builder
	names := shortNames(r.Rows, func(x *partitionRow) string { return x.Program })
	fmt.Fprintf(&b, "miss ratios in a cache of %s with %d ways (access rates %s)\n", siBytes(float64(r.Cache)), r.Ways, r.Rates)
	fmt.Fprintf(&b, "%5s %8s %8s %8s  %s\n", "ways", "best", "equal", "shared", "program")
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%5d %8s %8s %8s  %s\n", x.Ways, quote(x.Best, x.Least), quote(x.Equal, x.Least), quote(x.Free, x.Least), names[x.Program])
	}
	fmt.Fprintf(&b, "%5d %8s %8s %8s  %s\n", r.Ways, quote(r.Best, r.Least), quote(r.Equal, r.Least), quote(r.Free, r.Least), "all accesses")
	b.WriteString(r.worth())
	return b.String()
}

// worth says what the best division saves, if it is more than the profiles can tell.
func (r *partitionReport) worth() string {
	other, than := r.Equal, "equal parts"
	if r.Free < other {
		other, than = r.Free, "sharing freely"
	}
	saved := math.Max(other-r.Best, 0)
	if saved < r.Least {
		return fmt.Sprintf("no division is worth it: the best one misses %.2g %% of the accesses less than %s, and less than %.2g %% is chance\n", 100*saved, than, 100*r.Least)
	}
	return fmt.Sprintf("the best division misses %.2g %% of the accesses less than %s\n", 100*saved, than)
}
