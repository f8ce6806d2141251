package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
)

func newGroupCmd() *cobra.Command {
	var f corunFlags
	var caches, per int
	cmd := &cobra.Command{
		Use:   "group FILE...",
		Short: "Find which programs should share a cache with which",
		Args:  profiles(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			const most = 1024
			if caches < 1 || caches > most {
				return report.BadInput(fmt.Errorf("--caches %d: want 1 to %d", caches, most))
			}
			if cmd.Flags().Changed("per") && per < 1 {
				return report.BadInput(fmt.Errorf("--per %d: want 1 or more", per))
			}
			if !cmd.Flags().Changed("per") {
				per = (len(args) + caches - 1) / caches
			}
			if per < (len(args)+caches-1)/caches {
				return report.BadInput(fmt.Errorf("%d programs do not fit on %d caches with %d each", len(args), caches, per))
			}
			return f.run(cmd, args, false, func(set *report.CorunSet) (report.Report, error) { return report.Group(set, caches, per) })
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&caches, "caches", 2, "number of caches")
	cmd.Flags().IntVar(&per, "per", 0, "programs on one cache at most (default: as even as possible)")
	return cmd
}
