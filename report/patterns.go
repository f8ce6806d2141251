package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// Patterns is what rdx exact --patterns prints.
type Patterns struct {
	Trace    string         `json:"trace"`
	Accesses uint64         `json:"accesses"`
	Touches  uint64         `json:"touches"`
	Lines    uint64         `json:"distinct_lines"`
	Warnings []string       `json:"warnings,omitempty"`
	Notes    []string       `json:"notes"`
	Strides  []StrideShare  `json:"stride"`
	Caches   []CachePattern `json:"caches"`
	// Instructions are ordered by their traffic at the largest cache, then by accesses.
	Instructions []InstructionPattern `json:"instructions"`
}

// StrideShare is how many accesses are of instructions of a class.
type StrideShare struct {
	Stride   string `json:"stride"`
	Accesses uint64 `json:"accesses"`
}

// CachePattern is what is known of a cache, of one instruction or of all.
type CachePattern struct {
	Level string `json:"level,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // of the cache
	TrafficPattern
	DirtyAtEnd uint64 `json:"dirty_at_end,omitempty"`
}

type TrafficPattern struct {
	Fills      float64  `json:"fills"`
	WriteBacks float64  `json:"write_backs"`
	Traffic    float64  `json:"traffic"`  // bytes, both ways
	LineUse    *float64 `json:"line_use"` // bytes of a fetched line; null where none was fetched
}

type InstructionPattern struct {
	Address    string           `json:"address"`
	Function   string           `json:"function,omitempty"`
	File       string           `json:"file,omitempty"`
	Line       int              `json:"line,omitempty"`
	Access     string           `json:"access"`
	Accesses   uint64           `json:"accesses"`
	Stride     string           `json:"stride"`
	Step       int64            `json:"step"`
	Kept       float64          `json:"kept"`
	Prefetched bool             `json:"prefetched"`
	Caches     []TrafficPattern `json:"caches"` // as the report has them
}

// PatternInput is an instruction of a trace, and what was counted of it; traffic and line use are by cache.
type PatternInput struct {
	At       *model.Location
	Op       model.Op
	Accesses uint64
	Strides  model.Strides
	Traffic  []model.Traffic
	LineUse  []model.LineUse
}

// NewPatterns makes the report of all instructions of a trace. Of each cache it takes how many lines were dirty at the end.
func NewPatterns(of *Exact, caches []model.Cache, dirty []uint64, all []PatternInput, notes []string) *Patterns {
	r := &Patterns{Trace: of.Trace, Accesses: of.Accesses, Touches: of.Touches, Lines: of.Blocks, Warnings: of.Warnings,
		Notes: append([]string{"traces have addresses and no values: gather, chase and random are one class, irregular"}, notes...)}
	byStride := [model.NumStrides]uint64{}
	traffic, use := make([]model.Traffic, len(caches)), make([]model.LineUse, len(caches))
	for i := range all {
		x := &all[i]
		class, kept := x.Strides.Class(model.Origins{})
		byStride[class] += x.Accesses
		r.Instructions = append(r.Instructions, newInstructionPattern(x, class, kept))
		for c := range caches {
			traffic[c].Add(x.Traffic[c])
			use[c].Add(x.LineUse[c])
		}
	}
	for class, n := range byStride {
		if n > 0 {
			r.Strides = append(r.Strides, StrideShare{model.Stride(class).String(), n})
		}
	}
	for c, cache := range caches {
		r.Caches = append(r.Caches, CachePattern{cache.Level, cache.Size, newTrafficPattern(traffic[c], use[c]), dirty[c]})
	}
	slices.SortStableFunc(r.Instructions, func(a, b InstructionPattern) int { return b.compare(&a) })
	return r
}

func newInstructionPattern(x *PatternInput, class model.Stride, kept float64) InstructionPattern {
	y := InstructionPattern{Address: fmt.Sprintf("%#x", x.At.Address), Access: x.Op.String(), Accesses: x.Accesses, Stride: class.String(), Kept: kept, Prefetched: x.Strides.Prefetched()}
	if f := x.Strides.Frequent(); len(f) > 0 {
		y.Step = f[0].Bytes
	}
	for c := range x.Traffic {
		y.Caches = append(y.Caches, newTrafficPattern(x.Traffic[c], x.LineUse[c]))
	}
	if len(x.At.Lines) > 0 {
		y.Function, y.File, y.Line = x.At.Lines[0].Function, x.At.Lines[0].File, x.At.Lines[0].Line
	}
	return y
}

// compare orders by traffic at the largest cache, then by accesses.
func (x *InstructionPattern) compare(y *InstructionPattern) int {
	if k := len(x.Caches) - 1; k >= 0 {
		if c := cmp.Compare(x.Caches[k].Traffic, y.Caches[k].Traffic); c != 0 {
			return c
		}
	}
	return cmp.Compare(x.Accesses, y.Accesses)
}

func newTrafficPattern(t model.Traffic, u model.LineUse) TrafficPattern {
	x := TrafficPattern{Fills: t.Fills, WriteBacks: t.WriteBacks, Traffic: t.Bytes()}
	if mean, ok := u.Mean(); ok {
		x.LineUse = &mean
	}
	return x
}

// Table has one row an instruction and cache; in all, the address is empty.
func (r *Patterns) Table() [][]string {
	rows := [][]string{{"address", "function", "file", "line", "access", "accesses", "stride", "step", "kept", "prefetched", "cache", "fills", "write_backs", "traffic", "line_use"}}
	of := func(t TrafficPattern) []string {
		use := ""
		if t.LineUse != nil {
			use = Float(*t.LineUse)
		}
		return []string{Float(t.Fills), Float(t.WriteBacks), Float(t.Traffic), use}
	}
	for _, c := range r.Caches {
		rows = append(rows, append([]string{"", "", "", "", "", Whole(r.Accesses), "", "", "", "", c.Level}, of(c.TrafficPattern)...))
	}
	for _, x := range r.Instructions {
		for i, c := range x.Caches {
			rows = append(rows, append([]string{x.Address, x.Function, x.File, fmt.Sprint(x.Line), x.Access, Whole(x.Accesses), x.Stride, fmt.Sprint(x.Step),
				Float(x.Kept), fmt.Sprint(x.Prefetched), r.Caches[i].Level}, of(c)...))
		}
	}
	return rows
}

// patternRows is how many instructions the text has.
const patternRows = 20

func (r *Patterns) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s accesses, %s lines touched, %s distinct (%s)\n", r.Trace, Amount(float64(r.Accesses)), Amount(float64(r.Touches)),
		Amount(float64(r.Lines)), Bytes(float64(r.Lines)*model.LineBytes))
	b.WriteString("\nstride     of accesses\n")
	for _, s := range r.Strides {
		fmt.Fprintf(&b, "%-12s %8s\n", cmp.Or(s.Stride, "too few"), Percent(float64(s.Accesses), float64(r.Accesses)))
	}
	b.WriteString("\ncache          size     fills  write-backs   traffic  line use\n")
	for _, c := range r.Caches {
		fmt.Fprintf(&b, "%-9s %9s %9s %12s %9s  %s\n", c.Level, Bytes(float64(c.Bytes)), Amount(c.Fills), Amount(c.WriteBacks), Bytes(c.Traffic), lineUse(c.LineUse))
	}
	if len(r.Caches) > 0 {
		last := r.Caches[len(r.Caches)-1].Level
		fmt.Fprintf(&b, "\ntraffic of %-4s line use     accesses  stride             step  where\n", last)
		for _, x := range r.Instructions[:min(len(r.Instructions), patternRows)] {
			c := x.Caches[len(x.Caches)-1]
			fmt.Fprintf(&b, "%12s  %-11s %9s  %-11s %11s  %s %s\n", Bytes(c.Traffic), lineUse(c.LineUse), Amount(float64(x.Accesses)), cmp.Or(x.Stride, "-"), x.step(), x.Access, x.where())
		}
		if n := len(r.Instructions) - patternRows; n > 0 {
			fmt.Fprintf(&b, "and %d more: --format csv or json has all\n", n)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(&b, "note:", n)
	}
	return b.String()
}

func lineUse(mean *float64) string {
	if mean == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f of %d", *mean, model.LineBytes)
}

// step is the most frequent one, where it tells something.
func (x *InstructionPattern) step() string {
	if class, _ := model.ParseStride(x.Stride); class.Regular() {
		return fmt.Sprint(x.Step)
	}
	return "-"
}

func (x *InstructionPattern) where() string {
	s := cmp.Or(x.Function, x.Address)
	if x.File != "" {
		s += fmt.Sprintf(" %s:%d", filepath.Base(x.File), x.Line)
	}
	return s
}
