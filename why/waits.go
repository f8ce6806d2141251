package why

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Share is an estimate of a share with its 95 % band.
type Share struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Verdict says whether the program is bound by memory.
type Verdict struct {
	// Known: enough samples of CPU time tell. Why says else what is missing.
	Known bool   `json:"known"`
	Why   string `json:"why,omitempty"`
	// Memory is the share of CPU time in which it waits for data that are not in its first cache: Waits at accesses
	// that no prefetcher foresees, Streams where lines come in order and are asked for faster than they come.
	Memory  Share   `json:"memory"`
	Waits   Share   `json:"waits"`
	Streams Share   `json:"streams"`
	Samples int64   `json:"samples"`
	CPU     float64 `json:"cpu_seconds"`
	// Level is where most of the waits' data come from: a cache's name or "memory"; "" if not known.
	Level string `json:"level,omitempty"`
	Data  string `json:"data,omitempty"` // that is waited for most
	Place string `json:"place,omitempty"`

	functions map[string]float64 // the share of each's time that it waits
}

const (
	// leastSamples of CPU time are needed for a verdict, and leastOwn for a function to have a share of its own.
	leastSamples, leastOwn = 3, 8
)

// verdict is that of a profile.
func verdict(p *model.Profile) (v Verdict) {
	groups := map[string]*group{}
	all := 0.0
	for i := range p.Moments {
		m := &p.Moments[i]
		v.Samples += m.Samples
		all += m.Nanoseconds
		name := functionOf(m.Stack)
		if groups[name] == nil {
			groups[name] = &group{functions: map[string]bool{name: true}}
		}
		groups[name].add(m)
	}
	v.CPU = all / 1e9
	switch {
	case len(p.Moments) == 0:
		v.Why = noMoments(p)
		return v
	case v.Samples < leastSamples:
		v.Why = "only " + report.Plural(v.Samples, "sample") + " of CPU time, want " + report.Plural(leastSamples, "sample") + ": profile longer, or with more --overhead"
		return v
	}
	v.functions = map[string]float64{}
	e := evidenceOf(p)
	likely := slowdown(&p.Clock)
	mean, squares := 0.0, 0.0
	var below, above [2]float64 // offsets of the band: sums, and sums of squares
	for _, g := range pooled(groups) {
		share := g.ns / all
		var own *[cells]float64
		if share > nearlyAll {
			own, likely = likely, nil
		}
		s := g.estimate(e, own)
		for name := range g.functions {
			v.functions[name] = s.Value
		}
		mean += share * s.Value
		squares += share * s.Value * s.Value
		v.Streams.Value += share * s.Value * s.inOrder
		low, high := share*(s.Value-s.Low), share*(s.High-s.Value)
		below[0], below[1] = below[0]+low, below[1]+low*low
		above[0], above[1] = above[0]+high, above[1]+high*high
	}
	// What is wrong with the machine's costs is wrong in all functions, what is chance is not. Which functions were
	// sampled is chance, too.
	drawn := (squares - mean*mean) / float64(v.Samples)
	off := func(o [2]float64) float64 { return math.Sqrt((o[0]*o[0]+o[1])/2 + 1.96*1.96*max(drawn, 0)) }
	found := band(mean, off(below), off(above))
	v.Memory = given(found, likely)
	for name, share := range v.functions {
		v.functions[name] = moved(share, found.Value, v.Memory.Value)
	}
	part := v.Streams.Value / max(mean, 1e-9)
	scaled := func(by float64) Share { return Share{v.Memory.Value * by, v.Memory.Low * by, v.Memory.High * by} }
	v.Streams, v.Waits = scaled(part), scaled(1-part)
	v.Known = true
	return v
}

// noMoments says why a profile has no samples of CPU time, and what has.
func noMoments(p *model.Profile) string {
	switch {
	case p.ExactDistances:
		return "the exact answer counts accesses, not time: rdx run and rdx attach tell of time"
	case len(p.Records) == 0:
		return report.Nothing(p)
	}
	return "the profile has no samples of CPU time, as of a source that samples accesses: --source clock has them"
}

// pooled are the groups with enough samples, in the order of their names, and one of all others.
func pooled(groups map[string]*group) (out []*group) {
	rest := &group{functions: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		if g.n >= leastOwn {
			out = append(out, g)
			continue
		}
		rest.n, rest.ns = rest.n+g.n, rest.ns+g.ns
		rest.moments = append(rest.moments, g.moments...)
		rest.functions[name] = true
	}
	if rest.n > 0 {
		out = append(out, rest)
	}
	return out
}

// sampled is the band of a share of so many samples (Agresti and Coull).
func sampled(value, samples float64) Share {
	p := (value*samples + 2) / (samples + 4)
	off := 1.96 * math.Sqrt(p*(1-p)/(samples+4))
	return band(value, max(0, value-(p-off)), max(0, p+off-value))
}

func band(value, below, above float64) Share {
	value = min(max(value, 0), 1)
	low := value - below
	if low < 5e-4 { // as good as nothing
		low = 0
	}
	return Share{value, low, min(value+above, 1)}
}

// leastFar is after how many accesses a reuse that was read ahead counts as a fetch: about a third of what is read ahead.
const leastFar = 500

// levelSum says how far fetches go, by records of uses that were not reused soon.
type levelSum struct {
	n       int64 // observations
	fetches float64
	misses  []float64 // of these, in each cache
	unknown float64   // fetches, besides, of which nothing is known: nothing was watched
}

