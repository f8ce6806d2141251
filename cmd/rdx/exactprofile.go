package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// profileSink makes a profile of an exact analysis.
type profileSink interface {
	exactSink
	counted() *exact.PairTally
}

// newExactProfile checks first what would only show at the end.
func newExactProfile(path string, block, perOctave int, private bool, sizes []string, how *exactFlags) (profileSink, error) {
	caches, err := cacheSizes(sizes)
	if err != nil {
		return nil, err
	}
	if err := pprofout.CheckWritable(path); err != nil {
		return nil, err
	}
	tally, err := exact.NewPairTally(block, perOctave, private, caches)
	if err != nil {
		return nil, err
	}
	if !private && how.gpu == "" {
		p, err := exact.NewPairs(tally, how.jobs)
		return &pairsSink{p, tally}, err
	}
	s := &stacksSink{tally: tally}
	s.stacks, err = newStacks(block, private, how, s.touch)
	return s, err
}

// placedSink is an exactSink that needs of accesses the blocks and bytes that they touch and where in the program they do.
type placedSink interface {
	exactSink
	addPlaced(*model.PlacedTouches) error
}

// pairedSink is one that needs only to count them by where the use before was, too.
type pairedSink interface {
	exactSink
	addPaired(*model.PairedTouches) error
}

// pairsSink is a profile of a shared stack.
type pairsSink struct {
	*exact.Pairs
	tally *exact.PairTally
}

func (s *pairsSink) counted() *exact.PairTally              { return s.tally }
func (s *pairsSink) add(a []model.Access) error             { return s.Add(a) }
func (s *pairsSink) addPaired(t *model.PairedTouches) error { return s.AddTouches(t) }

func (s *pairsSink) fill(r *exactRun) error {
	s.Finish()
	r.Accesses, r.Loads, r.Stores, r.Touches, r.Blocks = s.Accesses(), s.Loads(), s.Stores(), s.Touches(), s.Blocks()
	return nil
}

// stacksSink is a profile of stacks that tell of each touch.
type stacksSink struct {
	stacks
	tally         *exact.PairTally
	ops           opCounts
	touches, cold uint64
}

func (s *stacksSink) counted() *exact.PairTally { return s.tally }

func (s *stacksSink) add(a []model.Access) error {
	s.ops.add(a)
	return s.stacks.Add(a)
}

func (s *stacksSink) touch(t *exact.Touch) {
	s.touches++
	if t.Kind == model.Cold {
		s.cold++
	}
	s.tally.Add(t)
}

func (s *stacksSink) fill(r *exactRun) error {
	if err := s.stacks.Finish(); err != nil {
		return err
	}
	s.ops.fill(r)
	r.Touches, r.Blocks, r.Device = s.touches, s.cold, s.device()
	return nil
}

// writeProfile writes what was counted, with the symbols of the mappings if the source
// was a program or a recording that has them.
func writeProfile(tally *exact.PairTally, path string, r *exactRun, start time.Time, mappings []*model.Mapping) error {
	p, parts := tally.Head(), tally.Parts(locator(mappings))
	p.Writer = version.Get().String()
	p.Start, p.Duration, p.Command = start, time.Since(start), r.Trace
	p.Counts = []model.Count{{Name: model.ExactAccesses, N: int64(r.Accesses)}, {Name: model.ExactBlocks, N: int64(r.Blocks)}}
	if n := tally.Rare(); n > 0 {
		p.Counts = append(p.Counts, model.Count{Name: model.ExactForgotten, N: int64(n)})
	}
	for _, w := range r.Warnings {
		p.Comments = append(p.Comments, model.EndedEarly+": "+w)
	}
	// Of the records symbolizing needs the instructions alone. There are many, and a record is large.
	named := &model.Profile{Touches: make([]model.Touch, len(parts.Locations))}
	for i := range parts.Locations {
		named.Touches[i].Use = parts.Locations[i : i+1 : i+1]
	}
	if err := nameLocations(named, &p.Comments, len(mappings) == 0); err != nil {
		return err
	}
	return pprofout.WriteFile(path, p, pprofout.WithParts(&pprofout.Parts{Uses: parts.Uses, Locations: parts.Locations, Kinds: parts.Kinds, Records: parts.Records}))
}

// locator gives each instruction a location of its own, in its mapping.
func locator(mappings []*model.Mapping) func(pc uint64) *model.Location {
	locations := map[uint64]*model.Location{}
	return func(pc uint64) *model.Location {
		l := locations[pc]
		if l == nil {
			l = &model.Location{Address: pc}
			for _, m := range mappings {
				if m.Start <= pc && pc < m.Limit {
					l.Mapping = m
				}
			}
			locations[pc] = l
		}
		return l
	}
}

// mappedFiles opens mappings by name: the program that had them has ended.
type mappedFiles struct{ opened *[]*os.File }

func (f mappedFiles) Open(m *model.Mapping) (io.ReaderAt, error) {
	if !strings.HasPrefix(m.File, "/") {
		return nil, fmt.Errorf("open mapping %s: %w", m.File, fs.ErrNotExist)
	}
	root, err := safeopen.OfProcess()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(m.File, nil)
	if err != nil {
		return nil, err
	}
	*f.opened = append(*f.opened, file)
	return file, nil
}

func (mappedFiles) Generated() ([]pprofout.Generated, func(*model.Mapping) int) {
	return nil, func(*model.Mapping) int { return -1 }
}

var errChildrenProfile = report.BadInput(errors.New("exact -o: a profile is of one program; leave --children out"))
