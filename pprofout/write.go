package pprofout

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// An Option changes what Write writes.
type Option func(*encoder)

// WithoutUse leaves the use stacks of reuses and invalidations out, for
// viewers in which two stacks in one confuse more than they help. Records
// that have no other stack keep theirs.
func WithoutUse() Option { return func(e *encoder) { e.useOmitted = true } }

const (
	kindLabel          = "kind"
	accessLabel        = "access"
	clockLabel         = "clock"
	belowLabel         = "below_resolution"
	exactLabel         = "exact"
	dataLabel          = "data"
	pairLabel          = "pair"
	pairTime           = "pair_time"
	readAhead          = "read_ahead"
	hotSet             = "hot_set"
	distinct           = "distinct"
	reuseTime          = "reuse_time"
	cpuTime            = "cpu_time"
	distance           = "stack_distance"
	tidLabel           = "tid"
	epochLabel         = "epoch"
	holdLabel          = "hold"
	openLabel          = "open" // millionths
	groupLabel         = "group"
	stackLabel         = "stack"
	endLabel           = "end_tid"
	usedLabel          = "used_address"
	writeLabel         = "written_address"
	memberLabel        = "used_member"
	writtenMemberLabel = "written_member"
	sourceLabel        = "data_source"
	latency            = "latency"
	nanoseconds        = "nanoseconds"
)

// pseudoFrame is the frame that stands between reuse and use, or before the
// use where there is no second stack.
func pseudoFrame(k model.Kind) string {
	switch k {
	case model.Reuse:
		return "[reuse of]"
	case model.Invalidated:
		return "[invalidation of]"
	case model.FalseSharing:
		return "[false sharing with]"
	case model.TrueSharing:
		return "[true sharing with]"
	}
	return "[" + k.String() + "]"
}

// pseudoFrames are those of all kinds.
var pseudoFrames = func() (names [model.NumKinds]string) {
	for k := range names {
		names[k] = pseudoFrame(model.Kind(k))
	}
	return names
}()

