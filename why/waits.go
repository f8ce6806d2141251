package why

import (
	"cmp"
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
}

const (
	// leastSamples of CPU time are needed for a verdict, and leastOwn for a function to have a share of its own.
	leastSamples, leastOwn = 3, 8
	// instructionsPerCycle of code that waits for nothing, and the least and most of its band.
	instructionsPerCycle, fewPerCycle, manyPerCycle = 2.5, 1.2, 4
	// assumedCycle in ns, where the machine's costs were not measured.
	assumedCycle = 0.35
)

// group is moments that have a share of waits together.
type group struct {
	n, memory int64 // samples of which it is known, and that seem to wait
	chance    float64
	ns        float64
}

// waits is the share of waiting: what seems to wait, less what would by chance. middle is that of its band.
func (g *group) waits() (share, middle, variance float64) {
	n := float64(g.n)
	seem, chance := float64(g.memory)/n, g.chance/n
	rest := max(1-chance, 0.02)
	// Agresti and Coull's: two samples of each kind are added.
	p := (float64(g.memory) + 2) / (n + 4)
	return max(0, (seem-chance)/rest), (p - chance) / rest, p * (1 - p) / (n + 4) / (rest * rest)
}

// verdict is that of a profile.
func verdict(p *model.Profile) (v Verdict) {
	byFunction := map[string]*group{}
	pooled, all := &group{}, 0.0
	unknown := 0.0
	for i := range p.Moments {
		m := &p.Moments[i]
		v.Samples += m.Samples
		all += m.Nanoseconds
		if m.Wait == model.WaitUnknown {
			unknown += m.Nanoseconds
			continue
		}
		name := functionOf(m.Stack)
		g := byFunction[name]
		if g == nil {
			g = &group{}
			byFunction[name] = g
		}
		g.n += m.Samples
		g.chance += float64(m.Samples) * float64(m.Chance) / 100
		g.ns += m.Nanoseconds
		if m.Wait == model.WaitMemory {
			g.memory += m.Samples
		}
	}
	v.CPU = all / 1e9
	switch {
	case len(p.Moments) == 0:
		v.Why = "the profile has no samples of CPU time: its source samples accesses, or it was made by another command"
		return v
	case v.Samples < leastSamples:
		v.Why = "only " + countOf(v.Samples, "sample") + " of CPU time, want " + countOf(leastSamples, "sample") + ": profile longer, or with more --overhead"
		return v
	case unknown > all/2:
		v.Why = "where most threads were held, the program does not come by again in what was read ahead"
		return v
	}
	var groups []*group
	for _, g := range byFunction {
		if g.n >= leastOwn {
			groups = append(groups, g)
			continue
		}
		pooled.n, pooled.memory, pooled.chance, pooled.ns = pooled.n+g.n, pooled.memory+g.memory, pooled.chance+g.chance, pooled.ns+g.ns
	}
	if pooled.n > 0 {
		groups = append(groups, pooled)
	}
	known := all - unknown
	middle, variance := 0.0, 0.0
	for _, g := range groups {
		share, mid, off := g.waits()
		v.Waits.Value += share * g.ns / known
		middle += mid * g.ns / known
		variance += off * (g.ns / known) * (g.ns / known)
	}
	v.Waits = around(v.Waits.Value, middle, 1.96*math.Sqrt(variance))
	v.Streams = streams(p, all)
	v.Memory = band(v.Waits.Value+v.Streams.Value, math.Hypot(v.Waits.Value-v.Waits.Low, v.Streams.Value-v.Streams.Low),
		math.Hypot(v.Waits.High-v.Waits.Value, v.Streams.High-v.Streams.Value))
	v.Known = true
	return v
}

// around is a value with the band that lies around a middle, and holds the value.
func around(value, middle, off float64) Share {
	return band(value, max(0, value-(middle-off)), max(0, middle+off-value))
}

// sampled is the band of a share of so many samples (Agresti and Coull).
func sampled(value, samples float64) Share {
	p := (value*samples + 2) / (samples + 4)
	return around(value, p, 1.96*math.Sqrt(p*(1-p)/(samples+4)))
}

