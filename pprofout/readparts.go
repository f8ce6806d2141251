package pprofout

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// passedAtOnce is of how many bytes others are told that they were read.
const passedAtOnce = 4 << 20

// leastPart is how many samples are worth a goroutine: they take it half a millisecond. Each of mostParts has tables of its own.
const (
	leastPart = 1024
	mostParts = 8
)

// readSamples reads a profile. Its samples are decoded in that many parts, or fewer, each by a goroutine.
func readSamples(data []byte, from *parted, parts int) (*model.Profile, error) {
	// Hostile ones have many that are too small to be any.
	room, stop := huge(make([]model.Record, 0, min(from.samples, len(data)/leastSample)))
	defer stop()
	in, err := parse(from.rest)
	if err != nil {
		return nil, err
	}
	d, err := newDecoder(in, room)
	if err != nil {
		return nil, err
	}
	if err := d.parsed(in.Sample); err != nil { // of an unusual encoding
		return nil, err
	}
	r := newSampleReader(in, from.rest)
	d.passed = from.passed
	// From here on all cores are busy, and what was read makes room for records.
	stop()
	parts = max(min(parts, len(from.at)), 1)
	all := make([]*decoder, parts)
	wrong := make([]error, parts)
	var done sync.WaitGroup
	for i := range all {
		first, end := from.part(i, parts)
		all[i] = d.part(first, end)
		done.Go(func() { wrong[i] = all[i].decode(r, data[from.offset(first):], end-first) })
	}
	done.Wait()
	for _, err := range wrong {
		if err != nil { // the first in the file, as if one had read all
			return nil, err
		}
	}
	if err := d.join(all); err != nil {
		return nil, err
	}
	return d.finish(), nil
}

// part is which samples part i of n has.
func (s *parted) part(i, n int) (first, end int) {
	at := func(i int) int { return min(i*len(s.at)/n*s.every, s.samples) }
	return at(i), at(i + 1)
}

// offset is where a sample is with which a part begins.
func (s *parted) offset(sample int) int {
	if len(s.at) == 0 {
		return 0
	}
	return s.at[sample/s.every]
}

// part is a decoder for the samples from first to end. Where they are of a usual size it puts their records where these are to be.
func (d *decoder) part(first, end int) *decoder {
	p, q := *d.p, *d
	q.p = &p
	before := len(p.Records)
	from, to := min(before+first, cap(p.Records)), min(before+end, cap(p.Records))
	p.Records = p.Records[:to][from:from:to]
	p.Latencies, p.Touches, p.Moments = nil, nil, nil
	q.misses = nil
	q.samples, q.total = d.samples+first, 0
	q.single, q.stacks, q.key = make([][]*model.Location, len(d.single)), map[string][]*model.Location{}, nil
	q.losses = map[model.CountName]int64{}
	return &q
}

// decode takes n samples, which data begins with, as far as nothing else is between them.
func (d *decoder) decode(r *sampleReader, data []byte, n int) error {
	var s sample
	room, read := cap(d.p.Records), data
	for n > 0 {
		size := fieldSize(data)
		if data[0] == sampleField {
			if err := r.read(data[:size], &s); err != nil {
				return notRdx("no pprof data: sample %d: %v", d.samples, err)
			}
			if err := d.add(&s); err != nil {
				return err
			}
			n--
		}
		data = data[size:]
		if n := len(read) - len(data); n > passedAtOnce && d.passed != nil {
			read = read[d.passed(read[:n]):]
		}
	}
	d.grown = cap(d.p.Records) > room
	return nil
}

// join takes what the parts have, in their order.
func (d *decoder) join(parts []*decoder) error {
	p := d.p
	if slices.ContainsFunc(parts, func(q *decoder) bool { return q.grown }) {
		p.Records = slices.Clip(p.Records) // or those of one would come where another's are
	}
	for _, q := range parts {
		if q.total > math.MaxInt64-d.total {
			return notRdx("observations add up to more than %d", int64(math.MaxInt64))
		}
		d.total += q.total
		if n, all := len(p.Records), len(p.Records)+len(q.p.Records); all <= cap(p.Records) && all > n && &p.Records[:all][n] == &q.p.Records[0] {
			p.Records = p.Records[:all] // they are there
		} else {
			p.Records = append(p.Records, q.p.Records...)
		}
		p.Latencies = append(p.Latencies, q.p.Latencies...)
		p.Touches = append(p.Touches, q.p.Touches...)
		p.Moments = append(p.Moments, q.p.Moments...)
		for name, n := range q.losses {
			d.losses[name] += n
		}
	}
	return nil
}

