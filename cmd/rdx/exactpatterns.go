package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// patternsSink tells how each instruction touches memory.
type patternsSink struct {
	*exact.Patterns
	caches []model.Cache
}

func newPatternsSink(o *exactOptions, r *exactReport) (*patternsSink, error) {
	if r.Block != model.LineBytes || r.Stack != "shared" {
		return nil, report.BadInput(errors.New("--patterns: line use and traffic are of lines, on a shared stack; leave --block and --stack out"))
	}
	h := &o.how
	if h.gpu != "" || h.log2 || h.sampled > 0 || h.approximate != "" || h.shards.value != (exact.ShardsConfig{}) {
		return nil, report.BadInput(errors.New("--patterns is exact, and of a processor; leave --gpu, --log2, --shards, --sampled and --approximate out"))
	}
	caches, err := cacheSizes(o.caches)
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, c := range caches {
		sizes = append(sizes, c.Size)
	}
	p, err := exact.NewPatterns(sizes)
	if err != nil {
		return nil, report.BadInput(err)
	}
	return &patternsSink{p, caches}, nil
}

func (s *patternsSink) add(a []model.Access) error             { return s.Add(a) }
func (s *patternsSink) addPlaced(t *model.PlacedTouches) error { return s.AddTouches(t) }

func (s *patternsSink) fill(r *exactReport) error {
	r.Accesses, r.Loads, r.Stores, r.Touches, r.Blocks = s.Accesses(), s.Loads(), s.Stores(), s.Touches(), s.Blocks()
	return nil
}

// patternReport is what rdx exact --patterns prints.
type patternReport struct {
	Trace    string         `json:"trace"`
	Accesses uint64         `json:"accesses"`
	Touches  uint64         `json:"touches"`
	Lines    uint64         `json:"distinct_lines"`
	Warnings []string       `json:"warnings,omitempty"`
	Notes    []string       `json:"notes"`
	Strides  []strideShare  `json:"stride"`
	Caches   []cachePattern `json:"caches"`
	// Instructions are ordered by their traffic at the largest cache, then by accesses.
	Instructions []instructionPattern `json:"instructions"`
}

// strideShare is how many accesses are of instructions of a class.
type strideShare struct {
	Stride   string `json:"stride"`
	Accesses uint64 `json:"accesses"`
}

