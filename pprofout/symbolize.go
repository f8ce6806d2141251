package pprofout

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// Binaries opens what the target has mapped. Whoever implements it sees the
// target's files even if it is gone or lives in another mount namespace.
type Binaries interface {
	// Open returns the file behind a mapping; for "[vdso]" its ELF image. It stays open.
	Open(m *model.Mapping) (io.ReaderAt, error)
	// Generated returns, for each process that has any, the tables in which JIT compilers
	// name their code, and whose a mapping is: an index into these, -1 if it is not known.
	Generated() (tables []Generated, of func(*model.Mapping) int)
}

// TargetFiles are Binaries that also open files by names as the process of a mapping has them, below its root:
// debug files of a container are in it. They stay open.
type TargetFiles interface {
	OpenNamed(m *model.Mapping, name string) (io.ReaderAt, error)
}

// belowRoot is the root of a mapping's process.
type belowRoot struct {
	TargetFiles
	m *model.Mapping
}

func (r belowRoot) Open(name string) (io.ReaderAt, error) { return r.OpenNamed(r.m, name) }

// Generated are the names of the generated code of one process.
type Generated struct {
	Process int
	// Maps are perf maps, /tmp/perf-PID.map, and Dumps jitdumps, both the best first.
	Maps, Dumps []io.ReaderAt
	Err         error // why one that there is can't be read
}

// Stats says what Symbolize could and could not do.
type Stats struct {
	Locations int // that had an address and no lines yet
	Functions int // of those, now with a function
	Lines     int // of those, now with a file and line
	// Problems tells, once per mapping, why names or lines are missing.
	Problems []Problem
}

// Symbolize fills in Location.Lines, innermost function first, of all
// locations that have an address and no lines.
//
// Sources, for each file: DWARF, in the file or in a separate debug file
// found by build ID or .gnu_debuglink; Go's pclntab; the symbol tables; for
// code without a file jitdumps and perf maps of its process. What has no name keeps its address and
// build ID, so that pprof can find it later.
//
// All frames but a stack's leaf are return addresses and are looked up one
// byte earlier, inside the call. A location that is both is split in two.
//
// What cannot be read becomes a problem in Stats, not an error: a profile
// with some names missing is still one. It errs on a record with a nil frame.
//
// Only compile units that hold one of the addresses are parsed, so time goes
// with the code that was seen, not with the size of the debug information.
// That information is held in memory, one file's at a time.
func Symbolize(p *model.Profile, b Binaries) (Stats, error) {
	host := &hostFiles{}
	defer host.Close()
	s := symbolizer{host: host}
	return s.run(p, b)
}

type symbolizer struct {
	host  debugRoot // where debug files are besides the target's root; nil: nowhere
	stats Stats

	kept  map[fileKey]*image // by withKept; nil for what can't be read
	sites int                // that it was asked for

	pointsTo map[*model.Data]dwarf.Type // what the variable does that a block is assigned to
}

type fileKey struct{ file, buildID string }

func keyOf(m *model.Mapping) fileKey { return fileKey{m.File, m.BuildID} }

// A target is a location and the address to look up for it.
type target struct {
	loc *model.Location
	pc  uint64
}

func (s *symbolizer) run(p *model.Profile, b Binaries) (Stats, error) {
	targets, err := split(p)
	if err != nil {
		return Stats{}, fmt.Errorf("symbolize: %w", err)
	}
	s.stats.Locations = len(targets)

	files := map[fileKey][]target{}
	var order []fileKey
	var jit []target
	for _, t := range targets {
		m := t.loc.Mapping
		if !m.IsFile() {
			jit = append(jit, t)
			continue
		}
		k := keyOf(m)
		if files[k] == nil {
			order = append(order, k)
		}
		files[k] = append(files[k], t)
	}
	for _, k := range order {
		if err := s.file(files[k], b); err != nil {
			s.problem(k.file, err)
		}
	}
	// Some runtimes run their code from a file of their own (memfd, a hugepage
	// mount), so the perf map is asked for all that no file explained.
	for _, t := range targets {
		if len(t.loc.Lines) == 0 && t.loc.Mapping.IsFile() {
			jit = append(jit, t)
		}
	}
	s.generated(jit, b)

	s.nameData(p, b)
	s.nameMembers(p, b)

	for _, t := range targets {
		if len(t.loc.Lines) > 0 {
			s.stats.Functions++
			if t.loc.Lines[0].Line > 0 {
				s.stats.Lines++
			}
		}
	}
	return s.stats, nil
}

func (s *symbolizer) problem(where string, err error) {
	s.stats.Problems = append(s.stats.Problems, Problem{where, err})
}

// Problem is what could not be read of the symbols of a file, or of generated code.
type Problem struct {
	Where string
	Err   error
}

func (p Problem) Error() string { return fmt.Sprintf("symbolize %s: %v", p.Where, p.Err) }

// Unwrap gives the error.
func (p Problem) Unwrap() error { return p.Err }

// Comment is what a profile says of it: of which kind goes by whether functions, or calls inlined into them, have no
// name for it, or only less is known of them.
func (p Problem) Comment() string {
	if errors.Is(p.Err, errNameless) || errors.Is(p.Err, safeopen.ErrStalled) {
		return fmt.Sprintf(model.NamesMissing+"%s: %v", p.Where, p.Err)
	}
	return fmt.Sprintf(model.SymbolsPartly+"%s: %v", p.Where, p.Err)
}

// errNameless is what an error is that leaves code without a name, see nameless.
var errNameless = errors.New("without a name")

