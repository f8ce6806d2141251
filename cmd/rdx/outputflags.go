package main

import (
	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/report"
)

// jsonFlag is --format of a command that prints text or JSON, and --json, its short form.
type jsonFlag struct {
	format string
	json   bool
}

func (f *jsonFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "format", "text", "text or json")
	cmd.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
}

func (f *jsonFlag) wanted() (bool, error) {
	if err := report.OneOf("format", f.format, []string{"text", "json"}); err != nil {
		return false, err
	}
	return f.json || f.format == "json", nil
}

// detailFlag is -v of commands that read a profile.
func detailFlag(cmd *cobra.Command) {
	cmd.Flags().BoolP("verbose", "v", false, "say all of what is known of the profile: clock, rate, what it rests on, each warning")
}

// quietFlag is -q of commands that say what they have written.
func quietFlag(cmd *cobra.Command, quiet *bool) {
	cmd.Flags().BoolVarP(quiet, "quiet", "q", false, "print neither progress nor summary; warnings stay")
}

// write prints a report, with all that is known of its profiles if -v asks for it.
func write(cmd *cobra.Command, format string, r report.Report) error {
	if v, err := cmd.Flags().GetBool("verbose"); err == nil && v {
		report.Detail(r)
	}
	return report.Write(cmd.OutOrStdout(), format, r)
}
