package pprofout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// frameKey: one model.Location may be both a leaf and a caller, at addresses
// that differ by one in the file.
type frameKey struct {
	loc  *model.Location
	leaf bool
}

func (e *encoder) appendStack(to []*profile.Location, stack []*model.Location) []*profile.Location {
	for i, l := range stack {
		to = append(to, e.location(l, i == 0))
	}
	return to
}

func (e *encoder) pseudo(name string) *profile.Location {
	l := e.pseudos[name]
	if l == nil {
		l = e.intern(&model.Location{Lines: []model.Line{{Function: name, SystemName: name}}}, false)
		e.pseudos[name] = l
	}
	return l
}

func (e *encoder) location(l *model.Location, leaf bool) *profile.Location {
	k := frameKey{l, leaf}
	if f := e.frames[k]; f != nil {
		return f
	}
	f := e.intern(l, leaf)
	e.frames[k] = f
	return f
}

// intern finds the location by what it says, so that two model.Locations
// that are alike become one.
func (e *encoder) intern(l *model.Location, leaf bool) *profile.Location {
	f := &profile.Location{Address: l.Address, Mapping: e.mapping(l.Mapping)}
	if !leaf && l.Address > 0 {
		f.Address--
	}
	for _, ln := range l.Lines {
		f.Line = append(f.Line, profile.Line{Line: int64(ln.Line), Function: &profile.Function{
			Name: text(ln.Function), SystemName: text(ln.SystemName), Filename: text(ln.File), StartLine: int64(ln.StartLine)}})
	}
	key := strconv.AppendUint(e.key[:0], f.Address, 16)
	if f.Mapping != nil {
		key = fmt.Appendf(key, " %p", f.Mapping)
	}
	for _, ln := range f.Line {
		for _, text := range [...]string{ln.Function.Name, ln.Function.SystemName, ln.Function.Filename} {
			key = append(append(key, 0), text...)
		}
		key = strconv.AppendInt(append(key, 0), ln.Function.StartLine, 10)
		key = strconv.AppendInt(append(key, ' '), ln.Line, 10)
	}
	e.key = key
	if old := e.byValue[string(key)]; old != nil {
		return old
	}
	f.ID = uint64(len(e.byValue) + 1) // until number gives the final one
	e.byValue[string(key)] = f
	return f
}

// text makes a string fit for a protobuf, which refuses other than UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func (e *encoder) mapping(m *model.Mapping) *profile.Mapping {
	if m == nil {
		return nil
	}
	if f := e.mappings[*m]; f != nil {
		return f
	}
	f := &profile.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: text(m.File), BuildID: text(m.BuildID)}
	if f.File == "" && f.BuildID == "" {
		// pprof takes all nameless mappings of one size for the same one.
		f.File = fmt.Sprintf("%s%x-%x]", anonPrefix, m.Start, m.Limit)
	}
	e.mappings[*m] = f
	return f
}

const anonPrefix = "[anon "

// number gives IDs to mappings, locations and functions.
func (e *encoder) number(out *profile.Profile) {
	for _, m := range e.mappings {
		out.Mapping = append(out.Mapping, m)
	}
	slices.SortFunc(out.Mapping, func(a, b *profile.Mapping) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Offset, b.Offset),
			cmp.Compare(a.File, b.File), cmp.Compare(a.BuildID, b.BuildID))
	})
	for i, m := range out.Mapping {
		m.ID = uint64(i + 1)
	}
	for _, l := range e.byValue {
		out.Location = append(out.Location, l)
	}
	slices.SortFunc(out.Location, func(a, b *profile.Location) int {
		return cmp.Or(compareMappings(a.Mapping, b.Mapping), cmp.Compare(a.Address, b.Address),
			slices.CompareFunc(a.Line, b.Line, compareLines))
	})
	functions := map[profile.Function]*profile.Function{}
	for i, l := range out.Location {
		l.ID = uint64(i + 1)
		for j := range l.Line {
			f := l.Line[j].Function
			if functions[*f] == nil {
				functions[*f] = f
				out.Function = append(out.Function, f)
			}
			l.Line[j].Function = functions[*f]
		}
	}
	for i, f := range out.Function {
		f.ID = uint64(i + 1)
	}
	markSymbolized(out)
}

// markSymbolized sets what each mapping claims to have. pprof looks for
// symbols by itself only where no claim is made, so one is made only if
// it holds for every location. Inlined frames are claimed where there are some.
func markSymbolized(out *profile.Profile) {
	for _, m := range out.Mapping {
		m.HasFunctions, m.HasFilenames, m.HasLineNumbers = true, true, true
	}
	for _, l := range out.Location {
		m := l.Mapping
		if m == nil {
			continue
		}
		if len(l.Line) == 0 {
			m.HasFunctions, m.HasFilenames, m.HasLineNumbers = false, false, false
		}
		m.HasInlineFrames = m.HasInlineFrames || len(l.Line) > 1
		for _, ln := range l.Line {
			m.HasFunctions = m.HasFunctions && ln.Function.Name != ""
			m.HasFilenames = m.HasFilenames && ln.Function.Filename != ""
			m.HasLineNumbers = m.HasLineNumbers && ln.Line != 0
		}
	}
}

func compareMappings(a, b *profile.Mapping) int {
	id := func(m *profile.Mapping) uint64 {
		if m == nil {
			return 0
		}
		return m.ID
	}
	return cmp.Compare(id(a), id(b))
}

func compareLines(a, b profile.Line) int {
	f, g := a.Function, b.Function
	return cmp.Or(cmp.Compare(f.Name, g.Name), cmp.Compare(f.SystemName, g.SystemName), cmp.Compare(f.Filename, g.Filename),
		cmp.Compare(f.StartLine, g.StartLine), cmp.Compare(a.Line, b.Line))
}