func band(value, below, above float64) Share {
	value = min(max(value, 0), 1)
	return Share{value, max(value-below, 0), min(value+above, 1)}
}

// streams is the share of time in which lines are awaited that come in order: where as many are fetched an instruction as
// come more slowly than the instructions run. Samples that wait for other data have been counted.
func streams(p *model.Profile, all float64) Share {
	each := streamCost(p)
	cycle := assumedCycle
	if len(p.Costs) > 0 {
		cycle = min(max(p.Costs[0].Waits/5, 0.15), 1) // four or five cycles is what the first cache takes
	}
	at := func(perCycle float64) float64 {
		sum := 0.0
		for i := range p.Moments {
			m := &p.Moments[i]
			lines := float64(m.Streams) / 1000 * each
			if m.Wait == model.WaitMemory || !(lines > 0) {
				continue
			}
			sum += m.Nanoseconds / all * max(0, 1-cycle/perCycle/lines)
		}
		return sum
	}
	return Share{at(instructionsPerCycle), at(fewPerCycle), at(manyPerCycle)}
}

// streamCost is what a line takes that comes in order, in ns, by where the profile's misses find their data.
func streamCost(p *model.Profile) float64 {
	if len(p.Costs) != len(p.Caches)+1 {
		return 0
	}
	levels := levelShares(p, func(*model.Record) bool { return true })
	sum := 0.0
	for i, s := range levels {
		sum += s * p.Costs[i].Streams
	}
	return sum
}

// levelShares are the shares of fetches that find their data in the first cache, each other, and behind
// the last, by the records that fit: of uses that were not reused as far as was read ahead.
func levelShares(p *model.Profile, fits func(*model.Record) bool) []float64 {
	misses := make([]float64, len(p.Caches)+1)
	all := 0.0
	for i := range p.Records {
		r := &p.Records[i]
		if r.Exact || len(r.Misses) != len(p.Caches) || !fits(r) {
			continue
		}
		all += max(r.Estimated(), r.Misses[0])
		for k, m := range r.Misses {
			misses[k] += m
		}
	}
	out := make([]float64, len(p.Caches)+1)
	if !(all > 0) {
		return out
	}
	before := all
	for k := range p.Caches {
		out[k] = max(0, before-misses[k]) / all
		before = min(before, misses[k])
	}
	out[len(p.Caches)] = before / all
	return out
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
	Time    Share `json:"time"`
	Samples int64 `json:"samples"`
}

// spots are the places that wait, the longest first.
func spots(p *model.Profile, v *Verdict) (out []*Spot) {
	type key struct {
		place, data string
		manner      model.Manner
		step        int64
	}
	by := map[key]*Spot{}
	waiting := 0.0
	ns := map[*Spot]float64{}
	for i := range p.Moments {
		m := &p.Moments[i]
		if m.Wait != model.WaitMemory {
			continue
		}
		waiting += m.Nanoseconds
		at := report.PlaceOf(m.Stack)
		k := key{place: at.String(), data: nameOf(m.Data), manner: m.Manner}
		if m.Manner == model.MannerStride {
			k.step = m.Stride
		}
		s := by[k]
		if s == nil {
			s = &Spot{Place: k.place, Function: at.Function, File: at.File, Line: at.Line, Data: k.data, Manner: m.Manner.String(), Step: k.step}
			by[k] = s
			out = append(out, s)
		}
		s.Samples += m.Samples
		ns[s] += m.Nanoseconds
	}
	for _, s := range out {
		part := ns[s] / waiting
		s.Time = sampled(part*v.Waits.Value, float64(v.Samples))
	}
	slices.SortFunc(out, func(a, b *Spot) int {
		return cmp.Or(cmp.Compare(b.Time.Value, a.Time.Value), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Data, b.Data), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Manner, b.Manner))
	})
	return out
}

func nameOf(d *model.Data) string {
	if d == nil || d.Name == "" {
		return "unknown memory"
	}
	return d.Name
}
