package main

import (
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/trace"
)

// exactReport is what rdx exact prints.
type exactReport struct {
	Trace    string   `json:"trace"`
	Method   string   `json:"method"`
	Block    int      `json:"block_bytes"`
	Stack    string   `json:"stack"`
	Device   string   `json:"device,omitempty"` // that has analysed, if it is none of the processors
	Accesses uint64   `json:"accesses"`
	Loads    uint64   `json:"loads"`
	Stores   uint64   `json:"stores"`
	Touches  uint64   `json:"touches"`         // accesses, times the blocks each spans
	Blocks   uint64   `json:"distinct_blocks"` // 0 if not known
	BadLines int64    `json:"bad_lines"`
	Warnings []string `json:"warnings,omitempty"`

	Times     *exactHist       `json:"reuse_time,omitempty"`
	Distances exactHist        `json:"stack_distance"`
	Footprint []exactFootprint `json:"footprint,omitempty"` // of the shared stack
	// How far windows that end in a reuse touch more or less than all windows
	// of their length; the footprint theory takes them as equal.
	WindowError *float64    `json:"reuse_window_gap,omitempty"`
	Misses      []exactMiss `json:"miss_ratio"`

	ended            error // of a program that was run, nil if its exit code is 0
	sizes            []uint64
	times, distances *model.Hist
	// missRatio is set where a ratio has an error.
	missRatio func(blocks uint64) (ratio, plusMinus float64)
}

type exactHist struct {
	Bins        []exactBin `json:"bins"`
	Cold        float64    `json:"cold"`
	Invalidated float64    `json:"invalidated"`
	Pruned      float64    `json:"pruned,omitempty"`
	Censored    float64    `json:"censored,omitempty"`
}

type exactBin struct {
	From    uint64  `json:"from"`
	To      uint64  `json:"to"`
	Touches float64 `json:"touches"`
}

type exactFootprint struct {
	Window uint64  `json:"window"`
	Blocks float64 `json:"blocks"`
}

type exactMiss struct {
	Bytes uint64  `json:"cache_bytes"`
	Ratio float64 `json:"miss_ratio"`
	// PlusMinus is half the 95 % confidence interval of an estimate.
	PlusMinus *float64 `json:"plus_minus,omitempty"`
}

// read analyses the trace to its end.
func (r *exactReport) read(source trace.AccessReader, sink exactSink, partial bool) error {
	bad := func(b *trace.BadLine) error {
		if !partial {
			return fmt.Errorf("%w (consider: --partial, which skips such lines)", b)
		}
		r.BadLines++
		return nil
	}
	next := reader(source, bad)
	for done := false; !done; {
		accesses, err := next()
		switch {
		case err == io.EOF:
			done = true
		case err != nil && partial:
			done = true
			r.Warnings = append(r.Warnings, fmt.Sprintf("the trace ends early: %v", err))
		case err != nil:
			return err
		}
		if err := sink.add(accesses); err != nil {
			return fmt.Errorf("%s: %w", r.Trace, err)
		}
	}
	if r.BadLines > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d lines could not be read and were skipped", r.BadLines))
	}
	return r.finish(sink)
}

// readTouches is read for a recording of which only what it touches is of interest, in the form that add takes.
func readTouches[T any](r *exactReport, sink exactSink, read func(model.Granularity, func(T) error) error, add func(T) error) error {
	gran, err := model.NewGranularity(r.Block)
	if err != nil {
		return err
	}
	if err := read(gran, add); err != nil {
		return fmt.Errorf("%s: %w", r.Trace, err)
	}
	return r.finish(sink)
}

// finish takes the results of a trace that has ended.
func (r *exactReport) finish(sink exactSink) error {
	if err := sink.fill(r); err != nil {
		return fmt.Errorf("%s: %w", r.Trace, err)
	}
	if r.Accesses == 0 {
		return fmt.Errorf("%s: there are no accesses in the trace", r.Trace)
	}
	return nil
}

