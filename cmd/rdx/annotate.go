package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
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
			file, info, err := findSource(p, args[1])
			if err != nil {
				return report.BadInput(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return report.BadInput(err)
			}
			s, err := why.Annotate(p, file, string(text))
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

// findSource is the file that is named, or of that name where the profile's code was compiled.
func findSource(p *model.Profile, name string) (string, fs.FileInfo, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		for _, known := range why.SourceFiles(p) {
			if filepath.Base(known) != filepath.Base(name) || !filepath.IsAbs(known) {
				continue
			}
			if there, failed := os.Stat(known); failed == nil {
				name, info, err = known, there, nil
				break
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf("%w, neither here nor where the program was built: name the source by its path", err)
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular() || info.Size() > mostSource:
		return "", nil, fmt.Errorf("%s is no source file", name)
	}
	return name, info, nil
}
