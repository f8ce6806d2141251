package main

import (
	"fmt"
	"io"

	"github.com/rdx-profiler/rdx/model"
)

// printSummary says on one screen what was found.
func printSummary(w io.Writer, p *model.Profile, output string) error {
	fmt.Fprintf(w, "wrote %s\n", output)
	return nil
}
