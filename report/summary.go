package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// WriteSummary says what was found, in full or in two lines and the first warnings, and what to do
// next.
func WriteSummary(w io.Writer, p *model.Profile, output, verdict string, full bool) error {
	o := Survey(p)
	o.Full = full
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
	if output == "-" || output == "" {
		return nil
	}
	next := ""
	if o.Observations > 0 {
		next = "; next: rdx why " + output + ", rdx top " + output
	}
	_, err := fmt.Fprintf(w, "wrote %s%s\n", output, next)
	return err
}
