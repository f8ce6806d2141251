package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
)

func newPartitionCmd() *cobra.Command {
	var f corunFlags
	var ways, least int
	cmd := &cobra.Command{
		Use:   "partition FILE...",
		Short: "Find the best division of a cache's ways among programs",
		Args:  profiles(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if ways < 1 || ways > mostWays {
				return report.BadInput(fmt.Errorf("--ways %d: want 1 to %d", ways, mostWays))
			}
			if least < 0 || least > mostWays {
				return report.BadInput(fmt.Errorf("--least %d: want 0 to %d", least, mostWays))
			}
			if least*len(args) > ways {
				return report.BadInput(fmt.Errorf("%d programs with at least %d ways each do not fit in %d", len(args), least, ways))
			}
			return f.run(cmd, args, false, func(set *report.CorunSet) (report.Report, error) { return report.Partition(set, ways, least) })
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&ways, "ways", 16, "ways of the cache")
	cmd.Flags().IntVar(&least, "least", 1, "ways that each program gets at least")
	return cmd
}

// mostWays is more than any cache has: with as many it is fully associative.
const mostWays = 4096
