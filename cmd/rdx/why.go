package main

import (
	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/why"
)

func newWhyCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "why FILE",
		Short: "Say why a program misses, what it costs, what would help",
		Long: `why says whether the program is bound by memory: how much of its CPU time it waits
for data, from which level, which data and where. Then the findings: what stands out,
what it rests on, what to try, and what that would give. A finding that the profile does
not support is left out; of a program that is not bound by memory nothing stands out.

Where time goes is told by where threads were held: an interrupt comes right behind the
access that was waited for. How memory is touched is told by what was read ahead.`,
		Example: `  rdx why rdx.pb.gz
  rdx why --format json rdx.pb.gz`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			whole, err := loadProfile(args[0])
			if err != nil {
				return err
			}
			p, err := onStackOf(whole, args[0], "")
			if err != nil {
				return err
			}
			return report.Write(cmd.OutOrStdout(), format, why.AnalyzeWith(p, whole))
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