// tables are what samples have in common: mappings, frames, stacks and data objects, each of which is there once.
// All goroutines that decode samples may ask.
type tables struct {
	mu       sync.Mutex
	mappings map[uint64]*model.Mapping // by ID
	// Frames and stacks of one, by their numbers where these are not large, and other ones.
	leaves  []*model.Location
	callers []*model.Location
	others  map[frameID]*model.Location
	single  [][]*model.Location
	stacks  map[string][]*model.Location // by their locations' numbers
	data    map[string]*model.Data
	room    tableRoom
}

// tableRoom is memory that is given out in small pieces: others wait while one is made.
type tableRoom struct {
	locations []model.Location
	lines     []model.Line
	stacks    []*model.Location
}

// take gives n, none of which was given before.
func take[T any](room *[]T, n int) []T {
	const some = 1024
	if len(*room) < n {
		*room = make([]T, max(n, some))
	}
	s := (*room)[:n:n]
	*room = (*room)[n:]
	return s
}

type frameID struct {
	loc  uint64 // its ID
	leaf bool
}

// newTables is for that many locations.
func newTables(locations int) *tables {
	n := locations + 1 // they are numbered from 1 on
	return &tables{mappings: map[uint64]*model.Mapping{}, leaves: make([]*model.Location, n), callers: make([]*model.Location, n), others: map[frameID]*model.Location{},
		single: make([][]*model.Location, n), stacks: map[string][]*model.Location{}, data: map[string]*model.Data{}}
}

// datum returns the one data object of a name.
func (t *tables) datum(name string) *model.Data {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.data[name]
	if d == nil {
		d = &model.Data{Name: name}
		t.data[name] = d
	}
	return d
}

// one is the stack of one location, whose number is not large.
func (t *tables) one(l *profile.Location) []*model.Location {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.single[l.ID]
	if *s == nil {
		*s = take(&t.room.stacks, 1)
		(*s)[0] = t.frame(l, true)
	}
	return *s
}

// stack is that of locations; key is made of their numbers.
func (t *tables) stack(key string, locs []*profile.Location) []*model.Location {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stacks[key]
	if s == nil {
		s = take(&t.room.stacks, len(locs))
		for i, l := range locs {
			s[i] = t.frame(l, i == 0)
		}
		t.stacks[key] = s
	}
	return s
}

func (t *tables) frame(l *profile.Location, leaf bool) *model.Location {
	if l.ID < uint64(len(t.leaves)) {
		f := &t.callers[l.ID]
		if leaf {
			f = &t.leaves[l.ID]
		}
		if *f == nil {
			*f = t.location(l, leaf)
		}
		return *f
	}
	k := frameID{l.ID, leaf}
	f := t.others[k]
	if f == nil {
		f = t.location(l, leaf)
		t.others[k] = f
	}
	return f
}

func (t *tables) location(l *profile.Location, leaf bool) *model.Location {
	m := &take(&t.room.locations, 1)[0]
	m.Address, m.Mapping = l.Address, t.mapping(l.Mapping)
	if !leaf && l.Address > 0 {
		m.Address++
	}
	if len(l.Line) > 0 {
		m.Lines = take(&t.room.lines, len(l.Line))
	}
	for i, ln := range l.Line {
		f := ln.Function
		m.Lines[i] = model.Line{Function: f.Name, SystemName: f.SystemName, File: f.Filename, Line: int(ln.Line), StartLine: int(f.StartLine)}
	}
	return m
}

func (t *tables) mapping(m *profile.Mapping) *model.Mapping {
	if m == nil {
		return nil
	}
	if t.mappings[m.ID] == nil {
		file := m.File
		if strings.HasPrefix(file, anonPrefix) {
			file = ""
		}
		t.mappings[m.ID] = &model.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: file, BuildID: m.BuildID}
	}
	return t.mappings[m.ID]
}