func (l *levelSum) add(n int64, fetches float64, misses []float64) {
	l.n += n
	l.fetches += fetches
	for k, m := range misses {
		l.misses[k] += m
	}
}

// join adds another's.
func (l *levelSum) join(o *levelSum) {
	l.add(o.n, o.fetches, o.misses)
	l.unknown += o.unknown
}

// shares are those of fetches that find their data in the first cache, each other, and behind the last.
func (l *levelSum) shares() []float64 {
	out := make([]float64, len(l.misses)+1)
	if !(l.fetches > 0) {
		return out
	}
	before := l.fetches
	for k, m := range l.misses {
		out[k] = max(0, before-m) / l.fetches
		before = min(before, m)
	}
	out[len(l.misses)] = before / l.fetches
	return out
}

// levelSums are of all records, and of those whose use or reuse is in a function.
type levelSums struct {
	all  levelSum
	seen bool // there are records at all
	of   map[string]*levelSum
}

func sumLevels(p *model.Profile) *levelSums {
	s := &levelSums{all: levelSum{misses: make([]float64, len(p.Caches))}, seen: len(p.Records) > 0, of: map[string]*levelSum{}}
	unwatched := p.Unwatched()
	for i := range p.Records {
		r := &p.Records[i]
		if r.Exact && r.Time < leastFar || r.Kind == model.Lost || r.Kind.OfLine() || len(p.Caches) == 0 || len(r.Misses) != len(p.Caches) {
			continue
		}
		fetches, use := max(r.Estimated(), r.Misses[0]), functionOf(r.Use)
		if r.Kind == model.Censored && unwatched {
			s.all.unknown += fetches
			s.function(use).unknown += fetches
			continue
		}
		s.all.add(r.Observations, fetches, r.Misses)
		s.function(use).add(r.Observations, fetches, r.Misses)
		if len(r.Reuse) > 0 {
			if reuse := functionOf(r.Reuse); reuse != use {
				s.function(reuse).add(r.Observations, fetches, r.Misses)
			}
		}
	}
	return s
}

func (s *levelSums) function(name string) *levelSum {
	f := s.of[name]
	if f == nil {
		f = &levelSum{misses: make([]float64, len(s.all.misses))}
		s.of[name] = f
	}
	return f
}

// functionOf is that of a stack's leaf.
func functionOf(stack []*model.Location) string { return report.PlaceOf(stack).Function }

// Spot is a place in the code that waits for data of one kind.
type Spot struct {
	Place    string `json:"place"`
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Data     string `json:"data"`
	Manner   string `json:"pattern"`
	Step     int64  `json:"step_bytes,omitempty"`
	// Time is the share of CPU time that it waits, with its band.
	Time Share `json:"time"`
	// Samples of CPU time that are its function's, and Behind how many found the thread right behind such an access.
	Samples int64 `json:"samples"`
	Behind  int64 `json:"behind"`

	inOrder bool // prefetchers follow it
}

// spots are the places that wait, the longest first: what a function waits is its fetches', by what such a fetch costs.
func spots(p *model.Profile, v *Verdict) (out []*Spot) {
	type key struct {
		place, data string
		manner      model.Manner
		step        int64
	}
	c := costsOf(p)
	time, samples, behind := map[string]float64{}, map[string]int64{}, map[key]int64{}
	all, serial := 0.0, map[string]bool{}
	for i := range p.Moments {
		m := &p.Moments[i]
		name := functionOf(m.Stack)
		all += m.Nanoseconds
		time[name] += m.Nanoseconds
		samples[name] += m.Samples
		serial[name] = serial[name] || m.Chases > m.Apart
		if m.Wait == model.WaitMemory {
			behind[key{place: report.PlaceOf(m.Stack).String(), data: nameOf(m.Data), manner: m.Manner}] += m.Samples
		}
	}
	by, cost, ofFunction := map[key]*Spot{}, map[*Spot]float64{}, map[string]float64{}
	for i := range p.Touches {
		t := &p.Touches[i]
		at := report.PlaceOf(t.Use)
		weight := t.Fetches * c.each(t, serial[at.Function])
		if !(weight > 0) {
			continue
		}
		k := key{place: at.String(), data: nameOf(t.Data), manner: t.Manner}
		if t.Manner == model.MannerStride {
			k.step = t.Stride
		}
		s := by[k]
		if s == nil {
			s = &Spot{Place: k.place, Function: at.Function, File: at.File, Line: at.Line, Data: k.data, Manner: t.Manner.String(), Step: k.step, Samples: samples[at.Function], inOrder: !t.Waits()}
			k.step = 0
			s.Behind = behind[k]
			by[k] = s
			out = append(out, s)
		}
		cost[s] += weight
		ofFunction[at.Function] += weight
	}
	for _, s := range out {
		s.Time = sampled(cost[s]/ofFunction[s.Function]*v.functions[s.Function]*time[s.Function]/all, float64(v.Samples))
	}
	out = slices.DeleteFunc(out, func(s *Spot) bool { return s.Time.Value < leastSpot })
	slices.SortFunc(out, func(a, b *Spot) int {
		return cmp.Or(cmp.Compare(b.Time.Value, a.Time.Value), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Data, b.Data), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Manner, b.Manner))
	})
	return out
}

// leastSpot is the least share of the time that a place is told for.
const leastSpot = 0.001

func nameOf(d *model.Data) string {
	if d == nil || d.Name == "" {
		return "unknown memory"
	}
	return d.Name
}
