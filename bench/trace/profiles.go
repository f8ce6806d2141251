package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// profiles measures the CPU and wall time of rdx exact -o by those of rdx exact without it, one right after the other,
// and of the version before.
func profiles(this, before recorder, launcher, big, mid, out string, rounds int) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	const heads = "by pairs\tleast\tmost\twall, by pairs\tleast\tmost\t"
	fmt.Fprintf(t, "%d rounds, CPU time\trdx exact s\t-o s\t"+heads, rounds)
	if before.rdx != "" {
		fmt.Fprintf(t, "-o before s\t"+heads)
	}
	fmt.Fprintln(t)
	for _, p := range [][]string{
		{"/bin/gzip", "-6", "-c", big},
		{"/bin/gzip", "-6", "-c", mid},
		{"/usr/bin/xz", "-3", "-T1", "-c", mid},
		{"/usr/bin/sort", "--parallel=1", mid},
		{"/usr/bin/awk", "{ n[$1]++ } END { for (k in n) print k, n[k] }", mid},
		{"/usr/bin/perl", "-ne", "$h{$_}++ for split; END { print scalar keys %h }", mid},
		{"/usr/bin/python3", "-c", "print(sum(i * i % 7 for i in range(200000)))"},
	} {
		if _, err := os.Stat(p[0]); err != nil {
			fmt.Fprintf(t, "%s: not installed\t\t\t\t\t\t\n", p[0])
			continue
		}
		size := ""
		if st, err := os.Stat(p[len(p)-1]); err == nil {
			size = fmt.Sprintf(", %d bytes", st.Size())
		}
		args := []func([]string) []string{this.exact("--jobs", "2"), this.exact("--jobs", "2", "-q", "-o", out)}
		if before.rdx != "" {
			args = append(args, before.exact("--jobs", "2", "-q", "-o", out))
		}
		costs := make([][]cost, len(args))
		for range rounds {
			for i, a := range args {
				c, err := measure(a(p), launcher)
				if err != nil {
					return err
				}
				costs[i] = append(costs[i], c)
			}
		}
		fmt.Fprintf(t, "%s%s\t%.2f\t", filepath.Base(p[0]), size, median(costs[0], cpu))
		for _, of := range costs[1:] {
			fmt.Fprintf(t, "%.2f\t", median(of, cpu))
			for _, by := range []func(cost) time.Duration{cpu, wall} {
				q := make([]float64, rounds)
				for i := range q {
					q[i] = by(of[i]).Seconds() / by(costs[0][i]).Seconds()
				}
				slices.Sort(q)
				fmt.Fprintf(t, "%.2f\t%.2f\t%.2f\t", q[rounds/2], q[0], q[rounds-1])
			}
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
