package pprofout

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// A group is the sum of the records that make one sample.
type group struct {
	kind         model.Kind
	op           model.Op
	tid, epoch   int
	hold         uint64
	open         uint64 // in millionths
	jackknife    int    // group
	stackKind    model.StackKind
	end          int       // thread
	used, wrote  uint64    // addresses
	members      [2]string // at these
	time, native uint64    // middles of bins
	distanceBin  int       // where distances are exact
	below, exact bool
	distinct     uint64 // one more than the middle of a bin
	after, hot   uint64
	half         halfWatch
	source       string
	latency      bool   // the cycles of uses instead of records
	window       window // what windows show instead of records
	loss         string // reason, for a count instead of records
	data         string // object accessed, "" if not recorded
	stack        []*profile.Location

	observations int64
	weights      []float64 // of the other columns
	values       []int64   // of all columns, rounded, once there are no weights any more
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
	for _, weights := range [...][]float64{{r.Accesses, r.Reuses, r.Distance, r.Squares}, r.Misses} {
		for _, w := range weights {
			if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
				return fmt.Errorf("weight %v: want finite numbers >= 0", w)
			}
		}
	}
	if n := len(r.Misses); n != 0 && n != len(e.p.Caches) {
		return fmt.Errorf("misses of %d cache levels, the profile has %d", n, len(e.p.Caches))
	}
	if _, ok := model.ParseKind(r.Kind.String()); !ok {
		return fmt.Errorf("unknown kind %d", r.Kind)
	}
	w := r.Words()
	g := group{kind: r.Kind, op: r.Op, tid: r.TID, epoch: r.Epoch, hold: r.Hold, open: uint64(math.Round(1e6 * min(max(r.Open, 0), 1))), jackknife: r.Group, stackKind: r.Stack, end: w.EndTID, used: w.Address, wrote: w.Written, members: [2]string{text(w.Member), text(w.WrittenMember)}, source: text(r.DataSource)}
	if max(g.used, g.wrote) > math.MaxInt64 {
		return fmt.Errorf("address %#x: want less than 2^63", max(g.used, g.wrote))
	}
	if _, ok := model.ParseStackKind(r.Stack.String()); !ok {
		return fmt.Errorf("unknown stack %d", r.Stack)
	}
	if r.Data != nil {
		g.data = text(r.Data.Name)
	}
	if r.Kind.Parts().Timed {
		g.below, g.exact = r.BelowResolution, r.Exact
		if r.Distinct > 0 {
			// The distance, one less, stays in its bin, and so in its octave.
			g.distinct = 1 + e.bins.Mid(e.bins.Index(r.Distinct-1))
		}
		g.after, g.hot = r.After, r.Hot
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

	g.stack = e.stacks(r)
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
	if e.squares {
		sum.weights[3+len(e.p.Caches)] += e.p.Squares(r) / squareUnit
	}
	if mean, ok := r.MeanDistance(); ok {
		reused := float64(r.Observations) * (r.Reuses / r.Accesses)
		sum.reused += reused
		sum.distance += reused * mean
	}
	return nil
}

// stacks are those of a record, as one.
func (e *encoder) stacks(r *model.Record) (stack []*profile.Location) {
	short := len(r.Use) == 1 && len(r.Reuse) < 2
	var key shortStack
	if short {
		key = shortStack{kind: r.Kind, use: r.Use[0]}
		if len(r.Reuse) > 0 {
			key.reuse = r.Reuse[0]
		}
		if key == e.before {
			return e.beforeIs
		}
	}
	if r.Kind.Parts().Ended {
		stack = e.appendStack(stack, r.Reuse)
	}
	if !r.Kind.Parts().Ended || !e.useOmitted {
		stack = append(stack, e.pseudo(pseudoFrame(r.Kind)))
		stack = e.appendStack(stack, r.Use)
	}
	if short {
		e.before, e.beforeIs = key, stack
	}
	return stack
}

// shortStack is what makes a stack of two frames at most.
type shortStack struct {
	kind       model.Kind
	use, reuse *model.Location
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
	g.stack = []*profile.Location{e.pseudo("[" + string(model.LostBecause) + reason + "]")}
	sum := e.group(&g)
	sum.observations += n
}

