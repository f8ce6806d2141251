package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

type groupRow struct {
	Group   int     `json:"group"` // from 1
	Program string  `json:"program"`
	Rate    float64 `json:"rate"`
	Alone   float64 `json:"miss_ratio_alone"`
	Shared  float64 `json:"miss_ratio_shared"`
	Least   float64 `json:"least_quotable"` // smaller miss ratios are chance
}

type GroupReport struct {
	Cache  int64      `json:"cache_bytes"`
	Rates  string     `json:"rates"`
	Rows   []groupRow `json:"programs"`
	Misses float64    `json:"misses_per_access"`
	Least  float64    `json:"least_quotable"`
}

func Group(set *CorunSet, caches, per int) (*GroupReport, error) {
	blocks := set.blocks(set.Sizes[0])
	g, err := model.Group(set.Programs, blocks, caches, per)
	if err != nil {
		return nil, err
	}
	r := &GroupReport{Cache: set.Sizes[0], Rates: set.How, Least: set.leastOfAll()}
	rates := 0.0
	for n, members := range g.Groups {
		for _, i := range members {
			p := set.Programs[i]
			a, err := alone(p, blocks)
			if err != nil {
				return nil, err
			}
			rates += p.Rate
			r.Rows = append(r.Rows, groupRow{n + 1, p.Name, p.Rate, a, g.Corun[i].MissRatio, set.Least[i]})
		}
	}
	r.Misses = g.Misses / rates
	return r, nil
}

func (r *GroupReport) Table() [][]string {
	rows := [][]string{{"group", "program", "rate", "miss_ratio_alone", "miss_ratio_shared", "least_quotable"}}
	for _, x := range r.Rows {
		rows = append(rows, []string{strconv.Itoa(x.Group), x.Program, Float(x.Rate), Float(x.Alone), Float(x.Shared), Float(x.Least)})
	}
	return rows
}

func (r *GroupReport) Text() string {
	var b strings.Builder
	names := ShortNames(r.Rows, func(x *groupRow) string { return x.Program })
	fmt.Fprintf(&b, "best grouping on caches of %s (access rates %s)\n", Bytes(float64(r.Cache)), r.Rates)
	fmt.Fprintf(&b, "%5s %8s %8s  %s\n", "group", "alone", "shared", "program")
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%5d %8s %8s  %s\n", x.Group, quote(x.Alone, x.Least), quote(x.Shared, x.Least), names[x.Program])
	}
	fmt.Fprintf(&b, "%5s %8s %8s  %s\n", "", "", quote(r.Misses, r.Least), "all accesses")
	return b.String()
}
