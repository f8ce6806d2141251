package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// Names of the two series, and of the columns of the second.
const (
	PeopleName = "rdx"
	RawName    = "rdx_raw"

	observationsColumn = "observations"
	accessesColumn     = "accesses"
	squaresColumn      = "squares"
	count              = "count"
	squaresUnit        = "square_of_2_15"

	// squareUnit is what one of the squares' column is, in accesses^2.
	squareUnit = 1 << 30
)

// What Pyroscope's defaults take of one profile.
const (
	mostSamples = 15_000
	mostFrames  = 256 // of one of a sample's two stacks
	longestName = 1000
)

// A Window is one session's profile as it is pushed.
type Window struct {
	Profile *model.Profile
	// Weight is how many like it the window stands for: 1 over the probability with which
	// it was drawn, times its period over the part of it that was sampled.
	Weight float64
	// Drawn says that the process was drawn by lot. What is independent is then the
	// window, else, where it was certain to be sampled, the hold.
	Drawn bool
	// Time is the window's, which a server knows it by: the same window sent again must
	// have the same.
	Time time.Time
	// Name tells windows of one time apart, such as by host and process.
	Name string
}

// Pack is the window as raw series, a gzip'd pprof profile.
func (w Window) Pack() ([]byte, error) {
	return w.encode(func(frames int) (*profile.Profile, error) { return w.pack(frames) })
}

// People is the window for flame graphs, a gzip'd pprof profile. Derive must have run.
func (w Window) People() ([]byte, error) {
	return w.encode(func(frames int) (*profile.Profile, error) { return w.people(frames) })
}

// encode cuts stacks until there are not too many samples.
func (w Window) encode(make func(frames int) (*profile.Profile, error)) ([]byte, error) {
	if !(w.Weight > 0) || math.IsInf(w.Weight, 0) {
		return nil, fmt.Errorf("pack window: weight %v: want a finite number above 0", w.Weight)
	}
	for frames := mostFrames; ; frames /= 4 {
		p, err := make(frames)
		if err != nil {
			return nil, fmt.Errorf("pack window: %w", err)
		}
		if len(p.Sample) > mostSamples && frames > 1 {
			continue
		}
		if err := p.CheckValid(); err != nil {
			return nil, fmt.Errorf("pack window: %w", err)
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			return nil, fmt.Errorf("pack window: %w", err)
		}
		return b.Bytes(), nil
	}
}

func (w Window) pack(frames int) (*profile.Profile, error) {
	p := w.Profile
	b := newBuilder(w.Time, frames, observationsColumn, accessesColumn, squaresColumn)
	b.types[2].Unit = squaresUnit
	n := int64(0)
	for i := range p.Records {
		r := &p.Records[i]
		accesses := r.Accesses * w.Weight
		if !(accesses >= 0) || math.IsInf(accesses, 0) || r.Observations < 0 {
			return nil, fmt.Errorf("record %d stands for %v accesses and %d observations", i, r.Accesses, r.Observations)
		}
		n += r.Observations
		stack := append(b.stack(r), b.pseudo(tagOf(r, w.group(r)).String()))
		b.add(stack, float64(r.Observations), accesses, p.Squares(r)*w.Weight*w.Weight/squareUnit)
	}
	alone := func(frame string, v float64) {
		if v > 0 {
			b.add([]*profile.Location{b.pseudo(frame)}, v, 0, 0)
		}
	}
	alone(headOf(p).String(), 1)
	for _, c := range p.Counts {
		if kept(c.Name) {
			alone(tagPrefix+"count="+urlText(string(c.Name)), float64(c.N))
		}
	}
	millionths := float64(n) * 1e6
	alone(tagPrefix+"sum="+sumDuration, float64(p.Duration))
	alone(tagPrefix+"sum="+sumRate, p.Clock.Rate*millionths)
	alone(tagPrefix+"sum="+sumRateLow, p.Clock.RateLow*millionths)
	alone(tagPrefix+"sum="+sumRateHigh, p.Clock.RateHigh*millionths)
	alone(tagPrefix+"sum="+sumTouches, p.Clock.Touches*millionths)
	alone(tagPrefix+"sum="+sumResolution, p.Clock.Resolution*millionths)
	if b.cut > 0 {
		alone(tagPrefix+"count="+urlText(string(model.StacksShortened)), float64(b.cut))
	}
	return b.profile()
}

