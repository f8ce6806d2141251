package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// WriteSummary says on one screen what was found, and what to do next.
func WriteSummary(w io.Writer, p *model.Profile, output, verdict string) error {
	o := Survey(p)
	if err := WriteOverview(w, o); err != nil {
		return err
	}
	if verdict != "" && o.Observations > 0 {
		var b strings.Builder
		wrap(&b, "verdict", verdict)
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	if output == "-" {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\nwrote %s\n", output); err != nil || o.Observations == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "next: rdx why %s\nthen: rdx top %[1]s, rdx hist %[1]s, or go tool pprof -http :0 %[1]s\n", output)
	return err
}