// Write writes a profile as a gzip'd pprof file, see the package
// documentation for its form. Records that fall into one sample are summed.
//
// It is an error if a weight is negative or not finite, or if a value or a
// column's total does not fit an int64. Nothing is written then. Equal
// profiles give equal bytes.
func Write(w io.Writer, p *model.Profile, opts ...Option) error {
	data, err := encode(p, opts)
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// encode is Write into memory.
func encode(p *model.Profile, opts []Option) ([]byte, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	e := &encoder{p: p, bins: model.LogBins(p.BinsPerOctave), frames: map[frameKey]*profile.Location{},
		byValue: map[string]*profile.Location{}, pseudos: map[string]*profile.Location{}, groups: map[string]*group{}, mappings: map[model.Mapping]*profile.Mapping{},
		squares: slices.ContainsFunc(p.Records, func(r model.Record) bool { return r.Squares > 0 })}
	e.windows = hasWindows(p)
	e.types = sampleTypes(p.Caches, columns{e.squares, e.windows, len(p.Latencies) > 0})
	for _, o := range opts {
		o(e)
	}
	if e.parts != nil {
		return e.encodeParts()
	}
	for i := range p.Records {
		if err := e.add(&p.Records[i]); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
	}
	for i := range p.Latencies {
		if err := e.addLatency(&p.Latencies[i]); err != nil {
			return nil, fmt.Errorf("latency %d: %w", i, err)
		}
	}
	if err := e.addWindows(p); err != nil {
		return nil, err
	}
	for _, c := range p.Counts {
		if reason, ok := model.LostBecause.Why(c.Name); ok && c.N > 0 {
			e.addLoss(string(reason), c.N)
		}
	}
	e.groups = nil // the order has them
	out, err := e.profile()
	if err != nil {
		return nil, err
	}

	var rest, file bytes.Buffer
	if err := out.WriteUncompressed(&rest); err != nil {
		return nil, err
	}
	z := gzip.NewWriter(&file)
	z.Write(rest.Bytes())
	samples := newSampleWriter(rest.Bytes())
	for _, g := range e.order {
		z.Write(samples.encode(g, nil, e.labels(g)))
	}
	z.Write(samples.texts)
	if err := z.Close(); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

var levelRx = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`) })

func check(p *model.Profile) error {
	if p.BinsPerOctave < 1 {
		return fmt.Errorf("%d bins per octave: want 1 or more", p.BinsPerOctave)
	}
	for name, v := range map[string]float64{"period": p.Period, "clock rate": p.Clock.Rate, "clock resolution": p.Clock.Resolution} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("%s is %v: want a finite number >= 0", name, v)
		}
	}
	if p.Duration < 0 {
		return fmt.Errorf("duration is %v: want 0 or more", p.Duration)
	}
	seen := map[string]bool{}
	for _, c := range p.Caches {
		l := strings.ToLower(c.Level)
		if !levelRx().MatchString(c.Level) || seen[l] {
			return fmt.Errorf("cache level %q: want distinct words such as L1d", c.Level)
		}
		seen[l] = true
	}
	for _, c := range p.Counts {
		if c.N < 0 {
			return fmt.Errorf("count %q is %d: want 0 or more", c.Name, c.N)
		}
	}
	return nil
}

// columns says which sample types a profile has that not all have.
type columns struct{ squares, windows, latencies bool }

// sampleTypes names the columns of a profile with the given caches.
func sampleTypes(caches []model.Cache, has columns) []*profile.ValueType {
	types := []*profile.ValueType{
		{Type: "observations", Unit: "count"},
		{Type: "accesses", Unit: "count"},
		{Type: "reuses", Unit: "count"},
	}
	for _, c := range caches {
		types = append(types, &profile.ValueType{Type: strings.ToLower(c.Level) + "_misses", Unit: "count"})
	}
	types = append(types, &profile.ValueType{Type: distance, Unit: "bytes"})
	if has.squares {
		types = append(types, squaresType)
	}
	if has.windows {
		types = append(types, windowTypes[:]...)
	}
	if has.latencies {
		types = append(types, latencyType)
	}
	return types
}

var (
	latencyType = &profile.ValueType{Type: latency, Unit: "cycles"}
	squaresType = &profile.ValueType{Type: "squares", Unit: "square_of_2_15"}
)

// squareUnit is what one of the squares' column is, in accesses^2.
const squareUnit = 1 << 30

// An encoder collects one profile's samples. Locations get their IDs last, in
// an order that depends on their content alone.
type encoder struct {
	p          *model.Profile
	bins       *model.Bins
	useOmitted bool
	parts      *Parts // of what records come in; nil if they are p's
	quotable   int    // of parts, as Profile.Quotable
	squares    bool   // a column of them
	windows    bool   // likewise, of what windows show
	types      []*profile.ValueType

	frames   map[frameKey]*profile.Location
	byValue  map[string]*profile.Location
	pseudos  map[string]*profile.Location // some of byValue, by name
	mappings map[model.Mapping]*profile.Mapping
	groups   map[string]*group
	order    []*group
	key      []byte  // of the group looked for, reused
	label    []label // of the group written, reused
	before   shortStack
	beforeIs []*profile.Location // the stack of before
}

// profile numbers what was collected and turns weights into integers. It has
// everything but the samples, which are e.order.
func (e *encoder) profile() (*profile.Profile, error) {
	out, err := e.head()
	if err != nil {
		return nil, err
	}
	t := newTotals(out)
	e.sort()
	for _, g := range e.order {
		if err := t.add(g); err != nil {
			return nil, err
		}
		g.weights = nil
	}
	return out, e.comment(out, t)
}

// head numbers what was collected; the profile has neither samples nor comments.
func (e *encoder) head() (*profile.Profile, error) {
	p := e.p
	out := &profile.Profile{
		SampleType:    e.types,
		DurationNanos: p.Duration.Nanoseconds(),
		PeriodType:    &profile.ValueType{Type: "accesses", Unit: "count"},
	}
	out.DefaultSampleType = "reuses"
	c := e.quotable
	if e.parts == nil {
		c = p.Quotable()
	}
	if c >= 0 {
		out.DefaultSampleType = out.SampleType[3+c].Type
	}
	if p.Clock.Unit == nanoseconds {
		out.PeriodType = &profile.ValueType{Type: cpuTime, Unit: nanoseconds}
	}
	if !p.Start.IsZero() {
		out.TimeNanos = p.Start.UnixNano()
	}
	if p.Period >= 1<<63 {
		return nil, fmt.Errorf("period is %g: want less than 2^63", p.Period)
	}
	out.Period = int64(math.Round(p.Period))
	e.number(out)
	return out, nil
}

// sort puts the groups into the order in which they are written, once locations are numbered.
func (e *encoder) sort() { slices.SortFunc(e.order, compareGroups) }

func compareGroups(a, b *group) int {
	if c := compareStacks(a.stack, b.stack); c != 0 {
		return c
	}
	if a.kind != b.kind || a.op != b.op || a.tid != b.tid {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.op, b.op), cmp.Compare(a.tid, b.tid))
	}
	if c := cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.jackknife, b.jackknife), cmp.Compare(a.stackKind, b.stackKind), cmp.Compare(a.end, b.end), cmp.Compare(a.used, b.used), cmp.Compare(a.wrote, b.wrote),
		cmp.Compare(a.time, b.time), cmp.Compare(a.native, b.native), cmp.Compare(a.distanceBin, b.distanceBin)); c != 0 {
		return c
	}
	return cmp.Or(compareBool(a.below, b.below), compareBool(a.exact, b.exact),
		cmp.Compare(a.data, b.data), cmp.Compare(a.distinct, b.distinct), cmp.Compare(a.after, b.after), cmp.Compare(a.hot, b.hot), compareHalves(a.half, b.half), cmp.Compare(a.source, b.source), cmp.Compare(a.members[0], b.members[0]), cmp.Compare(a.members[1], b.members[1]), compareBool(a.latency, b.latency), a.window.compare(&b.window))
}

// totals are of the groups so far, in their order.
type totals struct {
	carries []carry
	digest  hash.Hash
	buf     []byte // of what is digested, reused
}

func newTotals(out *profile.Profile) *totals {
	t := &totals{carries: make([]carry, len(out.SampleType)), digest: sha256.New()}
	for i, typ := range out.SampleType {
		t.carries[i].column = typ.Type
	}
	return t
}

// add turns the weights of a group into integers.
func (t *totals) add(g *group) error {
	if g.observations > math.MaxInt64-t.carries[0].total {
		return t.carries[0].overflow()
	}
	t.carries[0].total += g.observations
	if g.values == nil {
		g.values = make([]int64, 0, len(t.carries))
	}
	g.values = append(g.values[:0], g.observations)
	for i, w := range g.weights {
		n, err := t.carries[i+1].next(w)
		if err != nil {
			return err
		}
		g.values = append(g.values, n)
	}
	t.buf = t.buf[:0]
	for _, l := range g.stack {
		t.buf = binary.LittleEndian.AppendUint64(t.buf, l.ID)
	}
	for _, v := range g.values {
		t.buf = binary.LittleEndian.AppendUint64(t.buf, uint64(v))
	}
	t.digest.Write(t.buf)
	return nil
}

// comment sets the comments, which tell of all that is no sample.
func (e *encoder) comment(out *profile.Profile, t *totals) error {
	s := session{head: *e.p, observations: t.carries[0].total, useOmitted: e.useOmitted}
	s.head.Counts = slices.Clone(e.p.Counts)
	sortCounts(s.head.Counts)
	out.Comments = s.comments(t.digest.Sum(nil))
	return out.CheckValid()
}
