package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/why"
)

// mostSource bounds what is read as source.
const mostSource = 16 << 20

func newAnnotateCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "annotate FILE SOURCE",
		Short: "Show source with misses, time and stride in the margin",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return report.BadInput(fmt.Errorf("%s: name a profile and a source file, such as rdx.pb.gz main.c", cmd.Name()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			p, err := readProfile(args[0])
			if err != nil {
				return err
			}
			info, err := os.Stat(args[1])
			if err != nil {
				return report.BadInput(err)
			}
			if !info.Mode().IsRegular() || info.Size() > mostSource {
				return report.BadInput(fmt.Errorf("%s is no source file", args[1]))
			}
			text, err := os.ReadFile(args[1])
			if err != nil {
				return report.BadInput(err)
			}
			s, err := why.Annotate(p, args[1], string(text))
			if err != nil {
				return report.BadInput(err)
			}
			s.Stale = !p.Start.IsZero() && info.ModTime().After(p.Start)
			return report.Write(cmd.OutOrStdout(), format, s)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
