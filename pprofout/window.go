package pprofout

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// Samples of what windows that were read ahead show stand beside those of the records, with columns of
// their own: how an instruction touches memory, of kind touch, and where CPU time goes, of kind cpu.
const (
	touchKind    = "touch"
	cpuKind      = "cpu"
	patternLabel = "pattern"
	strideLabel  = "step"
	waitLabel    = "wait"
	nearLabel    = "near"
	chasesLabel  = "chases_10k"
	apartLabel   = "apart_10k"
	streamsLabel = "streams_10k"
	runsLabel    = "runs"
	// Lines in 1,000 instructions, of profiles that are older.
	chases1k  = "chases"
	apart1k   = "apart"
	streams1k = "streams"
)

// windowTypes are their columns.
var windowTypes = [...]*profile.ValueType{
	{Type: "windows", Unit: "count"},     // holds in which it was seen
	{Type: "touches", Unit: "count"},     // accesses of the program
	{Type: "fetches", Unit: "count"},     // of these, to lines not touched for long
	{Type: "line_use", Unit: "bytes"},    // of these lines, touched
	{Type: "write_backs", Unit: "count"}, // of these lines, written to
	{Type: "cpu", Unit: nanoseconds},
}

func hasWindows(p *model.Profile) bool { return len(p.Touches)+len(p.Moments) > 0 }

// window is what tells one such sample from others.
type window struct {
	kind    string // "" of other samples
	pattern model.Manner
	stride  int64
	wait    model.Wait
	rates   model.MomentRates
}

func (w *window) appendKey(key []byte) []byte {
	if w.kind == "" {
		return key
	}
	key = append(key, w.kind...)
	for _, v := range [...]int64{int64(w.pattern), w.stride, int64(w.wait), int64(w.rates.Near), int64(w.rates.Chases), int64(w.rates.Apart), int64(w.rates.Streams), int64(w.rates.Runs)} {
		key = binary.LittleEndian.AppendUint64(key, uint64(v))
	}
	return key
}

func (w *window) compare(o *window) int {
	return cmp.Or(cmp.Compare(w.kind, o.kind), cmp.Compare(w.pattern, o.pattern), cmp.Compare(w.stride, o.stride), cmp.Compare(w.wait, o.wait),
		cmp.Compare(w.rates.Near, o.rates.Near), cmp.Compare(w.rates.Chases, o.rates.Chases), cmp.Compare(w.rates.Apart, o.rates.Apart), cmp.Compare(w.rates.Streams, o.rates.Streams), cmp.Compare(w.rates.Runs, o.rates.Runs))
}

func (w *window) labels(g *group) []label {
	var out labelList
	out.text(kindLabel, w.kind)
	if g.op != model.OpUnknown {
		out.text(accessLabel, g.op.String())
	}
	out.text(dataLabel, g.data)
	if w.kind == touchKind || w.wait == model.WaitMemory {
		out.text(patternLabel, w.pattern.String())
		if w.pattern == model.MannerStride {
			out.number(strideLabel, "bytes", w.stride)
		}
	}
	out.text(memberLabel, g.members[0])
	if w.kind == cpuKind {
		out.text(waitLabel, w.wait.String())
		out.number(tidLabel, tidLabel, int64(g.tid))
		out.number(nearLabel, "percent", int64(w.rates.Near))
		out.number(chasesLabel, "lines", int64(w.rates.Chases))
		out.number(apartLabel, "lines", int64(w.rates.Apart))
		out.number(streamsLabel, "lines", int64(w.rates.Streams))
		out.number(runsLabel, "nanoseconds", int64(w.rates.Runs))
	}
	return out
}

// addWindows adds the samples of a profile.
func (e *encoder) addWindows(p *model.Profile) error {
	at := 3 + len(p.Caches)
	if e.squares {
		at++
	}
	for i := range p.Touches {
		t := &p.Touches[i]
		g := group{op: t.Op, data: dataName(t.Data), members: [2]string{text(t.Member)}, window: window{kind: touchKind, pattern: t.Manner, stride: t.Stride}}
		if err := e.addWindow(&g, at, t.Use, float64(t.Windows), t.Accesses, t.Fetches, t.Used, t.Written); err != nil {
			return fmt.Errorf("touch %d: %w", i, err)
		}
	}
	for i := range p.Moments {
		m := &p.Moments[i]
		g := group{op: m.Op, tid: m.TID, data: dataName(m.Data), window: window{kind: cpuKind, pattern: m.Manner, stride: m.Stride, wait: m.Wait, rates: m.MomentRates}}
		if err := e.addWindow(&g, at, m.Stack, float64(m.Samples), 0, 0, 0, 0, m.Nanoseconds); err != nil {
			return fmt.Errorf("moment %d: %w", i, err)
		}
	}
	return nil
}

// addWindow adds values to the columns from number at on.
func (e *encoder) addWindow(g *group, at int, stack []*model.Location, values ...float64) error {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("weight %v: want finite numbers >= 0", v)
		}
	}
	if len(stack) == 0 {
		return fmt.Errorf("no stack")
	}
	g.stack = e.appendStack(nil, stack)
	sum := e.group(g)
	for i, v := range values {
		sum.weights[at+i] += v
	}
	return nil
}

func dataName(d *model.Data) string {
	if d == nil {
		return ""
	}
	return text(d.Name)
}

// window reads a sample of one of the two kinds.
func (d *decoder) window(kind string, s *sample) error {
	if !d.windows {
		return fmt.Errorf("kind %s without the sample type %s/%s", kind, windowTypes[0].Type, windowTypes[0].Unit)
	}
	at := 4 + len(d.p.Caches)
	if d.squares {
		at++
	}
	value := func(i int) float64 { return float64(s.values[d.column[at+i]]) }
	pattern, ok := model.ParseManner(cmp.Or(s.text(ofPattern), model.MannerUnknown.String()))
	if !ok {
		return fmt.Errorf("pattern %.40q is not known", s.text(ofPattern))
	}
	var data *model.Data
	if name := s.text(ofData); name != "" {
		data = d.datum(name)
	}
	op, stride := parseOp(s.text(ofAccess)), s.number(ofStride)
	if kind == touchKind {
		d.p.Touches = append(d.p.Touches, model.Touch{Use: d.stack(s.stack), Op: op, Data: data, Manner: pattern, Stride: stride,
			Windows: s.values[d.column[at]], Accesses: value(1), Fetches: value(2), Used: value(3), Written: value(4), Member: s.text(ofMember)})
		return nil
	}
	wait, ok := model.ParseWait(cmp.Or(s.text(ofWait), model.WaitUnknown.String()))
	if !ok {
		return fmt.Errorf("wait %.40q is not known", s.text(ofWait))
	}
	lines := func(in10k, in1k labelKey) int { return int(s.number(in10k) + 10*s.number(in1k)) }
	rates := model.MomentRates{Near: int(s.number(ofNear)), Chases: lines(ofChases, ofChases1k), Apart: lines(ofApart, ofApart1k), Streams: lines(ofStreams, ofStreams1k), Runs: int(s.number(ofRuns))}
	d.p.Moments = append(d.p.Moments, model.Moment{Stack: d.stack(s.stack), TID: int(s.number(ofTID)), Wait: wait, Op: op, Data: data, Manner: pattern, Stride: stride,
		MomentRates: rates, Samples: s.values[d.column[at]], Nanoseconds: value(5)})
	return nil
}
