package pprofout

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

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
	lossPrefix  = "lost: "
	kindLabel   = "kind"
	accessLabel = "access"
	clockLabel  = "clock"
	belowLabel  = "below_resolution"
	exactLabel  = "exact"
	dataLabel   = "data"
	pairLabel   = "pair"
	pairTime    = "pair_time"
	readAhead   = "read_ahead"
	distinct    = "distinct"
	reuseTime   = "reuse_time"
	cpuTime     = "cpu_time"
	distance    = "stack_distance"
	tidLabel    = "tid"
	epochLabel  = "epoch"
	stackLabel  = "stack"
	endLabel    = "end_tid"
	usedLabel   = "used_address"
	writeLabel  = "written_address"
	sourceLabel = "data_source"
	latency     = "latency"
	nanoseconds = "nanoseconds"
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
	}
	return "[" + k.String() + "]"
}

// twoStacks says whether records of a kind have a second stack.
func twoStacks(k model.Kind) bool {
	return k == model.Reuse || k == model.Invalidated || k == model.FalseSharing
}

// timed says whether records of a kind have a time.
func timed(k model.Kind) bool { return k != model.Cold && k != model.Lost }

// Write writes a profile as a gzip'd pprof file, see the package
// documentation for its form. Records that fall into one sample are summed.
//
// It is an error if a weight is negative or not finite, or if a value or a
// column's total does not fit an int64. Nothing is written then. Equal
// profiles give equal bytes.
func Write(w io.Writer, p *model.Profile, opts ...Option) error {
	out, err := Encode(p, opts...)
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	if err := out.Write(w); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// Encode is Write without the bytes: the pprof profile itself.
func Encode(p *model.Profile, opts ...Option) (*profile.Profile, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	e := &encoder{p: p, bins: model.LogBins(p.BinsPerOctave), frames: map[frameKey]*profile.Location{},
		byValue: map[string]*profile.Location{}, groups: map[string]*group{}, mappings: map[model.Mapping]*profile.Mapping{},
		types: sampleTypes(p.Caches, len(p.Latencies) > 0)}
	for _, o := range opts {
		o(e)
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
	for _, c := range p.Counts {
		if reason, ok := strings.CutPrefix(c.Name, lossPrefix); ok && c.N > 0 {
			e.addLoss(reason, c.N)
		}
	}
	return e.profile()
}

var levelRx = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

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
		if !levelRx.MatchString(c.Level) || seen[l] {
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

// sampleTypes names the columns of a profile with the given caches, and with
// latencies or without.
func sampleTypes(caches []model.Cache, latencies bool) []*profile.ValueType {
	types := []*profile.ValueType{
		{Type: "observations", Unit: "count"},
		{Type: "accesses", Unit: "count"},
		{Type: "reuses", Unit: "count"},
	}
	for _, c := range caches {
		types = append(types, &profile.ValueType{Type: strings.ToLower(c.Level) + "_misses", Unit: "count"})
	}
	types = append(types, &profile.ValueType{Type: distance, Unit: "bytes"})
	if latencies {
		types = append(types, latencyType)
	}
	return types
}

var latencyType = &profile.ValueType{Type: latency, Unit: "cycles"}

// An encoder collects one profile's samples. Locations get their IDs last, in
// an order that depends on their content alone.
type encoder struct {
	p          *model.Profile
	bins       *model.Bins
	useOmitted bool
	types      []*profile.ValueType

	frames   map[frameKey]*profile.Location
	byValue  map[string]*profile.Location
	mappings map[model.Mapping]*profile.Mapping
	groups   map[string]*group
	order    []*group
	key      []byte // of the group looked for, reused
}

// frameKey: one model.Location may be both a leaf and a caller, at addresses
// that differ by one in the file.
type frameKey struct {
	loc  *model.Location
	leaf bool
}

// A group is the sum of the records that make one sample.
type group struct {
	kind         model.Kind
	op           model.Op
	tid, epoch   int
	stackKind    model.StackKind
	end          int    // thread
	used, wrote  uint64 // addresses
	time, native uint64 // middles of bins
	distanceBin  int    // where distances are exact
	below, exact bool
	distinct     uint64 // middle of a bin
	after        uint64
	half         halfWatch
	source       string
	latency      bool   // the cycles of uses instead of records
	loss         string // reason, for a count instead of records
	data         string // object accessed, "" if not recorded
	stack        []*profile.Location

	observations int64
	weights      []float64 // of the other columns
	reused       float64   // reuses in units of observations
	distance     float64   // sum over reused of stack distances, in bytes
}

// halfWatch is what a record says of a watch over half a block; middles of
// bins.
type halfWatch struct {
	half     bool
	pair     model.Kind
	pairTime uint64
}

func (e *encoder) add(r *model.Record) error {
	if r.Observations < 0 {
		return fmt.Errorf("%d observations: want 0 or more", r.Observations)
	}
	for _, w := range append([]float64{r.Accesses, r.Reuses, r.Distance}, r.Misses...) {
		if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
			return fmt.Errorf("weight %v: want finite numbers >= 0", w)
		}
	}
	if n := len(r.Misses); n != 0 && n != len(e.p.Caches) {
		return fmt.Errorf("misses of %d cache levels, the profile has %d", n, len(e.p.Caches))
	}
	if _, ok := model.ParseKind(r.Kind.String()); !ok {
		return fmt.Errorf("unknown kind %d", r.Kind)
	}
	g := group{kind: r.Kind, op: r.Op, tid: r.TID, epoch: r.Epoch, stackKind: r.Stack, end: r.EndTID, used: r.Address, wrote: r.Written, source: text(r.DataSource)}
	if max(g.used, g.wrote) > math.MaxInt64 {
		return fmt.Errorf("address %#x: want less than 2^63", max(g.used, g.wrote))
	}
	if _, ok := model.ParseStackKind(r.Stack.String()); !ok {
		return fmt.Errorf("unknown stack %d", r.Stack)
	}
	if r.Data != nil {
		g.data = text(r.Data.Name)
	}
	if timed(r.Kind) {
		g.below, g.exact = r.BelowResolution, r.Exact
		if r.Distinct > 0 {
			g.distinct = e.bins.Mid(e.bins.Index(r.Distinct))
		}
		g.after = r.After
		if r.Half {
			g.half = halfWatch{true, r.Pair, e.bins.Mid(e.bins.Index(r.PairTime))}
		}
		g.time = e.bins.Mid(e.bins.Index(r.Time))
		if e.p.Clock.Unit == nanoseconds {
			g.native = e.bins.Mid(e.bins.Index(r.Native))
		}
	}
	if max(g.time, g.native) > math.MaxInt64 {
		return fmt.Errorf("time %d in a bin around %d: want less than 2^63", max(r.Time, r.Native), max(g.time, g.native))
	}

	if mean, ok := r.MeanDistance(); ok && e.p.ExactDistances {
		g.distanceBin = e.bins.Index(uint64(math.Round(mean / float64(max(e.p.Block, 1)))))
	}

	if twoStacks(r.Kind) {
		g.stack = e.appendStack(g.stack, r.Reuse)
	}
	if !twoStacks(r.Kind) || !e.useOmitted {
		g.stack = append(g.stack, e.pseudo(pseudoFrame(r.Kind)))
		g.stack = e.appendStack(g.stack, r.Use)
	}

	sum := e.group(&g)
	if r.Observations > math.MaxInt64-sum.observations {
		return fmt.Errorf("observations add up to more than %d", int64(math.MaxInt64))
	}
	sum.observations += r.Observations
	sum.weights[0] += r.Accesses
	sum.weights[1] += r.Reuses
	for i, m := range r.Misses {
		sum.weights[2+i] += m
	}
	sum.weights[2+len(e.p.Caches)] += r.Distance
	if mean, ok := r.MeanDistance(); ok {
		reused := float64(r.Observations) * (r.Reuses / r.Accesses)
		sum.reused += reused
		sum.distance += reused * mean
	}
	return nil
}

// addLatency puts cycles at the use that took them, in a sample of their own.
func (e *encoder) addLatency(l *model.Latency) error {
	if math.IsNaN(l.Cycles) || math.IsInf(l.Cycles, 0) || l.Cycles < 0 {
		return fmt.Errorf("%v cycles: want a finite number >= 0", l.Cycles)
	}
	if len(l.Use) == 0 {
		return errors.New("no stack")
	}
	g := group{latency: true, op: l.Op, tid: l.TID, source: text(l.DataSource)}
	g.stack = e.appendStack(nil, l.Use)
	sum := e.group(&g)
	sum.weights[len(sum.weights)-1] += l.Cycles
	return nil
}

func (e *encoder) addLoss(reason string, n int64) {
	g := group{kind: model.Lost, loss: reason}
	g.stack = []*profile.Location{e.pseudo("[" + lossPrefix + reason + "]")}
	sum := e.group(&g)
	sum.observations += n
}

// group returns the sum with g's key, which is g if it is the first.
func (e *encoder) group(g *group) *group {
	key := e.key[:0]
	for _, v := range [...]uint64{uint64(g.kind), uint64(g.op), uint64(g.tid), uint64(g.epoch), uint64(g.stackKind), uint64(g.end), g.used, g.wrote, g.time, g.native,
		uint64(g.distanceBin), g.distinct, g.after, uint64(g.half.pair), g.half.pairTime} {
		key = binary.LittleEndian.AppendUint64(key, v)
	}
	for _, b := range [...]bool{g.below, g.exact, g.half.half, g.latency} {
		if b {
			key = append(key, 1)
		} else {
			key = append(key, 0)
		}
	}
	key = append(key, g.data...)
	key = append(key, 0)
	// The reason of a loss is in its one frame.
	for _, l := range g.stack {
		key = binary.LittleEndian.AppendUint64(key, l.ID)
	}
	key = append(key, g.source...)
	e.key = key
	if sum := e.groups[string(key)]; sum != nil {
		return sum
	}
	g.weights = make([]float64, len(e.types)-1)
	sum := *g
	e.groups[string(key)] = &sum
	e.order = append(e.order, &sum)
	return &sum
}

func (e *encoder) appendStack(to []*profile.Location, stack []*model.Location) []*profile.Location {
	for i, l := range stack {
		to = append(to, e.location(l, i == 0))
	}
	return to
}

func (e *encoder) pseudo(name string) *profile.Location {
	return e.intern(&model.Location{Lines: []model.Line{{Function: name, SystemName: name}}}, false)
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
	key := fmt.Sprintf("%p %x", f.Mapping, f.Address)
	for _, ln := range f.Line {
		key += fmt.Sprintf("\x00%s\x00%s\x00%s\x00%d %d", ln.Function.Name, ln.Function.SystemName, ln.Function.Filename, ln.Function.StartLine, ln.Line)
	}
	if old := e.byValue[key]; old != nil {
		return old
	}
	f.ID = uint64(len(e.byValue) + 1) // until number gives the final one
	e.byValue[key] = f
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

// profile numbers what was collected and turns weights into integers.
func (e *encoder) profile() (*profile.Profile, error) {
	p := e.p
	out := &profile.Profile{
		SampleType:    e.types,
		DurationNanos: p.Duration.Nanoseconds(),
		PeriodType:    &profile.ValueType{Type: "accesses", Unit: "count"},
	}
	out.DefaultSampleType = "reuses"
	if c := p.Quotable(); c >= 0 {
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

	slices.SortFunc(e.order, func(a, b *group) int {
		return cmp.Or(compareStacks(a.stack, b.stack), cmp.Compare(a.kind, b.kind), cmp.Compare(a.op, b.op),
			cmp.Compare(a.tid, b.tid), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.stackKind, b.stackKind), cmp.Compare(a.end, b.end), cmp.Compare(a.used, b.used), cmp.Compare(a.wrote, b.wrote),
			cmp.Compare(a.time, b.time), cmp.Compare(a.native, b.native), cmp.Compare(a.distanceBin, b.distanceBin), compareBool(a.below, b.below), compareBool(a.exact, b.exact),
			cmp.Compare(a.data, b.data), cmp.Compare(a.distinct, b.distinct), cmp.Compare(a.after, b.after), compareHalves(a.half, b.half), cmp.Compare(a.source, b.source), compareBool(a.latency, b.latency))
	})
	carries := make([]carry, len(out.SampleType))
	for i, t := range out.SampleType {
		carries[i].column = t.Type
	}
	digest := sha256.New()
	for _, g := range e.order {
		s := e.sample(g)
		if g.observations > math.MaxInt64-carries[0].total {
			return nil, carries[0].overflow()
		}
		carries[0].total += g.observations
		s.Value = append(s.Value, g.observations)
		for i, w := range g.weights {
			n, err := carries[i+1].next(w)
			if err != nil {
				return nil, err
			}
			s.Value = append(s.Value, n)
		}
		for _, l := range s.Location {
			binary.Write(digest, binary.LittleEndian, l.ID)
		}
		binary.Write(digest, binary.LittleEndian, s.Value)
		out.Sample = append(out.Sample, s)
	}

	s := session{head: *p, observations: carries[0].total, useOmitted: e.useOmitted}
	s.head.Counts = slices.Clone(p.Counts)
	sortCounts(s.head.Counts)
	out.Comments = s.comments(digest.Sum(nil))
	if err := out.CheckValid(); err != nil {
		return nil, err
	}
	return out, nil
}

func (e *encoder) sample(g *group) *profile.Sample {
	s := &profile.Sample{Location: g.stack,
		Label:    map[string][]string{kindLabel: {g.kind.String()}},
		NumLabel: map[string][]int64{}, NumUnit: map[string][]string{}}
	if g.loss != "" {
		return s
	}
	if g.latency {
		s.Label[kindLabel] = []string{latency}
		s.Label[accessLabel] = []string{g.op.String()}
		if g.source != "" {
			s.Label[sourceLabel] = []string{g.source}
		}
		s.NumLabel[tidLabel], s.NumUnit[tidLabel] = []int64{int64(g.tid)}, []string{tidLabel}
		return s
	}
	if e.p.Clock.Name != "" {
		s.Label[clockLabel] = []string{text(e.p.Clock.Name)}
	}
	if g.op != model.OpUnknown {
		s.Label[accessLabel] = []string{g.op.String()}
	}
	if g.below {
		s.Label[belowLabel] = []string{"true"}
	}
	if g.data != "" {
		s.Label[dataLabel] = []string{g.data}
	}
	if g.exact {
		s.Label[exactLabel] = []string{"true"}
	}
	if g.half.half {
		s.Label[pairLabel] = []string{g.half.pair.String()}
	}
	if g.source != "" {
		s.Label[sourceLabel] = []string{g.source}
	}
	num := func(name, unit string, v int64) {
		s.NumLabel[name], s.NumUnit[name] = []int64{v}, []string{unit}
	}
	num(tidLabel, tidLabel, int64(g.tid))
	if g.epoch != 0 {
		num(epochLabel, epochLabel, int64(g.epoch))
	}
	if g.stackKind != model.StackOwn {
		s.Label[stackLabel] = []string{g.stackKind.String()}
	}
	if g.end != 0 {
		num(endLabel, tidLabel, int64(g.end))
		num(usedLabel, "address", int64(g.used))
		num(writeLabel, "address", int64(g.wrote))
	}
	if timed(g.kind) {
		num(reuseTime, "accesses", int64(g.time))
		if e.p.Clock.Unit == nanoseconds {
			num(cpuTime, nanoseconds, int64(g.native))
		}
	}
	if g.distinct > 0 {
		num(distinct, "blocks", int64(g.distinct))
	}
	if g.after > 0 || g.half.half {
		num(readAhead, "accesses", int64(g.after))
	}
	if g.half.half {
		num(pairTime, "accesses", int64(g.half.pairTime))
	}
	if d := math.Round(g.distance / g.reused); d < 1<<63 { // false for NaN
		num(distance, "bytes", int64(d))
	}
	return s
}

func compareHalves(a, b halfWatch) int {
	return cmp.Or(compareBool(a.half, b.half), cmp.Compare(a.pair, b.pair), cmp.Compare(a.pairTime, b.pairTime))
}

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

// compareStacks orders stacks from the root, so that what shares callers is
// next to each other.
func compareStacks(a, b []*profile.Location) int {
	for i := 1; i <= min(len(a), len(b)); i++ {
		if c := cmp.Compare(a[len(a)-i].ID, b[len(b)-i].ID); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
