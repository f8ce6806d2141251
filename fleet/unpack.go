package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// An Unpacker adds up what a server answers for the columns of packs, over any
// number of ranges, and makes a profile of it.
type Unpacker struct {
	// Mix takes machines of several kinds together.
	Mix bool

	records map[string]*packed
	order   []string
	tags    map[string]url.Values
}

// packed is one stack and tag of a merge.
type packed struct {
	stack  []frame // leaf first, without the tag
	tag    string
	values [3]float64 // observations, accesses, squares
}

// frame is a location as a server gives it back.
type frame struct {
	file, build string
	lines       string // as key
	location    *profile.Location
}

// Add takes the answer for one of the columns, which are RawColumns.
func (u *Unpacker) Add(column string, p *profile.Profile) error {
	i := slices.Index(RawColumns, column)
	if i < 0 {
		return fmt.Errorf("unpack: no column %q", column)
	}
	if u.records == nil {
		u.records, u.tags = map[string]*packed{}, map[string]url.Values{}
	}
	frames := map[*profile.Location]frame{}
	for n, s := range p.Sample {
		if len(s.Value) != 1 {
			return fmt.Errorf("unpack: sample %d has %d values, want 1", n, len(s.Value))
		}
		if s.Value[0] < 0 {
			return fmt.Errorf("unpack: sample %d of %s is negative (sums have overflowed: take a shorter range)", n, column)
		}
		if len(s.Location) == 0 {
			continue
		}
		root := s.Location[len(s.Location)-1]
		if len(root.Line) != 1 || root.Line[0].Function == nil {
			return fmt.Errorf("unpack: sample %d has no tag", n)
		}
		tag := root.Line[0].Function.Name
		if u.tags[tag] == nil {
			v, err := parseTag(tag)
			if err != nil {
				return fmt.Errorf("unpack: %w", err)
			}
			u.tags[tag] = v
		}
		var key strings.Builder
		key.WriteString(tag)
		var stack []frame
		for _, l := range s.Location[:len(s.Location)-1] {
			f, ok := frames[l]
			if !ok {
				f = frameOf(l)
				frames[l] = f
			}
			stack = append(stack, f)
			fmt.Fprintf(&key, "\x01%s\x02%s\x02%s", f.file, f.build, f.lines)
		}
		k := key.String()
		r := u.records[k]
		if r == nil {
			r = &packed{stack: stack, tag: tag}
			u.records[k] = r
			u.order = append(u.order, k)
		}
		r.values[i] += float64(s.Value[0])
	}
	return nil
}

func frameOf(l *profile.Location) frame {
	f := frame{location: l}
	if l.Mapping != nil {
		f.file, f.build = l.Mapping.File, l.Mapping.BuildID
	}
	var b strings.Builder
	for _, ln := range l.Line {
		if ln.Function != nil {
			fmt.Fprintf(&b, "%s\x03%s\x03%d\x03%d\x04", ln.Function.Name, ln.Function.Filename, ln.Function.StartLine, ln.Line)
		}
	}
	f.lines = b.String()
	return f
}

// Empty says that nothing has been added.
func (u *Unpacker) Empty() bool { return len(u.records) == 0 }

// Profile is the sum of all windows. It errs if machines of several kinds are in it, and
// Mix does not allow that, or if they can't be mixed.
func (u *Unpacker) Profile(start time.Time) (*model.Profile, error) {
	p := &model.Profile{Start: start}
	sums := map[string]float64{}
	var heads []weighedHead
	made := maker{locations: map[frame]*model.Location{}, mappings: map[[2]string]*model.Mapping{}}
	slices.Sort(u.order) // the same answers, in whatever order, give the same profile
	observations := 0.0
	for _, k := range u.order {
		in := u.records[k]
		v := u.tags[in.tag]
		n := in.values[0]
		switch {
		case v.Get("head") != "":
			h, err := parseHead(v)
			if err != nil {
				return nil, fmt.Errorf("unpack: %w", err)
			}
			heads = append(heads, weighedHead{h, n})
		case v.Get("sum") != "":
			sums[v.Get("sum")] += n
		case v.Get("count") != "":
			p.Counts = append(p.Counts, model.Count{Name: model.CountName(v.Get("count")), N: whole(n)})
		case v.Get("kind") != "":
			r, err := record(v)
			if err != nil {
				return nil, fmt.Errorf("unpack: %w", err)
			}
			r.Observations, r.Accesses, r.Squares = whole(n), in.values[1], in.values[2]*squareUnit
			observations += n
			made.fill(&r, in.stack)
			p.Records = append(p.Records, r)
		default: // of a later version, which adds what can be passed over
		}
	}
	slices.SortFunc(p.Counts, func(a, b model.Count) int { return cmp.Compare(a.Name, b.Name) })
	if err := u.addHeads(p, heads); err != nil {
		return nil, err
	}
	p.Duration = time.Duration(min(sums[sumDuration], math.MaxInt64/2))
	if observations > 0 {
		p.Clock.Rate = sums[sumRate] / observations / 1e6
		p.Clock.RateLow = sums[sumRateLow] / observations / 1e6
		p.Clock.RateHigh = sums[sumRateHigh] / observations / 1e6
		p.Clock.Touches = sums[sumTouches] / observations / 1e6
		p.Clock.Resolution = sums[sumResolution] / observations / 1e6
	}
	rate := p.Clock.TouchRate()
	for i := range p.Records {
		if r := &p.Records[i]; rate > 0 {
			r.Native = uint64(min(float64(r.Time)/rate, math.MaxInt64))
		}
	}
	p.SetDesignEffect()
	if err := p.Derive(); err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return p, nil
}

