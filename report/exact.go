package report

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// Exact is what rdx exact prints.
type Exact struct {
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

	Times     *ExactHist       `json:"reuse_time,omitempty"`
	Distances ExactHist        `json:"stack_distance"`
	Footprint []ExactFootprint `json:"footprint,omitempty"` // of the shared stack
	// How far windows that end in a reuse touch more or less than all windows
	// of their length; the footprint theory takes them as equal.
	WindowError *float64    `json:"reuse_window_gap,omitempty"`
	Misses      []ExactMiss `json:"miss_ratio"`

	times, distances *model.Hist // in the bins that they were counted in
}

// ExactResult is what an exact analysis has found, for Tabulate.
type ExactResult struct {
	Times, Distances *model.Hist // Times is nil where the analysis has none
	// MissRatio is set where a ratio has an error.
	MissRatio func(blocks uint64) (ratio, plusMinus float64)
}

type ExactHist struct {
	Bins        []ExactBin `json:"bins"`
	Cold        float64    `json:"cold"`
	Invalidated float64    `json:"invalidated"`
	Pruned      float64    `json:"pruned,omitempty"`
	Censored    float64    `json:"censored,omitempty"`
}

type ExactBin struct {
	From    uint64  `json:"from"`
	To      uint64  `json:"to"`
	Touches float64 `json:"touches"`
}

type ExactFootprint struct {
	Window uint64  `json:"window"`
	Blocks float64 `json:"blocks"`
}

type ExactMiss struct {
	Bytes uint64  `json:"cache_bytes"`
	Ratio float64 `json:"miss_ratio"`
	// PlusMinus is half the 95 % confidence interval of an estimate.
	PlusMinus *float64 `json:"plus_minus,omitempty"`
}

// Tabulate makes the tables of what was found. Miss ratios are for caches of those sizes in bytes; where none is named,
// for all powers of two up to the first that holds everything.
func (r *Exact) Tabulate(of ExactResult, sizes []uint64) {
	r.times, r.distances = of.Times, of.Distances
	r.Distances = newExactHist(of.Distances)
	if of.Times != nil {
		h := newExactHist(of.Times)
		r.Times = &h
	}
	if sizes == nil {
		sizes = r.powersOfTwo()
	}
	for _, s := range sizes {
		m := ExactMiss{Bytes: s}
		if of.MissRatio == nil {
			m.Ratio = of.Distances.MissRatio(s / uint64(r.Block))
		} else {
			var pm float64
			m.Ratio, pm = of.MissRatio(s / uint64(r.Block))
			m.PlusMinus = &pm
		}
		r.Misses = append(r.Misses, m)
	}
}

// powersOfTwo are the sizes of caches up to the first that holds everything.
func (r *Exact) powersOfTwo() (sizes []uint64) {
	top := bits.Len64(max(r.Blocks, 2) - 1)
	if r.Blocks == 0 {
		for i, w := range r.distances.W {
			if w > 0 {
				top = bits.Len64(r.distances.Bins.Lo(i))
			}
		}
	}
	for k := 0; k <= top; k++ {
		sizes = append(sizes, uint64(r.Block)<<k)
	}
	return sizes
}

func newExactHist(h *model.Hist) ExactHist {
	x := ExactHist{Cold: h.Cold, Invalidated: h.Invalidated, Pruned: h.Pruned, Censored: h.Censored, Bins: []ExactBin{}}
	for i, w := range h.W {
		if w > 0 {
			x.Bins = append(x.Bins, ExactBin{h.Bins.Lo(i), h.Bins.Hi(i), w})
		}
	}
	return x
}

