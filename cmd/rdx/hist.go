package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
)

func newHistCmd() *cobra.Command {
	var kind, format string
	var bins int
	cmd := &cobra.Command{
		Use:   "hist FILE",
		Short: "Draw the histogram of reuse times or stack distances",
		Long: `hist draws how long it takes until data is used again, in accesses and, where
the clock counts time, in CPU time (--kind time), or how much other data goes by
until then, in bytes (--kind stack), or how much data a stretch of the program
touches, by its length (--kind footprint; of a program that goes on as it was seen
to, and so at great lengths more than a run that ended had). Shares are of all accesses, after Kaplan-Meier
has made up for observations that were cut off. What has no place on the axis has
a row of its own. Stack distances are estimated, with 95 % confidence bands that cover
the chance of sampling, each bin by itself.`,
		Example: `  rdx hist rdx.pb.gz
  rdx hist --kind stack --bins 2 rdx.pb.gz
  rdx hist --format csv rdx.pb.gz > times.csv`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if err := report.OneOf("kind", kind, []string{"time", "stack", "footprint"}); err != nil {
				return err
			}
			if bins < 1 || bins > 64 {
				return report.BadInput(fmt.Errorf("--bins %d: want 1 to 64 per octave", bins))
			}
			p, err := readProfile(args[0])
			if err != nil {
				return err
			}
			if kind == "footprint" {
				c, err := report.NewFootprintCurve(p, bins)
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				return write(cmd, format, c)
			}
			c, err := report.NewChart(p, kind, bins)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return write(cmd, format, c)
		},
	}
	detailFlag(cmd)
	cmd.Flags().StringVar(&kind, "kind", "time", "time: until the reuse; stack: stack distance, the other data in between; footprint: data touched in a window of accesses")
	cmd.Flags().IntVar(&bins, "bins", 1, "bins per octave")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
