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
		Args:  oneFile,
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