func whole(f float64) int64 { return int64(min(f, 1<<62)) }

type weighedHead struct {
	head
	windows float64
}

func (u *Unpacker) addHeads(p *model.Profile, heads []weighedHead) error {
	if len(heads) == 0 {
		return fmt.Errorf("unpack: what was read does not say of what clock and blocks it is")
	}
	slices.SortStableFunc(heads, func(a, b weighedHead) int { return cmp.Compare(b.windows, a.windows) })
	first := heads[0]
	configs := map[string]weighedHead{}
	var names []string
	windows := 0.0
	for _, h := range heads {
		c := h.config()
		if _, known := configs[c]; !known {
			names = append(names, c)
		}
		configs[c] = weighedHead{h.head, configs[c].windows + h.windows}
		windows += h.windows
		if h.block != first.block || h.bins != first.bins {
			return fmt.Errorf("unpack: blocks of %d and %d bytes: these can't be mixed (select one kind by --label %s=...)", first.block, h.block, ConfigLabel)
		}
		p.Source = joined(p.Source, h.source)
		p.Clock.RateSource = joined(p.Clock.RateSource, h.clock.RateSource)
	}
	if len(names) > 1 && !u.Mix {
		var b strings.Builder
		for _, n := range names {
			fmt.Fprintf(&b, "\n  %s=%s: %.0f windows, %s", ConfigLabel, n, configs[n].windows, configs[n].describe())
		}
		return fmt.Errorf("machines of %d kinds are in this range; take one by --label, or all by --mix:%s", len(names), b.String())
	}
	if p.Clock.RateIs(model.AssumedRate) {
		p.Clock.RateSource = model.AssumedRate // of some at least: the merge knows no more
	}
	p.Block, p.BinsPerOctave, p.Caches = first.block, first.bins, first.caches
	p.Clock.Name, p.Clock.Unit = first.clock.Name, first.clock.Unit
	p.Comments = append(p.Comments, fmt.Sprintf(model.MergedFrom+" %.0f windows of a fleet", windows))
	if len(names) > 1 {
		p.Comments = append(p.Comments, fmt.Sprintf(model.MergedFrom+" machines of %d kinds: predicted misses are those of the caches of the most windows, %s", len(names), first.describe()))
	}
	return nil
}

func joined(list, s string) string {
	if s == "" || slices.Contains(strings.Split(list, model.MergedSources), s) {
		return list
	}
	if list == "" {
		return s
	}
	return list + model.MergedSources + s
}

// maker makes one location of each frame.
type maker struct {
	locations map[frame]*model.Location
	mappings  map[[2]string]*model.Mapping
}

func (m *maker) fill(r *model.Record, stack []frame) {
	two := r.Kind == model.Reuse || r.Kind == model.Invalidated || r.Kind == model.FalseSharing || r.Kind == model.TrueSharing
	at := 0 // of the frame between the two
	if two {
		at = slices.IndexFunc(stack, func(f frame) bool { return f.file == "" && slices.Contains(between, f.name()) })
	}
	if at < 0 { // cut by the server
		r.Reuse = m.stack(stack)
		return
	}
	r.Reuse = m.stack(stack[:at])
	if len(stack) > at {
		r.Use = m.stack(stack[at+1:])
	}
}

var between = []string{"[reuse of]", "[invalidation of]", "[false sharing with]", "[true sharing with]"}

func (f frame) name() string {
	if len(f.location.Line) == 0 || f.location.Line[0].Function == nil {
		return ""
	}
	return f.location.Line[0].Function.Name
}

func (m *maker) stack(frames []frame) []*model.Location {
	var out []*model.Location
	for _, f := range frames {
		key := f
		key.location = nil
		l := m.locations[key]
		if l == nil {
			l = &model.Location{Mapping: m.mapping(f.file, f.build)}
			for _, ln := range f.location.Line {
				if fn := ln.Function; fn != nil {
					l.Lines = append(l.Lines, model.Line{Function: fn.Name, SystemName: fn.SystemName, File: fn.Filename, Line: int(ln.Line), StartLine: int(fn.StartLine)})
				}
			}
			m.locations[key] = l
		}
		out = append(out, l)
	}
	return out
}

func (m *maker) mapping(file, build string) *model.Mapping {
	if file == "" && build == "" {
		return nil
	}
	k := [2]string{file, build}
	if m.mappings[k] == nil {
		m.mappings[k] = &model.Mapping{File: file, BuildID: build}
	}
	return m.mappings[k]
}

// Unpack reads packs that Window.Pack made, as a server would merge them.
func Unpack(packs [][]byte, mix bool) (*model.Profile, error) {
	u := Unpacker{Mix: mix}
	var start time.Time
	for _, data := range packs {
		p, err := profile.Parse(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		if len(p.SampleType) != len(RawColumns) {
			return nil, fmt.Errorf("unpack: %d columns, want %d", len(p.SampleType), len(RawColumns))
		}
		if at := time.Unix(0, p.TimeNanos); start.IsZero() || at.Before(start) {
			start = at
		}
		for i, c := range RawColumns {
			one := &profile.Profile{}
			for _, s := range p.Sample {
				if s.Value[i] != 0 {
					one.Sample = append(one.Sample, &profile.Sample{Location: s.Location, Value: s.Value[i : i+1]})
				}
			}
			if err := u.Add(c, one); err != nil {
				return nil, err
			}
		}
	}
	return u.Profile(start)
}

// RawColumns are the columns of a pack.
var RawColumns = []string{observationsColumn, accessesColumn, squaresColumn}

// ConfigLabel names the label that has Config.
const ConfigLabel = "rdx_config"

func urlText(s string) string { return url.QueryEscape(clean(s)) }
