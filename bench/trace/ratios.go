package main

import (
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
)

// ratio is of the wall times of two variants that run one right after the other. Neighbours
// slow the memory of a virtual machine from one second to the next, which the
// ratio of two medians has whole, and that of a pair in part.
type ratio struct {
	name     string
	input    string // of gzip
	of, by   *variant
	quotient []float64 // of each round
}

// ratios measures the ratios that have a goal, and those of the version before: recording by the engine
// alone, and the analysis of a program that runs by the program, of a short run (mid), which starting is a part of,
// and of a longer one.
func ratios(this, before recorder, launcher, big, mid, rdt string, engineFlags []string, rounds int) error {
	bare := func(p []string) []string { return p }
	var rs []*ratio
	for _, v := range []struct {
		name string
		recorder
	}{{"", this}, {" before", before}} {
		if v.rdx == "" {
			continue
		}
		rs = append(rs,
			&ratio{name: "rdx trace record by the engine" + v.name, input: big, of: &variant{args: v.record(rdt)}, by: &variant{args: v.alone(engineFlags...)}},
			&ratio{name: "rdx exact by the program" + v.name, input: mid, of: &variant{args: v.exact()}, by: &variant{args: bare}},
			&ratio{name: "the same, input four times as long" + v.name, input: big, of: &variant{args: v.exact()}, by: &variant{args: bare}})
	}
	for range rounds {
		for _, r := range rs {
			p := []string{"/bin/gzip", "-6", "-c", r.input}
			for _, v := range []*variant{r.by, r.of} {
				c, err := measure(v.args(p), launcher)
				if err != nil {
					return err
				}
				v.costs = append(v.costs, c)
			}
			last := func(v *variant) float64 { return v.costs[len(v.costs)-1].wall.Seconds() }
			r.quotient = append(r.quotient, last(r.of)/last(r.by))
		}
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%d rounds\tof pairs\tleast\tmost\tof medians\twall s\tby wall s\tCPU s\tby CPU s\t\n", rounds)
	for _, r := range rs {
		slices.Sort(r.quotient)
		w, b := median(r.of.costs, wall), median(r.by.costs, wall)
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%.3f\t\n", r.name, r.quotient[rounds/2], r.quotient[0], r.quotient[rounds-1], w/b, w, b,
			median(r.of.costs, cpu), median(r.by.costs, cpu))
	}
	return t.Flush()
}
