package pprofout

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// generated names code that no file explains by the tables of the process whose it
// is. Two processes may have different code at one address.
func (s *symbolizer) generated(targets []target, b Binaries) {
	if len(targets) == 0 {
		return
	}
	tables, of := b.Generated()
	byProcess := make([][]target, len(tables))
	var anybody []target // whose it is not known
	for _, t := range targets {
		if i := of(t.loc.Mapping); i >= 0 {
			byProcess[i] = append(byProcess[i], t)
		} else {
			anybody = append(anybody, t)
		}
	}
	for i := range tables {
		named := s.tables(&tables[i], byProcess[i])
		s.unnamed(&tables[i], byProcess[i], named)
	}
	s.byAgreement(tables, anybody)
}

// tables names targets by the tables of a process.
func (s *symbolizer) tables(g *Generated, targets []target) (named map[*model.Location][]model.Line) {
	named = make(map[*model.Location][]model.Line)
	left := slices.Clone(targets)
	slices.SortFunc(left, func(a, b target) int { return cmp.Compare(a.pc, b.pc) })
	try := func(what string, read func(pcs []uint64) ([][]model.Line, error)) {
		if len(left) == 0 {
			return
		}
		pcs := make([]uint64, len(left))
		for i, t := range left {
			pcs[i] = t.pc
		}
		lines, err := read(pcs)
		if err != nil {
			s.problem(fmt.Sprintf("%s of process %d", what, g.Process), err)
		}
		var rest []target
		for i, t := range left {
			if len(lines[i]) > 0 {
				named[t.loc], t.loc.Lines = lines[i], lines[i]
			} else {
				rest = append(rest, t)
			}
		}
		left = rest
	}
	for _, r := range g.Dumps {
		try("jitdump", func(pcs []uint64) ([][]model.Line, error) { return readJITDump(r, pcs) })
	}
	for _, r := range g.Maps {
		try("perf map", func(pcs []uint64) ([][]model.Line, error) {
			names, err := readPerfMap(io.NewSectionReader(r, 0, math.MaxInt64), pcs)
			lines := make([][]model.Line, len(names))
			for i, name := range names {
				if name != "" {
					lines[i] = []model.Line{{Function: name, SystemName: name}}
				}
			}
			return lines, err
		})
	}
	return named
}

// unnamed says why code has no names, and what to do.
func (s *symbolizer) unnamed(g *Generated, targets []target, named map[*model.Location][]model.Line) {
	n := 0
	for _, t := range targets {
		if named[t.loc] == nil && !t.loc.Mapping.IsFile() {
			n++
		}
	}
	where := fmt.Sprintf("generated code of process %d", g.Process)
	switch {
	case n == 0:
	case g.Err != nil:
		s.problem(where, noNames("%d addresses without a name: %w", n, g.Err))
	case len(g.Maps)+len(g.Dumps) > 0:
		s.problem(where, noNames("%d addresses without a name: what its compiler has written does not cover them", n))
	default:
		s.problem(where, noNames("%d addresses without a name: there is no perf map of it in /tmp, which JIT compilers write if told to: node --perf-basic-prof, java -XX:+PreserveFramePointer and jcmd PID Compiler.perfmap, python -X perf, DOTNET_PerfMapEnabled=1", n))
	}
}

// byAgreement names code of which it is not known whose it is, as it was in no known mapping: where only one
// process has a name for its address.
func (s *symbolizer) byAgreement(tables []Generated, targets []target) {
	if len(targets) == 0 {
		return
	}
	names := make(map[*model.Location][]model.Line)
	differ := make(map[*model.Location]bool)
	for i := range tables {
		if len(tables[i].Maps)+len(tables[i].Dumps) == 0 {
			continue
		}
		quiet := symbolizer{}
		for l, lines := range quiet.tables(&tables[i], targets) {
			if old, ok := names[l]; ok && !slices.Equal(old, lines) {
				differ[l] = true
			}
			names[l] = lines
		}
		for _, t := range targets {
			t.loc.Lines = nil
		}
	}
	for _, t := range targets {
		if !differ[t.loc] {
			t.loc.Lines = names[t.loc]
		}
	}
}
