package main

import (
	"errors"
	"os"

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

func newPatternsSink(o *exactOptions, r *exactRun) (*patternsSink, error) {
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

func (s *patternsSink) fill(r *exactRun) error {
	r.Accesses, r.Loads, r.Stores, r.Touches, r.Blocks = s.Accesses(), s.Loads(), s.Stores(), s.Touches(), s.Blocks()
	return nil
}

// report ends the analysis.
func (s *patternsSink) report(r *exactRun, mappings []*model.Mapping) (*report.Patterns, error) {
	all, dirty := s.Result()
	locate := locator(mappings)
	in := make([]report.PatternInput, len(all))
	named := &model.Profile{Records: make([]model.Record, len(all))}
	for i := range all {
		x := &all[i]
		at := locate(x.PC)
		in[i] = report.PatternInput{At: at, Op: x.Op, Accesses: x.Accesses, Strides: x.Strides, Traffic: x.Traffic, LineUse: x.LineUse}
		named.Records[i].Use = []*model.Location{at}
	}
	var notes []string
	if err := nameLocations(named, &notes, len(mappings) == 0); err != nil {
		return nil, err
	}
	return report.NewPatterns(&r.Exact, s.caches, dirty, in, notes), nil
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
