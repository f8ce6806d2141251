package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
)

func newGroupCmd() *cobra.Command {
	var f corunFlags
	var caches, per int
	cmd := &cobra.Command{
		Use:   "group FILE...",
		Short: "Find which programs should share a cache with which",
		Long: `group assigns programs to several caches of one size so that together they miss
least. Every assignment is considered, for up to 16 programs.

` + ratesHelp,
		Example: `  rdx group a.pb.gz b.pb.gz c.pb.gz d.pb.gz --cache 32m --caches 2`,
		Args:    profiles(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if caches < 1 {
				return usageError{fmt.Errorf("--caches %d: want 1 or more", caches)}
			}
			if !cmd.Flags().Changed("per") {
				per = (len(args) + caches - 1) / caches
			}
			if per < 1 || per < (len(args)+caches-1)/caches {
				return usageError{fmt.Errorf("%d programs do not fit on %d caches with %d each", len(args), caches, per)}
			}
			return f.run(cmd, args, false, func(set *corunSet) (report, error) { return group(set, caches, per) })
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&caches, "caches", 2, "number of caches")
	cmd.Flags().IntVar(&per, "per", 0, "programs on one cache at most (default: as even as possible)")
	return cmd
}

type groupRow struct {
	Group   int     `json:"group"` // from 1
	Program string  `json:"program"`
	Rate    float64 `json:"rate"`
	Alone   float64 `json:"miss_ratio_alone"`
	Shared  float64 `json:"miss_ratio_shared"`
	Least   float64 `json:"least_quotable"` // smaller miss ratios are chance
}

type groupReport struct {
	Cache  int64      `json:"cache_bytes"`
	Rates  string     `json:"rates"`
	Rows   []groupRow `json:"programs"`
	Misses float64    `json:"misses_per_access"`
	Least  float64    `json:"least_quotable"`
}

func group(set *corunSet, caches, per int) (*groupReport, error) {
	blocks := set.blocks(set.sizes[0])
	g, err := model.Group(set.programs, blocks, caches, per)
	if err != nil {
		return nil, err
	}
	r := &groupReport{Cache: set.sizes[0], Rates: set.how, Least: set.leastOfAll()}
	rates := 0.0
	for n, members := range g.Groups {
		for _, i := range members {
			p := set.programs[i]
			a, err := alone(p, blocks)
			if err != nil {
				return nil, err
			}
			rates += p.Rate
			r.Rows = append(r.Rows, groupRow{n + 1, p.Name, p.Rate, a, g.Corun[i].MissRatio, set.least[i]})
		}
	}
	r.Misses = g.Misses / rates
	return r, nil
}

func (r *groupReport) rows() [][]string {
	rows := [][]string{{"group", "program", "rate", "miss_ratio_alone", "miss_ratio_shared", "least_quotable"}}
	for _, x := range r.Rows {
		rows = append(rows, []string{strconv.Itoa(x.Group), x.Program, number(x.Rate), number(x.Alone), number(x.Shared), number(x.Least)})
	}
	return rows
}

func (r *groupReport) text() string {
	var b strings.Builder
	names := shortNames(r.Rows, func(x *groupRow) string { return x.Program })
	fmt.Fprintf(&b, "best grouping on caches of %s (access rates %s)\n", siBytes(float64(r.Cache)), r.Rates)
	fmt.Fprintf(&b, "%5s %8s %8s  %s\n", "group", "alone", "shared", "program")
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%5d %8s %8s  %s\n", x.Group, quote(x.Alone, x.Least), quote(x.Shared, x.Least), names[x.Program])
	}
	fmt.Fprintf(&b, "%5s %8s %8s  %s\n", "", "", quote(r.Misses, r.Least), "all accesses")
	return b.String()
}