// reader returns a function that reads many accesses at a time; they are good
// until its next call. At the end the error is io.EOF.
func reader(source trace.AccessReader, bad func(*trace.BadLine) error) func() ([]model.Access, error) {
	batches, ok := source.(trace.BatchReader)
	if !ok {
		buf := make([]model.Access, 4096)
		return func() ([]model.Access, error) {
			n, err := trace.ReadAccesses(source, buf, bad)
			return buf[:n], err
		}
	}
	return func() ([]model.Access, error) {
		if b := batches.NextBatch(); b != nil {
			return b, nil
		}
		if err := batches.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
}

// summarize makes the report's tables of what was read.
func (r *exactReport) summarize() {
	r.Distances = newExactHist(r.distances)
	if r.times != nil {
		h := newExactHist(r.times)
		r.Times = &h
	}
	if r.sizes == nil {
		// Up to the first size that holds everything.
		top := bits.Len64(max(r.Blocks, 2) - 1)
		if r.Blocks == 0 {
			for i, w := range r.distances.W {
				if w > 0 {
					top = bits.Len64(r.distances.Bins.Lo(i))
				}
			}
		}
		for k := 0; k <= top; k++ {
			r.sizes = append(r.sizes, uint64(r.Block)<<k)
		}
	}
	for _, s := range r.sizes {
		m := exactMiss{Bytes: s}
		if r.missRatio == nil {
			m.Ratio = r.distances.MissRatio(s / uint64(r.Block))
		} else {
			var pm float64
			m.Ratio, pm = r.missRatio(s / uint64(r.Block))
			m.PlusMinus = &pm
		}
		r.Misses = append(r.Misses, m)
	}
}

func newExactHist(h *model.Hist) exactHist {
	x := exactHist{Cold: h.Cold, Invalidated: h.Invalidated, Pruned: h.Pruned, Censored: h.Censored, Bins: []exactBin{}}
	for i, w := range h.W {
		if w > 0 {
			x.Bins = append(x.Bins, exactBin{h.Bins.Lo(i), h.Bins.Hi(i), w})
		}
	}
	return x
}

// rows are one a number. In a histogram, from is the name of what has no place
// in a bin; of a footprint it is the window, of a miss ratio the cache size in bytes.
func (r *exactReport) Table() [][]string {
	rows := [][]string{{"quantity", "from", "to", "value"}}
	for _, h := range []struct {
		name string
		*exactHist
	}{{"reuse_time", r.Times}, {"stack_distance", &r.Distances}} {
		if h.exactHist == nil {
			continue
		}
		for _, b := range h.Bins {
			rows = append(rows, []string{h.name, report.Whole(b.From), report.Whole(b.To), report.Float(b.Touches)})
		}
		for _, m := range []struct {
			name   string
			weight float64
			always bool
		}{
			{"cold", h.Cold, true}, {"invalidated", h.Invalidated, r.Stack == "private"}, {"pruned", h.Pruned, false}, {"censored", h.Censored, false},
		} {
			if m.always || m.weight > 0 {
				rows = append(rows, []string{h.name, m.name, "", report.Float(m.weight)})
			}
		}
	}
	for _, p := range r.Footprint {
		rows = append(rows, []string{"footprint", report.Whole(p.Window), "", report.Float(p.Blocks)})
	}
	if r.WindowError != nil {
		rows = append(rows, []string{"reuse_window_gap", "", "", report.Float(*r.WindowError)})
	}
	for _, m := range r.Misses {
		rows = append(rows, []string{"miss_ratio", report.Whole(m.Bytes), "", report.Float(m.Ratio)})
		if m.PlusMinus != nil {
			rows = append(rows, []string{"miss_ratio_plus_minus", report.Whole(m.Bytes), "", report.Float(*m.PlusMinus)})
		}
	}
	return rows
}

func (r *exactReport) Text() string {
	var b strings.Builder
	utf8 := report.HasUTF8()
	fmt.Fprintf(&b, "%s: %d accesses", r.Trace, r.Accesses)
	if r.Loads+r.Stores > 0 {
		fmt.Fprintf(&b, " (%d loads, %d stores)", r.Loads, r.Stores)
	}
	of := ""
	if r.Stack == "private" {
		of = " in the thread with most"
	}
	fmt.Fprintf(&b, "\n%d blocks of %s touched", r.Touches, report.Bytes(float64(r.Block)))
	if r.Blocks > 0 {
		fmt.Fprintf(&b, ", %d distinct%s (%s)", r.Blocks, of, report.Bytes(float64(r.Blocks)*float64(r.Block)))
	}
	b.WriteString("\n")
	if r.Method != "exact" {
		b.WriteString(r.Method + "\n")
	}
	if r.times != nil {
		r.writeHist(&b, "reuse time, in accesses to blocks", r.times, report.Amount, 1, utf8)
	}
	r.writeHist(&b, "stack distance, in bytes of other data", r.distances, report.Bytes, float64(r.Block), utf8)
	r.writeFootprint(&b, utf8)
	fmt.Fprintf(&b, "\n%9s %7s  of a fully associative LRU cache\n", "size", "misses")
	for _, m := range r.Misses {
		pm := ""
		if m.PlusMinus != nil {
			pm = fmt.Sprintf(" +-%6s", report.Percent(*m.PlusMinus, 1))
		}
		fmt.Fprintf(&b, "%9s %7s%s  %s\n", report.Bytes(float64(m.Bytes)), report.Percent(m.Ratio, 1), pm, report.BarOf(m.Ratio, 1, 50, utf8))
	}
	return b.String()
}

// writeFootprint shows windows of powers of two and of the whole trace.
func (r *exactReport) writeFootprint(b *strings.Builder, utf8 bool) {
	if len(r.Footprint) == 0 {
		return
	}
	fmt.Fprintf(b, "\nfootprint: data touched in a window of so many accesses, on average\n")
	whole := r.Footprint[len(r.Footprint)-1]
	for _, p := range r.Footprint {
		if bits.OnesCount64(p.Window) != 1 && p != whole {
			continue
		}
		fmt.Fprintf(b, "%9s %9s  %s\n", report.Amount(float64(p.Window)), report.Bytes(p.Blocks*float64(r.Block)), report.BarOf(p.Blocks, whole.Blocks, 58, utf8))
	}
	fmt.Fprintf(b, "Windows that end in a reuse differ from these by %s on average: by so much the\nfootprint theory (rdx compose, rdx mrc --model footprint) is from holding exactly.\n", report.Percent(*r.WindowError, 1))
}

func (r *exactReport) writeHist(b *strings.Builder, title string, h *model.Hist, amount func(float64) string, unit float64, utf8 bool) {
	h = h.Rebin(model.LogBins(1))
	total := h.Total()
	greatest := max(h.Cold, h.Invalidated, h.Pruned, h.Censored)
	first, last := -1, -1
	for i, w := range h.W {
		greatest = max(greatest, w)
		if w > 0 {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	fmt.Fprintf(b, "\n%s\n", title)
	row := func(label string, w float64) {
		line := fmt.Sprintf("%-21s %7s  %s", label, report.Percent(w, total), report.BarOf(w/total, greatest/total, 49, utf8))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for i := first; i >= 0 && i <= last; i++ {
		row(fmt.Sprintf("%9s - %9s", amount(float64(h.Bins.Lo(i))*unit), amount(float64(h.Bins.Hi(i))*unit)), h.W[i])
	}
	row("first access", h.Cold)
	if r.Stack == "private" {
		row("invalidated", h.Invalidated)
	}
	if h.Pruned > 0 {
		row("pruned", h.Pruned)
	}
	if h.Censored > 0 {
		row("open at the end", h.Censored)
	}
}