// group returns the sum with g's key, which is g if it is the first.
func (e *encoder) group(g *group) *group {
	key := e.key[:0]
	for _, v := range [...]uint64{uint64(g.kind), uint64(g.op), uint64(g.tid), uint64(g.epoch), g.hold, g.open, uint64(g.jackknife), uint64(g.stackKind), uint64(g.end), g.used, g.wrote, g.time, g.native,
		uint64(g.distanceBin), g.distinct, g.after, g.hot, uint64(g.half.pair), g.half.pairTime} {
		key = binary.LittleEndian.AppendUint64(key, v)
	}
	for _, b := range [...]bool{g.below, g.exact, g.half.half, g.latency} {
		if b {
			key = append(key, 1)
		} else {
			key = append(key, 0)
		}
	}
	for _, name := range [...]string{g.data, g.members[0], g.members[1]} {
		key = append(key, name...)
		key = append(key, 0)
	}
	// The reason of a loss is in its one frame.
	for _, l := range g.stack {
		key = binary.LittleEndian.AppendUint64(key, l.ID)
	}
	key = append(key, g.source...)
	key = g.window.appendKey(key)
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

// A label says something of a sample: a text, or a number with its unit.
type label struct {
	key, text, unit string
	number          int64
}

// labelList are labels of a sample; those that say nothing are left out.
type labelList []label

func (l *labelList) text(key, s string) {
	if s != "" {
		*l = append(*l, label{key: key, text: s})
	}
}

func (l *labelList) flag(key string, is bool) {
	if is {
		l.text(key, "true")
	}
}

// number is added even if it is 0, and some is not.
func (l *labelList) number(key, unit string, v int64) {
	*l = append(*l, label{key: key, unit: unit, number: v})
}

func (l *labelList) some(key, unit string, v int64) {
	if v != 0 {
		l.number(key, unit, v)
	}
}

// labels are those of a group, until the next call.
func (e *encoder) labels(g *group) []label {
	out := labelList(e.label[:0])
	op := ""
	if g.op != model.OpUnknown || g.latency {
		op = g.op.String()
	}
	switch {
	case g.loss != "":
		out.text(kindLabel, g.kind.String())
	case g.window.kind != "":
		return g.window.labels(g)
	case g.latency:
		out.text(kindLabel, latency)
		out.text(accessLabel, op)
		out.text(sourceLabel, g.source)
		out.number(tidLabel, tidLabel, int64(g.tid))
	default:
		e.recordLabels(&out, g, op)
	}
	e.label = out
	return out
}

// recordLabels are those of records.
func (e *encoder) recordLabels(out *labelList, g *group, op string) {
	out.text(kindLabel, g.kind.String())
	out.text(clockLabel, text(e.p.Clock.Name))
	out.text(accessLabel, op)
	out.flag(belowLabel, g.below)
	out.text(dataLabel, g.data)
	out.flag(exactLabel, g.exact)
	if g.half.half {
		out.text(pairLabel, g.half.pair.String())
	}
	out.text(sourceLabel, g.source)
	out.number(tidLabel, tidLabel, int64(g.tid))
	out.some(epochLabel, epochLabel, int64(g.epoch))
	out.some(holdLabel, holdLabel, int64(g.hold))
	out.some(openLabel, openLabel, int64(g.open))
	out.some(groupLabel, groupLabel, int64(g.jackknife))
	if g.stackKind != model.StackOwn {
		out.text(stackLabel, g.stackKind.String())
	}
	if g.end != 0 {
		out.number(endLabel, tidLabel, int64(g.end))
		out.number(usedLabel, "address", int64(g.used))
		out.number(writeLabel, "address", int64(g.wrote))
	}
	out.text(memberLabel, g.members[0])
	out.text(writtenMemberLabel, g.members[1])
	e.lengthLabels(out, g)
}

// lengthLabels are how long the reuse was, in time and in blocks, and how far was read ahead for it.
func (e *encoder) lengthLabels(out *labelList, g *group) {
	if g.kind.Parts().Timed {
		out.number(reuseTime, "accesses", int64(g.time))
		if e.p.Clock.Unit == nanoseconds {
			out.number(cpuTime, nanoseconds, int64(g.native))
		}
	}
	if g.distinct > 0 {
		out.number(distinct, "blocks", int64(g.distinct))
	}
	if g.after > 0 || g.half.half {
		out.number(readAhead, "accesses", int64(g.after))
	}
	if g.hot > 0 {
		out.number(hotSet, "blocks", int64(g.hot))
	}
	if g.half.half {
		out.number(pairTime, "accesses", int64(g.half.pairTime))
	}
	if l, ok := g.distanceLabel(); ok {
		*out = append(*out, l)
	}
}

// distanceLabel is the mean distance; there is none without reuses.
func (g *group) distanceLabel() (l label, ok bool) {
	d := math.Round(g.distance / g.reused)
	if !(d < 1<<63) { // so for NaN, too
		return label{}, false
	}
	return label{key: distance, unit: "bytes", number: int64(d)}, true
}

func compareHalves(a, b halfWatch) int {
	return cmp.Or(compareBool(a.half, b.half), cmp.Compare(a.pair, b.pair), cmp.Compare(a.pairTime, b.pairTime))
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
