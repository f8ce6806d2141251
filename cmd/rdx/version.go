package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/report"
)

func newVersionCmd() *cobra.Command {
	var asJSON jsonFlag
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which rdx this is: version, commit, Go and BPF objects",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			json, err := asJSON.wanted()
			if err != nil {
				return err
			}
			if json {
				return report.WriteJSON(cmd.OutOrStdout(), version.Get())
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "rdx", version.Get())
			return err
		},
	}
	asJSON.register(cmd)
	return cmd
}
