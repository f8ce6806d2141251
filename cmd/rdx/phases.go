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
		Long: `phases puts the windows of a program in a row, such as rdx attach --every or rdx fleet
get --every writes them: for each its predicted miss ratios with 95 % bands, how many
accesses a second it made, and the use -> reuse pair with the most misses. A star marks a
window whose miss ratio differs from that of the phase before it by more than chance, all
windows and caches looked at together: once in twenty such tables one is wrong.`,
		Example: `  sudo rdx attach -p 1234 -d 10m --every 10s
  rdx phases rdx-0001.pb.gz rdx-0002.pb.gz rdx-0003.pb.gz   # or rdx-*.pb.gz
  rdx phases --sizes 256k,2m --format svg a.pb.gz b.pb.gz > phases.svg`,
		Args: profiles(2),
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
	cmd.Flags().StringVar(&format, "format", "text", "text, csv, json or svg")
	return cmd
}
