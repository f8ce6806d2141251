package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
)

func newThreadsCmd() *cobra.Command {
	var format, stack string
	var n int
	cmd := &cobra.Command{
		Use:   "threads FILE",
		Short: "Show what each thread does, and who invalidates whose data",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if err := report.OneOf("stack", stack, []string{"", "own", "private", "shared"}); err != nil {
				return err
			}
			if n < 1 {
				return report.BadInput(fmt.Errorf("-n %d: want 1 or more", n))
			}
			in, err := openInput(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer in.Close()
			all, size, err := in.Seekable()
			if err != nil {
				return err
			}
			raw, err := in.profile(io.NewSectionReader(all, 0, size))
			if err != nil {
				return err
			}
			if err := raw.Derive(); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			p, err := in.profile(io.NewSectionReader(all, 0, size))
			if err == nil {
				p, err = onStackOf(p, args[0], stack)
			}
			if err != nil {
				return err
			}
			return write(cmd, format, report.NewThreadList(raw, p, n))
		},
	}
	detailFlag(cmd)
	cmd.Flags().IntVarP(&n, "number", "n", 20, "how many threads to show, those with most accesses first; the others are summed")
	cmd.Flags().StringVar(&stack, "stack", "", "own, private or shared, as it was recorded (default: private, if there is that)")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	return cmd
}
