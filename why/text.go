package why

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/report"
)

// Text is the answer for people.
func (a *Answer) Text() string {
	var b strings.Builder
	if a.Command != "" {
		fmt.Fprintf(&b, "%s\n\n", report.Printable(report.Shorten(a.Command, 76)))
	}
	wrap(&b, "", strings.ToUpper(a.Says[:1])+a.Says[1:]+".")
	v := &a.Verdict
	if v.Known {
		wrap(&b, "  ", fmt.Sprintf("%s waits at accesses that no prefetcher foresees, %s for lines that come in order; %s of %s of CPU time.",
			report.WholePercent(v.Waits.Value), report.WholePercent(v.Streams.Value), report.Plural(v.Samples, "sample"), report.Nanoseconds(v.CPU*1e9)))
	}
	if len(a.Traffic) > 0 {
		b.WriteString("\ntraffic, a second of CPU time\n")
		for _, t := range a.Traffic {
			fill := fmt.Sprintf("%s (%s to %s)", perSecond(t.Fills), perSecond(t.Low), perSecond(t.High))
			back := perSecond(t.WriteBacks)
			if t.Bound {
				fill, back = "at most "+perSecond(t.High), "not known"
			}
			fmt.Fprintf(&b, "  into %-4s from %-7s %s, written back %s\n", t.Level, t.Behind, fill, back)
		}
	}
	switch {
	case !a.Checked && len(a.Findings) == 0:
		b.WriteByte('\n')
		wrap(&b, "", "No findings: "+a.unknown())
	case len(a.Findings) == 0:
		b.WriteString("\nNothing stands out.\n")
	}
	for i := range a.Findings {
		a.Findings[i].text(&b, i+1)
	}
	if a.Unwatched > 0 {
		b.WriteByte('\n')
		wrap(&b, "", fmt.Sprintf("What its %d threads take from each other was not watched: --stack both of rdx attach and rdx run has them watched.", a.Unwatched))
	}
	if len(a.Walks) > 0 && a.Walks[0].Fetches > 0 {
		a.walksText(&b)
	}
	return b.String()
}

// unknown says why there may be findings that are not told, and what would tell.
func (a *Answer) unknown() string {
	if !a.Verdict.Known {
		return "they rest on where time goes, which is not known."
	}
	return fmt.Sprintf("that it waits for %s to %s of its time is too wide a band for any; profile longer, or with more --overhead.", report.WholePercent(a.Verdict.Memory.Low), report.WholePercent(a.Verdict.Memory.High))
}

func (f *Finding) text(b *strings.Builder, n int) {
	b.WriteByte('\n')
	head := f.Title
	if f.Cost != nil {
		head += fmt.Sprintf(": %s of the time (%s to %s)", report.WholePercent(f.Cost.Value), report.WholePercent(f.Cost.Low), report.WholePercent(f.Cost.High))
	}
	wrap(b, fmt.Sprintf("%d. ", n), strings.ToUpper(head[:1])+head[1:])
	wrap(b, "   at ", strings.Join(strings.Fields(f.Place), " "))
	if f.Data != "" {
		wrap(b, "   data ", f.Data)
	}
	for _, e := range f.Evidence {
		wrap(b, "   - ", e)
	}
	wrap(b, "   try: ", f.Try)
	if f.Gives != "" {
		wrap(b, "   gives: ", f.Gives)
	}
}

const shownWalks = 8

func (a *Answer) walksText(b *strings.Builder) {
	fmt.Fprintf(b, "\nhow memory is touched, where most lines are fetched\n"+
		"(stride: of most fetches, as docs/explanation/patterns.md has it, where findings\ngo by time; use: bytes used of a fetched line; write: share of these written to)\n%7s %-11s %8s %6s %6s  %s\n", "fetches", "stride", "step", "use", "write", "place")
	all := 0.0
	for _, w := range a.Walks {
		all += w.Fetches
	}
	for _, w := range a.Walks[:min(len(a.Walks), shownWalks)] {
		if !(w.Fetches > 0) {
			break
		}
		step := "-"
		if w.Stride != "" && w.Stride[0] != 'c' && w.Stride[0] != 'g' && w.Stride[0] != 'r' {
			step = strconv.FormatInt(w.Step, 10)
		}
		class := w.Stride
		if class == "" {
			class = "unknown"
		}
		fmt.Fprintf(b, "%7s %-11s %8s %3.0f/64 %6s  %s\n", report.Percent(w.Fetches, all), class, step, w.Used, report.WholePercent(w.Written), report.Shorten(w.Place, 48))
	}
}

// wrap writes text in lines of at most 80 columns behind a prefix.
func wrap(b *strings.Builder, prefix, text string) {
	b.WriteString(prefix)
	at, indent := len(prefix), strings.Repeat(" ", len(prefix))
	for i, word := range strings.Fields(text) {
		if i > 0 && at+1+len(word) > 80 {
			b.WriteString("\n" + indent)
			at = len(indent)
		} else if i > 0 {
			b.WriteByte(' ')
			at++
		}
		b.WriteString(report.Printable(word))
		at += len(word)
	}
	b.WriteByte('\n')
}

// Table has a row for each finding.
func (a *Answer) Table() [][]string {
	rows := [][]string{{"rule", "title", "place", "file", "line", "data", "cost", "cost_low", "cost_high", "samples", "try", "gives"}}
	for _, f := range a.Findings {
		var c [3]string
		if f.Cost != nil {
			c = [3]string{report.Float(f.Cost.Value), report.Float(f.Cost.Low), report.Float(f.Cost.High)}
		}
		rows = append(rows, []string{f.Rule, f.Title, f.Place, f.File, strconv.Itoa(f.Line), f.Data, c[0], c[1], c[2], strconv.FormatInt(f.Samples, 10), f.Try, f.Gives})
	}
	return rows
}
