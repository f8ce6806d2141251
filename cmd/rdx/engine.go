package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/trace"
)

func newEngineCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Build the engines that exact and trace record use",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, k := range trace.Engines {
				where := k.Find()
				if where == "" {
					where = "not built: rdx engine build " + string(k)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-9s %s\n", k, where); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.AddCommand(newEngineBuildCmd())
	return cmd
}

func newEngineBuildCmd() *cobra.Command {
	var output string
	var quiet bool
	cmd := &cobra.Command{
		Use:       "build [valgrind|qemu]...",
		Short:     "Build the engines for this user, or where --output says",
		ValidArgs: []string{string(trace.Valgrind), string(trace.QEMU)},
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds := trace.Engines
			if len(args) > 0 {
				kinds = nil
			}
			for _, a := range args {
				if !slices.Contains(trace.Engines, trace.Kind(a)) {
					return report.BadInput(fmt.Errorf("engine build %s: want %s or %s", a, trace.Valgrind, trace.QEMU))
				}
				kinds = append(kinds, trace.Kind(a))
			}
			if output == "" {
				var err error
				if output, err = trace.UserEngines(); err != nil {
					return err
				}
			}
			var errs []error
			for _, k := range kinds {
				var said strings.Builder
				dir, err := trace.BuildEngine(cmd.Context(), k, output, &said)
				if err != nil {
					errs = append(errs, fmt.Errorf("%w\n%s", err, strings.TrimSpace(said.String())))
					continue
				}
				if !quiet {
					fmt.Fprintf(cmd.ErrOrStderr(), "rdx: built %s in %s\n", k, dir)
				}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "folder (default: ~/.local/share/rdx/engine, where rdx looks)")
	quietFlag(cmd, &quiet)
	return cmd
}
