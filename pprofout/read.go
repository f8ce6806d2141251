package pprofout

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// maxSize bounds what a profile may unpack to, so that a small malicious file
// cannot take all memory.
const maxSize = 1 << 30

// Read reads a profile that Write wrote, or several such merged by pprof's
// rules. Derived fields are those of the file.
//
// Whatever else r holds gives an error of one line that begins with "not an
// rdx profile" and gives the offset of the byte at which reading failed.
func Read(r io.Reader) (*model.Profile, error) {
	data, unpacked, err := unpack(r)
	if err != nil {
		return nil, err
	}
	p, err := readParts(splitSamples(data))
	if err != nil {
		// Whatever it was: bytes that are no message are the cause.
		if at, what := brokenAt(data, 0, wireProfile); what != "" {
			err = notRdx("no pprof data: byte %d%s: %s", at, unpacked, what)
		}
	}
	return p, err
}

// readParts reads a profile by its parts, see splitSamples.
func readParts(rest []byte, parts [][]byte) (*model.Profile, error) {
	in, err := parse(rest)
	if err != nil {
		return nil, err
	}
	return decode(in, func(yield func([]*profile.Sample) error) error {
		if err := yield(in.Sample); err != nil { // of an unusual encoding
			return err
		}
		for _, part := range parts {
			in, err := parse(slices.Concat(rest, part))
			if err != nil {
				return err
			}
			if err := yield(in.Sample); err != nil {
				return err
			}
		}
		return nil
	})
}

func parse(data []byte) (*profile.Profile, error) {
	in, err := profile.ParseUncompressed(data)
	if err == nil {
		err = in.CheckValid()
	}
	if err != nil {
		return nil, notRdx("no pprof data: %v", err)
	}
	return in, nil
}

// notRdx makes an error of one line, whatever the file put into it.
func notRdx(format string, args ...any) error {
	msg := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	return errors.New("not an rdx profile: " + msg)
}

// unpack reads all of r, unpacked if it is a gzip; where says so in messages
// about its bytes.
func unpack(r io.Reader) (data []byte, where string, err error) {
	data, err = io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return nil, "", fmt.Errorf("read profile: byte %d: %w", len(data), err)
	}
	if len(data) == 0 {
		return nil, "", notRdx("the file is empty")
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		in := bytes.NewReader(data)
		size := in.Len()
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, "", notRdx("gzip: byte %d: %v", size-in.Len(), err)
		}
		if data, err = io.ReadAll(io.LimitReader(z, maxSize+1)); err != nil {
			return nil, "", notRdx("gzip is cut off or damaged at byte %d, %d unpacked: %v", size-in.Len(), len(data), err)
		}
		where = " unpacked"
		if len(data) == 0 {
			return nil, "", notRdx("no pprof data: the gzip holds nothing")
		}
	}
	if len(data) > maxSize {
		return nil, "", notRdx("more than %d bytes unpacked", maxSize)
	}
	return data, where, nil
}

// Decode is Read for a profile that is parsed already.
func Decode(in *profile.Profile) (*model.Profile, error) {
	return decode(in, func(yield func([]*profile.Sample) error) error { return yield(in.Sample) })
}