// nameless is an error that leaves code without a name. It says what it says, nothing more.
type nameless struct{ error }

func (n nameless) Is(target error) bool { return target == errNameless }
func (n nameless) Unwrap() error        { return n.error }

// noNames is fmt.Errorf of such an error.
func noNames(format string, args ...any) error { return nameless{fmt.Errorf(format, args...)} }

// split finds the locations to look up, and gives a copy to those that are
// the leaf of one stack and a caller in another: their lines may differ.
func split(p *model.Profile) ([]target, error) {
	caller := map[*model.Location]bool{}
	var order []target
	seen := map[*model.Location]bool{}
	wanted := func(l *model.Location) bool { return l.Address != 0 && len(l.Lines) == 0 }
	look := func(what string, i int, data *model.Data, stacks ...[]*model.Location) error {
		if data != nil {
			stacks = append(stacks, data.Site) // of which the leaf needs no name
		}
		for _, stack := range stacks {
			for j, l := range stack {
				if l == nil {
					return fmt.Errorf("%s %d has a nil frame", what, i)
				}
				if j > 0 && wanted(l) && !caller[l] {
					caller[l] = true
					order = append(order, target{l, l.Address - 1})
				}
			}
		}
		return nil
	}
	for i := range p.Records {
		r := &p.Records[i]
		if err := look("record", i, r.Data, r.Use, r.Reuse); err != nil {
			return nil, err
		}
	}
	for i := range p.Touches {
		if err := look("touch", i, p.Touches[i].Data, p.Touches[i].Use); err != nil {
			return nil, err
		}
	}
	for i := range p.Moments {
		if err := look("moment", i, p.Moments[i].Data, p.Moments[i].Stack); err != nil {
			return nil, err
		}
	}
	leaves := map[*model.Location]*model.Location{}
	leaf := func(stack []*model.Location) []*model.Location {
		if len(stack) == 0 || !wanted(stack[0]) {
			return stack
		}
		l := stack[0]
		if !caller[l] {
			if !seen[l] {
				seen[l] = true
				order = append(order, target{l, l.Address})
			}
			return stack
		}
		if leaves[l] == nil {
			c := *l
			leaves[l] = &c
			order = append(order, target{&c, c.Address})
		}
		// Cloned, for stacks may share memory with others' tails.
		stack = slices.Clone(stack)
		stack[0] = leaves[l]
		return stack
	}
	for i := range p.Records {
		r := &p.Records[i]
		r.Use, r.Reuse = leaf(r.Use), leaf(r.Reuse)
	}
	for i := range p.Touches {
		p.Touches[i].Use = leaf(p.Touches[i].Use)
	}
	for i := range p.Moments {
		p.Moments[i].Stack = leaf(p.Moments[i].Stack)
	}
	return order, nil
}

// withImage opens the file of a mapping for f.
func (s *symbolizer) withImage(m *model.Mapping, b Binaries, f func(*image) error) (err error) {
	defer func() {
		// The file is the target's and may hold anything.
		if e := recover(); e != nil {
			err = fmt.Errorf("damaged file: %v", e)
		}
	}()
	r, err := b.Open(m)
	if err != nil {
		return err
	}
	var debugRoots []debugRoot
	if t, ok := b.(TargetFiles); ok {
		debugRoots = append(debugRoots, belowRoot{t, m})
	}
	if s.host != nil {
		debugRoots = append(debugRoots, s.host)
	}
	img, err := openImage(r, m, debugRoots)
	if err != nil {
		return err
	}
	return f(img)
}

// file looks up addresses in one ELF file.
func (s *symbolizer) file(targets []target, b Binaries) error {
	read := false
	err := s.withImage(targets[0].loc.Mapping, b, func(img *image) error {
		read = true
		return lookUp(img, targets)
	})
	if err != nil && !read {
		err = noNames("%d addresses without a name: %w", len(targets), err)
	}
	return err
}

func lookUp(img *image, targets []target) error {
	byPC := map[uint64][]*model.Location{}
	outside := 0
	for _, t := range targets {
		if pc, ok := img.vaddr(t.loc.Mapping, t.pc); ok {
			byPC[pc] = append(byPC[pc], t.loc)
		} else {
			outside++
		}
	}
	pcs := make([]uint64, 0, len(byPC))
	for pc := range byPC {
		pcs = append(pcs, pc)
	}
	slices.Sort(pcs)
	found, err := img.lookup(pcs)
	for pc, lines := range found {
		for _, l := range byPC[pc] {
			l.Lines = lines
		}
	}
	if outside > 0 {
		err = errors.Join(err, fmt.Errorf("%d addresses lie in no segment of the file", outside))
	}
	return oneLine(err)
}

// oneLine joins what errors.Join put on several lines.
func oneLine(err error) error {
	if err == nil || !strings.Contains(err.Error(), "\n") {
		return err
	}
	return joinedLine{err}
}

// joinedLine is an error of several lines, in one.
type joinedLine struct{ all error }

func (j joinedLine) Error() string { return strings.ReplaceAll(j.all.Error(), "\n", "; ") }
func (j joinedLine) Unwrap() error { return j.all }

// mostName bounds what a name of some bytes may be written out to: two to that power.
const mostName = 14

// display turns a name of the symbol table into one for people: C++ and Rust
// names are demangled, without parameter types, which file and line make
// needless.
func display(name string) string {
	return demangle.Filter(name, demangle.NoParams, demangle.NoEnclosingParams, demangle.MaxLength(mostName))
}