// Table has one row a number. In a histogram, from is the name of what has no place
// in a bin; of a footprint it is the window, of a miss ratio the cache size in bytes.
func (r *Exact) Table() [][]string {
	rows := [][]string{{"quantity", "from", "to", "value"}}
	for _, h := range []struct {
		name string
		*ExactHist
	}{{"reuse_time", r.Times}, {"stack_distance", &r.Distances}} {
		if h.ExactHist == nil {
			continue
		}
		for _, b := range h.Bins {
			rows = append(rows, []string{h.name, Whole(b.From), Whole(b.To), Float(b.Touches)})
		}
		for _, m := range []struct {
			name   string
			weight float64
			always bool
		}{
			{"cold", h.Cold, true}, {"invalidated", h.Invalidated, r.Stack == "private"}, {"pruned", h.Pruned, false}, {"censored", h.Censored, false},
		} {
			if m.always || m.weight > 0 {
				rows = append(rows, []string{h.name, m.name, "", Float(m.weight)})
			}
		}
	}
	for _, p := range r.Footprint {
		rows = append(rows, []string{"footprint", Whole(p.Window), "", Float(p.Blocks)})
	}
	if r.WindowError != nil {
		rows = append(rows, []string{"reuse_window_gap", "", "", Float(*r.WindowError)})
	}
	for _, m := range r.Misses {
		rows = append(rows, []string{"miss_ratio", Whole(m.Bytes), "", Float(m.Ratio)})
		if m.PlusMinus != nil {
			rows = append(rows, []string{"miss_ratio_plus_minus", Whole(m.Bytes), "", Float(*m.PlusMinus)})
		}
	}
	return rows
}

func (r *Exact) Text() string {
	var b strings.Builder
	utf8 := HasUTF8()
	fmt.Fprintf(&b, "%s: %d accesses", r.Trace, r.Accesses)
	if r.Loads+r.Stores > 0 {
		fmt.Fprintf(&b, " (%d loads, %d stores)", r.Loads, r.Stores)
	}
	of := ""
	if r.Stack == "private" {
		of = " in the thread with most"
	}
	fmt.Fprintf(&b, "\n%d blocks of %s touched", r.Touches, Bytes(float64(r.Block)))
	if r.Blocks > 0 {
		fmt.Fprintf(&b, ", %d distinct%s (%s)", r.Blocks, of, Bytes(float64(r.Blocks)*float64(r.Block)))
	}
	b.WriteString("\n")
	if r.Method != "exact" {
		b.WriteString(r.Method + "\n")
	}
	if r.times != nil {
		r.writeHist(&b, "reuse time, in accesses to blocks", r.times, Amount, 1, utf8)
	}
	r.writeHist(&b, "stack distance, in bytes of other data", r.distances, Bytes, float64(r.Block), utf8)
	r.writeFootprint(&b, utf8)
	fmt.Fprintf(&b, "\n%9s %7s  of a fully associative LRU cache\n", "size", "misses")
	for _, m := range r.Misses {
		pm := ""
		if m.PlusMinus != nil {
			pm = fmt.Sprintf(" +-%6s", Percent(*m.PlusMinus, 1))
		}
		fmt.Fprintf(&b, "%9s %7s%s  %s\n", Bytes(float64(m.Bytes)), Percent(m.Ratio, 1), pm, BarOf(m.Ratio, 1, 50, utf8))
	}
	return b.String()
}

// writeFootprint shows windows of powers of two and of the whole trace.
func (r *Exact) writeFootprint(b *strings.Builder, utf8 bool) {
	if len(r.Footprint) == 0 {
		return
	}
	fmt.Fprintf(b, "\nfootprint: data touched in a window of so many accesses, on average\n")
	whole := r.Footprint[len(r.Footprint)-1]
	for _, p := range r.Footprint {
		if bits.OnesCount64(p.Window) != 1 && p != whole {
			continue
		}
		fmt.Fprintf(b, "%9s %9s  %s\n", Amount(float64(p.Window)), Bytes(p.Blocks*float64(r.Block)), BarOf(p.Blocks, whole.Blocks, 58, utf8))
	}
	fmt.Fprintf(b, "Windows that end in a reuse differ from these by %s on average: by so much the\nfootprint theory (rdx compose, rdx mrc --model footprint) is from holding exactly.\n", Percent(*r.WindowError, 1))
}

func (r *Exact) writeHist(b *strings.Builder, title string, h *model.Hist, amount func(float64) string, unit float64, utf8 bool) {
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
		line := fmt.Sprintf("%-21s %7s  %s", label, Percent(w, total), BarOf(w/total, greatest/total, 49, utf8))
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

// Wrote says that a profile of so many kinds of pairs was written in place of the report.
func (r *Exact) Wrote(path string, kinds int) string {
	if path == "-" {
		path = "the profile"
	}
	return fmt.Sprintf("rdx: wrote %s: %s accesses, %s touches of %s blocks, %d kinds of use -> reuse\n", path,
		Amount(float64(r.Accesses)), Amount(float64(r.Touches)), Amount(float64(r.Blocks)), kinds)
}
