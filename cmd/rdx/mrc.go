package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

func newMrcCmd() *cobra.Command {
	var f curveFlags
	var format, stack string
	cmd := &cobra.Command{
		Use:   "mrc FILE...",
		Short: "Draw the miss ratio curve: predicted misses against cache size",
		Args:  profiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, append([]string{"svg"}, report.Formats...)); err != nil {
				return err
			}
			if err := report.OneOf("stack", stack, []string{"", "own", "private", "shared"}); err != nil {
				return err
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			r := report.MissRatios{Model: options.Model, Ways: options.Ways}
			for _, path := range args {
				p, err := readOnStack(path, stack)
				if err != nil {
					return err
				}
				c, err := report.NewMissCurve(p, f.sizes, options)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				c.File = path
				r.Curves = append(r.Curves, c)
			}
			if format == "svg" {
				return r.WriteSVG(cmd.OutOrStdout())
			}
			return write(cmd, format, &r)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&format, "format", "text", "text, json, csv or svg")
	detailFlag(cmd)
	cmd.Flags().StringVar(&stack, "stack", "", "of a profile of several threads: own, private or shared, as it was recorded (default: private, if there is that)")
	return cmd
}

// curveFlags are the flags of all commands that compute miss ratio curves.
type curveFlags struct {
	model string
	sizes []string
	ways  int
}

func (f *curveFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.model, "model", model.Local, "from reuse times to stack distances: "+strings.Join(model.CurveModels, ", ")+" (local: ssx by epochs of the run and by threads)")
	cmd.Flags().StringSliceVar(&f.sizes, "sizes", nil, "cache sizes, such as 32k,1m,32m")
	cmd.Flags().IntVar(&f.ways, "ways", 0, "correct for caches of so many ways (Smith); 0: fully associative")
}

func (f *curveFlags) options() (model.CurveOptions, error) {
	o := model.CurveOptions{Model: f.model, Ways: f.ways}
	if err := report.OneOf("model", f.model, model.CurveModels); err != nil {
		return o, err
	}
	if f.ways < 0 || f.ways > mostWays {
		return o, report.BadInput(fmt.Errorf("--ways %d: want 0 to %d", f.ways, mostWays))
	}
	return o, nil
}