// group is that of the jackknife which a record's cluster belongs to, by chance: the server adds
// up groups, so that their differences are known of every merge.
func (w Window) group(r *model.Record) int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", w.Time.UnixNano(), w.Name)
	if !w.Drawn {
		fmt.Fprintf(h, " %d", r.Hold)
		if r.Hold == 0 { // a cluster of its own
			fmt.Fprintf(h, " %d %d %v %d", r.TID, r.Epoch, r.Accesses, r.Time)
		}
	}
	return 1 + int(h.Sum64()>>32%PackGroups)
}

// PackGroups is into how many groups of the jackknife clusters are put. More would make bands
// a little narrower, and merges larger.
const PackGroups = 24

// keptSharing are the counts that say how well it is known what threads take from each other.
var keptSharing = []model.CountName{model.FalseSharingUnknown, model.JoinedHolds, model.TurnHolds, model.SwiftHolds, model.LateHolds, model.ApartAccesses}

// kept says which counts matter to a reader of a merge.
func kept(name model.CountName) bool {
	return model.LostBecause.Has(name) || name.IsCPUTime() || model.NotWatched.Has(name) || slices.Contains(keptSharing, name)
}

func (w Window) people(frames int) (*profile.Profile, error) {
	p := w.Profile
	columns := []string{"reuses", accessesColumn}
	for _, c := range p.Caches {
		columns = append(columns, strings.ToLower(c.Level)+"_misses")
	}
	b := newBuilder(w.Time, frames, columns...)
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Lost || r.Kind.OfLine() {
			continue
		}
		values := []float64{r.Reuses * w.Weight, r.Accesses * w.Weight}
		for k := range p.Caches {
			m := 0.0
			if k < len(r.Misses) {
				m = r.Misses[k] * w.Weight
			}
			values = append(values, m)
		}
		b.add(b.stack(r), values...)
	}
	for _, c := range p.Counts {
		if model.LostBecause.Has(c.Name) && c.N > 0 {
			values := make([]float64, len(columns))
			values[1] = float64(c.N)
			b.add([]*profile.Location{b.pseudo("[" + string(c.Name) + "]")}, values...)
		}
	}
	return b.profile()
}

// builder collects the samples of a profile; equal stacks become one.
type builder struct {
	out       *profile.Profile
	types     []*profile.ValueType
	frames    int
	cut       int
	locations map[string]*profile.Location
	byRecord  map[*model.Location]*profile.Location
	functions map[profile.Function]*profile.Function
	mappings  map[profile.Mapping]*profile.Mapping
	samples   map[string]*sum
	order     []*sum
}

type sum struct {
	stack  []*profile.Location
	values []float64
}

func newBuilder(at time.Time, frames int, columns ...string) *builder {
	b := &builder{frames: frames, locations: map[string]*profile.Location{}, byRecord: map[*model.Location]*profile.Location{},
		functions: map[profile.Function]*profile.Function{}, mappings: map[profile.Mapping]*profile.Mapping{}, samples: map[string]*sum{}}
	for _, c := range columns {
		b.types = append(b.types, &profile.ValueType{Type: c, Unit: count})
	}
	// The type of the period is part of a series' name: it is the same on all machines.
	b.out = &profile.Profile{SampleType: b.types, TimeNanos: at.UnixNano(), Period: 1,
		PeriodType: &profile.ValueType{Type: "cpu_time", Unit: "nanoseconds"}}
	return b
}

// stack is a record's frames, as pprofout writes them.
func (b *builder) stack(r *model.Record) []*profile.Location {
	var out []*profile.Location
	switch r.Kind {
	case model.Reuse:
		out = append(b.part(out, r.Reuse), b.pseudo("[reuse of]"))
	case model.Invalidated:
		out = append(b.part(out, r.Reuse), b.pseudo("[invalidation of]"))
	case model.FalseSharing:
		out = append(b.part(out, r.Reuse), b.pseudo("[false sharing with]"))
	case model.TrueSharing:
		out = append(b.part(out, r.Reuse), b.pseudo("[true sharing with]"))
	default:
		out = append(out, b.pseudo("["+r.Kind.String()+"]"))
	}
	return b.part(out, r.Use)
}

