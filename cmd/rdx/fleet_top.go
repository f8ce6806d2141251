package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

func newFleetTopCmd() *cobra.Command {
	var f fleetFlags
	var by, label, format string
	var n int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "List use -> reuse pairs of a service, over all machines",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if n < 1 {
				return report.BadInput(fmt.Errorf("-n %d: want 1 or more", n))
			}
			c, q, err := f.open()
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd)
			defer stop()
			if label != "" {
				l := &report.FleetLabels{Label: label, By: by}
				if err := parts(ctx, c, q, label, func(value string, p *model.Profile) error { return l.Add(value, p) }); err != nil {
					return err
				}
				l.Sort(n)
				return write(cmd, format, l)
			}
			p, err := one(ctx, c, q)
			if err != nil {
				return err
			}
			t, err := report.NewFleetTop(p, by, n)
			if err != nil {
				return err
			}
			hosts, err := c.Values(ctx, q, "host")
			if err != nil {
				return fmt.Errorf("fleet: %w", err)
			}
			t.Hosts = len(hosts)
			return write(cmd, format, t)
		},
	}
	f.register(cmd)
	detailFlag(cmd)
	cmd.Flags().StringVar(&by, "by", "misses", "what to sort by: misses (of the largest cache for which they are more than chance), reuses, accesses, or a cache level such as l1d, l2, l3")
	cmd.Flags().StringVar(&label, "by-label", "", "list the values of this label instead of pairs")
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many to show")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
