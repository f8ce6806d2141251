package main

import (
	"fmt"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// printSummary says on one screen what was found and how to see more.
func printSummary(w io.Writer, p *model.Profile, output string) error {
	if err := writeOverview(w, survey(p)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nwrote %s; look at it with\n  rdx top %[1]s\n  rdx hist %[1]s\n  go tool pprof -http :0 %[1]s\n", output)
	return err
}