func (b *builder) part(to []*profile.Location, stack []*model.Location) []*profile.Location {
	if len(stack) > b.frames {
		stack = stack[:b.frames]
		b.cut++
	}
	for _, l := range stack {
		to = append(to, b.location(l))
	}
	return to
}

func (b *builder) pseudo(name string) *profile.Location {
	return b.intern(nil, []model.Line{{Function: name}})
}

// location names a frame without a name by file and offset: the server leaves
// nameless ones out of its answers, and addresses it forgets.
func (b *builder) location(l *model.Location) *profile.Location {
	if known := b.byRecord[l]; known != nil {
		return known
	}
	lines := l.Lines
	if len(lines) == 0 {
		name := "[unknown]"
		if m := l.Mapping; m != nil && m.File != "" {
			name = fmt.Sprintf("%s+%#x", m.File[strings.LastIndexByte(m.File, '/')+1:], l.Address-m.Start+m.Offset)
		}
		lines = []model.Line{{Function: name}}
	}
	out := b.intern(l.Mapping, lines)
	b.byRecord[l] = out
	return out
}

func (b *builder) intern(m *model.Mapping, lines []model.Line) *profile.Location {
	l := &profile.Location{Mapping: b.mapping(m)}
	var key strings.Builder
	fmt.Fprintf(&key, "%p", l.Mapping)
	for _, ln := range lines {
		f := profile.Function{Name: cmp.Or(clean(ln.Function), "[unknown]"), Filename: clean(ln.File), StartLine: int64(ln.StartLine)}
		f.SystemName = f.Name
		known := b.functions[f]
		if known == nil {
			f.ID = uint64(len(b.functions) + 1)
			known = &f
			key := f
			key.ID = 0
			b.functions[key] = known
			b.out.Function = append(b.out.Function, known)
		}
		l.Line = append(l.Line, profile.Line{Function: known, Line: int64(ln.Line)})
		fmt.Fprintf(&key, " %d:%d", known.ID, ln.Line)
	}
	if known := b.locations[key.String()]; known != nil {
		return known
	}
	l.ID = uint64(len(b.locations) + 1)
	b.locations[key.String()] = l
	b.out.Location = append(b.out.Location, l)
	return l
}

// mapping keeps the file and its build ID: addresses differ from process to process.
func (b *builder) mapping(m *model.Mapping) *profile.Mapping {
	if m == nil {
		return nil
	}
	f := profile.Mapping{File: clean(m.File), BuildID: clean(m.BuildID), HasFunctions: true}
	known := b.mappings[f]
	if known == nil {
		known = &profile.Mapping{}
		*known = f
		known.ID = uint64(len(b.mappings) + 1)
		b.mappings[f] = known
		b.out.Mapping = append(b.out.Mapping, known)
	}
	return known
}

func (b *builder) add(stack []*profile.Location, values ...float64) {
	var key strings.Builder
	for _, l := range stack {
		fmt.Fprintf(&key, "%x ", l.ID)
	}
	s := b.samples[key.String()]
	if s == nil {
		s = &sum{stack: stack, values: make([]float64, len(values))}
		b.samples[key.String()] = s
		b.order = append(b.order, s)
	}
	for i, v := range values {
		s.values[i] += v
	}
}

// profile rounds each column so that what one value loses the next one gets.
func (b *builder) profile() (*profile.Profile, error) {
	slices.SortStableFunc(b.order, func(x, y *sum) int {
		for i := 1; i <= min(len(x.stack), len(y.stack)); i++ {
			if c := cmp.Compare(x.stack[len(x.stack)-i].ID, y.stack[len(y.stack)-i].ID); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x.stack), len(y.stack))
	})
	carry := make([]float64, len(b.types))
	for _, s := range b.order {
		values := make([]int64, len(s.values))
		for i, v := range s.values {
			if v < 1<<52 {
				v += carry[i]
				values[i] = max(int64(math.Floor(v+.5)), 0)
				carry[i] = v - float64(values[i])
			} else if v < 1<<62 {
				values[i] = int64(v)
			} else {
				return nil, fmt.Errorf("%s of %g is more than a column can hold", b.types[i].Type, v)
			}
		}
		b.out.Sample = append(b.out.Sample, &profile.Sample{Location: s.stack, Value: values})
	}
	return b.out, nil
}

// clean makes a text of a process fit for a server and for a terminal.
func clean(s string) string {
	if len(s) > longestName {
		s = s[:longestName]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
