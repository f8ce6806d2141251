package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

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

// PartitionReport compares the policies. Totals are misses per access of all.
type PartitionReport struct {
	Cache int64          `json:"cache_bytes"`
	Ways  int            `json:"ways"`
	Rates string         `json:"rates"`
	Rows  []partitionRow `json:"programs"`
	Best  float64        `json:"misses_per_access_best"`
	Equal float64        `json:"misses_per_access_equal"`
	Free  float64        `json:"misses_per_access_shared"`
	Least float64        `json:"least_quotable"`
}

func Partition(set *CorunSet, ways, least int) (*PartitionReport, error) {
	size := set.Sizes[0]
	blocks := set.blocks(size)
	cost := make([][]float64, len(set.Programs))
	ratio := make([][]float64, len(set.Programs))
	rates := 0.0
	for i, p := range set.Programs {
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
	shared, err := model.Compose(set.Programs, blocks)
	if err != nil {
		return nil, err
	}
	r := &PartitionReport{Cache: size, Ways: ways, Rates: set.How, Best: best / rates, Least: set.leastOfAll()}
	for i, p := range set.Programs {
		equal, err := alone(p, blocks/float64(len(set.Programs)))
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, partitionRow{p.Name, p.Rate, given[i], ratio[i][given[i]], equal, shared[i].MissRatio, set.Least[i]})
		r.Equal += p.Rate * equal / rates
		r.Free += p.Rate * shared[i].MissRatio / rates
	}
	return r, nil
}

func (r *PartitionReport) Table() [][]string {
	rows := [][]string{{"program", "rate", "ways", "miss_ratio_best", "miss_ratio_equal", "miss_ratio_shared", "least_quotable"}}
	for _, x := range r.Rows {
		rows = append(rows, []string{x.Program, Float(x.Rate), strconv.Itoa(x.Ways), Float(x.Best), Float(x.Equal), Float(x.Free), Float(x.Least)})
	}
	return append(rows, []string{"all", "", strconv.Itoa(r.Ways), Float(r.Best), Float(r.Equal), Float(r.Free), Float(r.Least)})
}

func (r *PartitionReport) Text() string {
	var b strings.Builder
	names := ShortNames(r.Rows, func(x *partitionRow) string { return x.Program })
	fmt.Fprintf(&b, "miss ratios in a cache of %s with %d ways (access rates %s)\n", Bytes(float64(r.Cache)), r.Ways, r.Rates)
	fmt.Fprintf(&b, "%5s %8s %8s %8s  %s\n", "ways", "best", "equal", "shared", "program")
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%5d %8s %8s %8s  %s\n", x.Ways, quote(x.Best, x.Least), quote(x.Equal, x.Least), quote(x.Free, x.Least), names[x.Program])
	}
	fmt.Fprintf(&b, "%5d %8s %8s %8s  %s\n", r.Ways, quote(r.Best, r.Least), quote(r.Equal, r.Least), quote(r.Free, r.Least), "all accesses")
	b.WriteString(r.worth())
	return b.String()
}

// worth says what the best division saves, if it is more than the profiles can tell.
func (r *PartitionReport) worth() string {
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