// cachePattern is what is known of a cache, of one instruction or of all.
type cachePattern struct {
	Level string `json:"level,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // of the cache
	trafficPattern
	DirtyAtEnd uint64 `json:"dirty_at_end,omitempty"`
}

type trafficPattern struct {
	Fills      float64  `json:"fills"`
	WriteBacks float64  `json:"write_backs"`
	Traffic    float64  `json:"traffic"`  // bytes, both ways
	LineUse    *float64 `json:"line_use"` // bytes of a fetched line; null where none was fetched
}

type instructionPattern struct {
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
	Caches     []trafficPattern `json:"caches"` // as the report has them
}

func newTrafficPattern(t model.Traffic, u model.LineUse) trafficPattern {
	x := trafficPattern{Fills: t.Fills, WriteBacks: t.WriteBacks, Traffic: t.Bytes()}
	if mean, ok := u.Mean(); ok {
		x.LineUse = &mean
	}
	return x
}

// newPatternReport ends the analysis.
func newPatternReport(s *patternsSink, r *exactReport, mappings []*model.Mapping) (*patternReport, error) {
	all, dirty := s.Result()
	out := &patternReport{Trace: r.Trace, Accesses: r.Accesses, Touches: r.Touches, Lines: r.Blocks, Warnings: r.Warnings,
		Notes: []string{"traces have addresses and no values: gather, chase and random are one class, irregular"}}
	locate := locator(mappings)
	named := &model.Profile{}
	var locations []*model.Location
	byStride := [model.NumStrides]uint64{}
	traffic, use := make([]model.Traffic, len(s.caches)), make([]model.LineUse, len(s.caches))
	for i := range all {
		x := &all[i]
		l := locate(x.PC)
		locations = append(locations, l)
		named.Records = append(named.Records, model.Record{Use: []*model.Location{l}})
		class, kept := x.Strides.Class(model.Origins{})
		byStride[class] += x.Accesses
		y := instructionPattern{Address: fmt.Sprintf("%#x", x.PC), Access: x.Op.String(), Accesses: x.Accesses, Stride: class.String(), Kept: kept, Prefetched: x.Strides.Prefetched()}
		if f := x.Strides.Frequent(); len(f) > 0 {
			y.Step = f[0].Bytes
		}
		for c := range s.caches {
			y.Caches = append(y.Caches, newTrafficPattern(x.Traffic[c], x.LineUse[c]))
			traffic[c].Add(x.Traffic[c])
			use[c].Add(x.LineUse[c])
		}
		out.Instructions = append(out.Instructions, y)
	}
	if err := nameLocations(named, &out.Notes, len(mappings) == 0); err != nil {
		return nil, err
	}
	for i, l := range locations {
		if len(l.Lines) > 0 {
			x := &out.Instructions[i]
			x.Function, x.File, x.Line = l.Lines[0].Function, l.Lines[0].File, l.Lines[0].Line
		}
	}
	for class, n := range byStride {
		if n > 0 {
			out.Strides = append(out.Strides, strideShare{model.Stride(class).String(), n})
		}
	}
	for c, cache := range s.caches {
		out.Caches = append(out.Caches, cachePattern{cache.Level, cache.Size, newTrafficPattern(traffic[c], use[c]), dirty[c]})
	}
	slices.SortStableFunc(out.Instructions, func(a, b instructionPattern) int {
		if k := len(s.caches) - 1; k >= 0 {
			if c := cmp.Compare(b.Caches[k].Traffic, a.Caches[k].Traffic); c != 0 {
				return c
			}
		}
		return cmp.Compare(b.Accesses, a.Accesses)
	})
	return out, nil
}

// nameLocations gives the locations of a profile names; why some have none is noted.
func nameLocations(p *model.Profile, notes *[]string, unmapped bool) error {
	if unmapped {
		*notes = append(*notes, model.SymbolsPartly+"the trace does not tell what code was mapped where, so that instructions are addresses")
	}
	var opened []*os.File
	stats, err := pprofout.Symbolize(p, mappedFiles{&opened})
	for _, f := range opened {
		f.Close()
	}
	if err != nil {
		return err
	}
	for _, problem := range stats.Problems {
		*notes = append(*notes, problem.Comment())
	}
	return nil
}

// Table has one row an instruction and cache; in all, the address is empty.
func (r *patternReport) Table() [][]string {
	rows := [][]string{{"address", "function", "file", "line", "access", "accesses", "stride", "step", "kept", "prefetched", "cache", "fills", "write_backs", "traffic", "line_use"}}
	of := func(t trafficPattern) []string {
		use := ""
		if t.LineUse != nil {
			use = report.Float(*t.LineUse)
		}
		return []string{report.Float(t.Fills), report.Float(t.WriteBacks), report.Float(t.Traffic), use}
	}
	for _, c := range r.Caches {
		rows = append(rows, append([]string{"", "", "", "", "", report.Whole(r.Accesses), "", "", "", "", c.Level}, of(c.trafficPattern)...))
	}
	for _, x := range r.Instructions {
		for i, c := range x.Caches {
			rows = append(rows, append([]string{x.Address, x.Function, x.File, fmt.Sprint(x.Line), x.Access, report.Whole(x.Accesses), x.Stride, fmt.Sprint(x.Step),
				report.Float(x.Kept), fmt.Sprint(x.Prefetched), r.Caches[i].Level}, of(c)...))
		}
	}
	return rows
}

// patternRows is how many instructions the text has.
const patternRows = 20

func (r *patternReport) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s accesses, %s lines touched, %s distinct (%s)\n", r.Trace, report.Amount(float64(r.Accesses)), report.Amount(float64(r.Touches)),
		report.Amount(float64(r.Lines)), report.Bytes(float64(r.Lines)*model.LineBytes))
	b.WriteString("\nstride     of accesses\n")
	for _, s := range r.Strides {
		fmt.Fprintf(&b, "%-12s %8s\n", cmp.Or(s.Stride, "too few"), report.Percent(float64(s.Accesses), float64(r.Accesses)))
	}
	b.WriteString("\ncache          size     fills  write-backs   traffic  line use\n")
	for _, c := range r.Caches {
		fmt.Fprintf(&b, "%-9s %9s %9s %12s %9s  %s\n", c.Level, report.Bytes(float64(c.Bytes)), report.Amount(c.Fills), report.Amount(c.WriteBacks), report.Bytes(c.Traffic), lineUse(c.LineUse))
	}
	if len(r.Caches) > 0 {
		last := r.Caches[len(r.Caches)-1].Level
		fmt.Fprintf(&b, "\ntraffic of %-4s line use     accesses  stride             step  where\n", last)
		for _, x := range r.Instructions[:min(len(r.Instructions), patternRows)] {
			c := x.Caches[len(x.Caches)-1]
			fmt.Fprintf(&b, "%12s  %-11s %9s  %-11s %11s  %s %s\n", report.Bytes(c.Traffic), lineUse(c.LineUse), report.Amount(float64(x.Accesses)), cmp.Or(x.Stride, "-"), x.step(), x.Access, x.where())
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
func (x *instructionPattern) step() string {
	if class, _ := model.ParseStride(x.Stride); class.Regular() {
		return fmt.Sprint(x.Step)
	}
	return "-"
}

func (x *instructionPattern) where() string {
	s := cmp.Or(x.Function, x.Address)
	if x.File != "" {
		s += fmt.Sprintf(" %s:%d", path.Base(x.File), x.Line)
	}
	return s
}
