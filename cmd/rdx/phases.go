package main

import (
	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

func newPhasesCmd() *cobra.Command {
	var f curveFlags
	var format string
	cmd := &cobra.Command{
		Use:   "phases FILE...",
		Short: "Show how a program changes over time, profile by profile",
		Args:  profiles(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, append([]string{"svg"}, report.Formats...)); err != nil {
				return err
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			var all []*model.Profile
			for _, path := range args {
				p, err := readProfile(path)
				if err != nil {
					return err
				}
				all = append(all, p)
			}
			r, err := report.NewPhases(args, all, f.sizes, options)
			if err != nil {
				return err
			}
			if format == "svg" {
				return r.WriteSVG(cmd.OutOrStdout())
			}
			return report.Write(cmd.OutOrStdout(), format, r)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&format, "format", "text", "text, json, csv or svg")
	return cmd
}