// decode reads the samples that come in parts. They may point to locations of
// their own, which are those of in by their IDs.
func decode(in *profile.Profile, samples func(yield func([]*profile.Sample) error) error) (*model.Profile, error) {
	sessions, other, err := parseComments(in.Comments)
	if err != nil {
		return nil, notRdx("%v", err)
	}
	if len(sessions) == 0 {
		var types []string
		for _, t := range in.SampleType {
			types = append(types, t.Type+"/"+t.Unit)
		}
		return nil, notRdx("a pprof profile of another tool, with sample types %.200s", strings.Join(types, " "))
	}
	p, err := combine(sessions)
	if err != nil {
		return nil, notRdx("%v", err)
	}
	p.Comments = append(p.Comments, other...)
	if in.DurationNanos > 0 {
		p.Duration = time.Duration(in.DurationNanos) // merging adds it up
	}
	d := decoder{p: p, in: in, mappings: map[uint64]*model.Mapping{}, frames: map[frameID]*model.Location{}, data: map[string]*model.Data{}}
	if err := d.columns(); err != nil {
		return nil, notRdx("%v", err)
	}
	losses, i := map[model.CountName]int64{}, 0
	err = samples(func(part []*profile.Sample) error {
		for _, s := range part {
			if err := d.sample(s, losses); err != nil {
				return notRdx("sample %d: %v", i, err)
			}
			i++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.addLosses(losses)
	d.compareTotals(sessions)
	return p, nil
}

type decoder struct {
	p      *model.Profile
	in     *profile.Profile
	column []int // of the file, per sample type of the profile
	// latencies: the file has a column of them.
	latencies bool
	squares   bool // likewise
	windows   bool // likewise

	mappings map[uint64]*model.Mapping // by ID
	frames   map[frameID]*model.Location
	data     map[string]*model.Data
	total    int64 // observations
}

type frameID struct {
	loc  uint64 // its ID
	leaf bool
}

// columns finds the sample types by name: other tools may reorder them.
func (d *decoder) columns() error {
	index := func(want *profile.ValueType) int {
		return slices.IndexFunc(d.in.SampleType, func(t *profile.ValueType) bool { return t.Type == want.Type && t.Unit == want.Unit })
	}
	d.latencies = index(latencyType) >= 0
	d.squares = index(squaresType) >= 0
	d.windows = index(windowTypes[0]) >= 0
	for _, want := range sampleTypes(d.p.Caches, columns{d.squares, d.windows, d.latencies}) {
		i := index(want)
		if i < 0 {
			return fmt.Errorf("no sample type %s/%s", want.Type, want.Unit)
		}
		d.column = append(d.column, i)
	}
	return nil
}

func (d *decoder) sample(s *profile.Sample, losses map[model.CountName]int64) error {
	word := first(s.Label[kindLabel])
	kind, ok := model.ParseKind(word)
	if !ok && word != latency && word != touchKind && word != cpuKind {
		return fmt.Errorf("kind %.40q is not known", word)
	}
	for _, i := range d.column {
		if v := s.Value[i]; v < 0 {
			return fmt.Errorf("value %d of %s is negative: the difference of two profiles is not a profile", v, d.in.SampleType[i].Type)
		}
	}
	value := func(i int) int64 { return s.Value[d.column[i]] }
	n := value(0)
	if n > math.MaxInt64-d.total {
		return fmt.Errorf("observations add up to more than %d", int64(math.MaxInt64))
	}
	d.total += n

	stack := s.Location
	if len(stack) == 0 {
		return fmt.Errorf("no locations")
	}
	switch word {
	case latency:
		return d.useLatency(s)
	case touchKind, cpuKind:
		return d.window(word, s)
	}
	if name := lossOf(frameName(stack[0])); kind == model.Lost && name != "" {
		losses[name] += n
		return nil
	}

	r := model.Record{Kind: kind, Observations: n, Accesses: float64(value(1)), Reuses: float64(value(2))}
	last := 3 + len(d.p.Caches)
	for i := 3; i < last; i++ {
		r.Misses = append(r.Misses, float64(value(i)))
	}
	r.Distance = float64(value(last))
	if d.squares {
		r.Squares = float64(value(last+1)) * squareUnit
	}
	r.DataSource = first(s.Label[sourceLabel])
	r.Op = parseOp(first(s.Label[accessLabel]))
	r.BelowResolution = first(s.Label[belowLabel]) == "true"
	r.Exact = first(s.Label[exactLabel]) == "true"
	if name := first(s.Label[dataLabel]); name != "" {
		r.Data = d.datum(name)
	}
	if n := first(s.NumLabel[distinct]); n > 0 {
		r.Distinct = uint64(n)
	}
	r.After = uint64(max(0, first(s.NumLabel[readAhead])))
	if word := first(s.Label[pairLabel]); word != "" {
		r.Half = true
		if r.Pair, ok = model.ParseKind(word); !ok {
			return fmt.Errorf("pair %.40q is not known", word)
		}
		r.PairTime = uint64(max(0, first(s.NumLabel[pairTime])))
	}
	r.TID = int(first(s.NumLabel[tidLabel]))
	r.Epoch = int(first(s.NumLabel[epochLabel]))
	r.Hold = uint64(first(s.NumLabel[holdLabel]))
	r.Open = min(max(float64(first(s.NumLabel[openLabel]))/1e6, 0), 1)
	if g := first(s.NumLabel[groupLabel]); g > 0 && g <= model.JackknifeGroups {
		r.Group = int(g)
	}
	if r.Stack, ok = model.ParseStackKind(cmp.Or(first(s.Label[stackLabel]), model.StackOwn.String())); !ok {
		return fmt.Errorf("stack %.40q is not known", first(s.Label[stackLabel]))
	}
	r.EndTID = int(first(s.NumLabel[endLabel]))
	r.Address, r.Written = uint64(first(s.NumLabel[usedLabel])), uint64(first(s.NumLabel[writeLabel]))

	t, native := first(s.NumLabel[reuseTime]), first(s.NumLabel[cpuTime])
	if t < 0 || native < 0 {
		return fmt.Errorf("negative time")
	}
	r.Time, r.Native = uint64(t), uint64(native)
	if d.p.Clock.Unit != nanoseconds && timed(kind) {
		r.Native = d.native(r.Time)
	}

	marker := slices.IndexFunc(stack, func(l *profile.Location) bool { return frameName(l) == pseudoFrame(kind) })
	switch {
	case twoStacks(kind) && marker < 0:
		r.Reuse = d.stack(stack)
	case twoStacks(kind):
		r.Reuse, r.Use = d.stack(stack[:marker]), d.stack(stack[marker+1:])
	case marker == 0:
		r.Use = d.stack(stack[1:])
	default:
		return fmt.Errorf("kind %s without the frame %s", kind, pseudoFrame(kind))
	}
	d.p.Records = append(d.p.Records, r)
	return nil
}

// useLatency reads a sample of cycles that uses took.
func (d *decoder) useLatency(s *profile.Sample) error {
	if !d.latencies {
		return fmt.Errorf("cycles without the sample type %s/%s", latencyType.Type, latencyType.Unit)
	}
	l := model.Latency{Use: d.stack(s.Location), TID: int(first(s.NumLabel[tidLabel])), DataSource: first(s.Label[sourceLabel]),
		Cycles: float64(s.Value[d.column[len(d.column)-1]])}
	l.Op = parseOp(first(s.Label[accessLabel]))
	d.p.Latencies = append(d.p.Latencies, l)
	return nil
}

func parseOp(word string) model.Op {
	for _, op := range []model.Op{model.Load, model.Store} {
		if word == op.String() {
			return op
		}
	}
	return model.OpUnknown
}

// datum returns the one data object of a name.
func (d *decoder) datum(name string) *model.Data {
	if d.data[name] == nil {
		d.data[name] = &model.Data{Name: name}
	}
	return d.data[name]
}

// native turns accesses into the unit of a clock that has no label of its own.
func (d *decoder) native(t uint64) uint64 {
	rate := d.p.Clock.TouchRate()
	if !(rate > 0) || rate == 1 {
		return t
	}
	return uint64(min(math.Round(float64(t)/rate), math.MaxInt64))
}

func first[T any](v []T) (zero T) {
	if len(v) == 0 {
		return zero
	}
	return v[0]
}

// frameName is the name of a pseudo-frame, "" for a location of the program.
func frameName(l *profile.Location) string {
	if l.Address != 0 || l.Mapping != nil || len(l.Line) != 1 {
		return ""
	}
	return l.Line[0].Function.Name
}

func (d *decoder) stack(locs []*profile.Location) []*model.Location {
	var stack []*model.Location
	for i, l := range locs {
		k := frameID{l.ID, i == 0}
		if d.frames[k] == nil {
			d.frames[k] = d.location(l, i == 0)
		}
		stack = append(stack, d.frames[k])
	}
	return stack
}

func (d *decoder) location(l *profile.Location, leaf bool) *model.Location {
	m := &model.Location{Address: l.Address, Mapping: d.mapping(l.Mapping)}
	if !leaf && l.Address > 0 {
		m.Address++
	}
	for _, ln := range l.Line {
		f := ln.Function
		m.Lines = append(m.Lines, model.Line{Function: f.Name, SystemName: f.SystemName, File: f.Filename, Line: int(ln.Line), StartLine: int(f.StartLine)})
	}
	return m
}

func (d *decoder) mapping(m *profile.Mapping) *model.Mapping {
	if m == nil {
		return nil
	}
	if d.mappings[m.ID] == nil {
		file := m.File
		if strings.HasPrefix(file, anonPrefix) {
			file = ""
		}
		d.mappings[m.ID] = &model.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: file, BuildID: m.BuildID}
	}
	return d.mappings[m.ID]
}

// lossOf is the count of a loss that a pseudo frame stands for, "" if it is another's.
func lossOf(frame string) model.CountName {
	name, ok := strings.CutPrefix(frame, "[")
	if !ok || !model.LostBecause.Has(model.CountName(name)) {
		return ""
	}
	return model.CountName(strings.TrimSuffix(name, "]"))
}

// addLosses raises the counts that comments gave to what the samples say.
func (d *decoder) addLosses(losses map[model.CountName]int64) {
	for name, n := range losses {
		i := slices.IndexFunc(d.p.Counts, func(c model.Count) bool { return c.Name == name })
		if i < 0 {
			d.p.Counts = append(d.p.Counts, model.Count{Name: name, N: n})
		} else {
			d.p.Counts[i].N = max(d.p.Counts[i].N, n)
		}
	}
	sortCounts(d.p.Counts)
}

// compareTotals remarks where a tool has dropped or scaled samples.
func (d *decoder) compareTotals(sessions []*session) {
	var written int64
	for _, s := range sessions {
		written += s.observations
	}
	if d.total != written {
		d.p.Comments = appendNew(d.p.Comments, fmt.Sprintf("changed since it was profiled: holds %d of %d observations", d.total, written))
	}
}
