package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Answer is all that is told of a profile.
type Answer struct {
	Command  string    `json:"command"`
	Verdict  Verdict   `json:"verdict"`
	Traffic  []Traffic `json:"traffic"`
	Spots    []*Spot   `json:"waits_at"`
	Walks    []*Walk   `json:"touched"`
	Findings []Finding `json:"findings"`
	// Says is the verdict in one line.
	Says string `json:"says"`
	// Checked: the profile can tell whether something stands out. Without it no finding means nothing.
	Checked bool `json:"checked"`
	// Unwatched is how many threads worked of which nobody watched what they take from each other; 0 if there is but one.
	Unwatched int `json:"threads_not_watched"`
}

// Traffic is what goes between a cache and what lies behind it, in bytes a second of CPU time.
type Traffic struct {
	Level  string  `json:"level"`
	Behind string  `json:"from"`
	Fills  float64 `json:"fill_bytes_per_second"`
	Low    float64 `json:"fill_low"`
	High   float64 `json:"fill_high"`
	Bound  bool    `json:"upper_bound"` // Fills is not known, High is
	// WriteBacks of lines that were written to.
	WriteBacks float64 `json:"write_back_bytes_per_second"`
}

// Analyze says why a profile's program misses, and what would help. The profile's derived fields must be filled.
func Analyze(p *model.Profile) *Answer { return AnalyzeWith(p, p) }

// AnalyzeWith takes the profile's records of lines from the whole profile, of which p is what was observed in one stack.
func AnalyzeWith(p, whole *model.Profile) *Answer {
	a := &Answer{Command: p.Command, Verdict: verdict(p)}
	v := &a.Verdict
	a.Findings = sharing(whole) // what it costs is not in the verdict: such lines are touched again and again
	a.Traffic = traffic(p)
	a.Walks = walks(p)
	if v.Known {
		a.Spots = spots(p, v)
		v.Level = level(p, a.Spots)
		if len(a.Spots) > 0 && a.Spots[0].Samples >= 3 {
			v.Data, v.Place = most(a.Spots, func(s *Spot) string { return s.Data }), most(a.Spots, func(s *Spot) string { return s.Place })
		}
		a.Findings = append(a.Findings, findings(p, a)...)
		a.Checked = len(a.Findings) > 0 || v.Memory.High <= decided || v.Memory.Low >= paysLow
	}
	a.Unwatched = unwatched(whole)
	a.Says = a.says() + a.sharingClause()
	return a
}

// sharingClause says that the verdict is without what threads take from each other, where that was found.
func (a *Answer) sharingClause() string {
	for _, f := range a.Findings {
		if f.Rule == "sharing" && a.Verdict.Known {
			return "; on top of it comes what threads take from each other, at " + strings.Join(strings.Fields(f.Place), " ")
		}
	}
	return ""
}

// unwatched are the threads that each made a twentieth of the accesses or more, where other threads' writes were not watched.
func unwatched(p *model.Profile) (n int) {
	const leastWork = 0.05
	if slices.Contains(p.StackKinds(), model.StackPrivate) {
		return 0
	}
	of, all := map[int]float64{}, 0.0
	for i := range p.Records {
		if r := &p.Records[i]; r.Kind != model.Lost {
			of[r.TID] += r.Accesses
			all += r.Accesses
		}
	}
	for _, accesses := range of {
		if accesses >= leastWork*all && accesses > 0 {
			n++
		}
	}
	if n < 2 {
		return 0
	}
	return n
}

// decided: of a program that waits for no more than that of its time, by the high end of the band, it is known
// that nothing stands out.
const decided = 0.5

// most is the name that most of the waiting time has.
func most(spots []*Spot, name func(*Spot) string) string {
	sums, best := map[string]float64{}, ""
	for _, s := range spots {
		sums[name(s)] += s.Time.Value
	}
	for _, s := range spots {
		if n := name(s); best == "" || sums[n] > sums[best] {
			best = n
		}
	}
	return best
}

// level is where most of the waiting time's data come from, by the reuses of the functions that wait; "" if that is not known, as
// where it is another at another rate of accesses that may be.
func level(p *model.Profile, spots []*Spot) (name string) {
	if len(p.Costs) != len(p.Caches)+1 || p.Unwatched() {
		return ""
	}
	e := evidenceOf(p)
	for i, r := range e.rates {
		switch at := e.level(p, spots, r.levels); {
		case i == 0:
			name = at
		case at != name:
			return ""
		}
	}
	return name
}

// level is that by what one rate makes of the profile.
func (e *evidence) level(p *model.Profile, spots []*Spot, from *levelSums) string {
	shares := make([]float64, len(from.all.misses)+1)
	n, added := int64(0), map[string]bool{}
	for _, s := range spots {
		if f := from.of[s.Function]; f != nil && s.Time.Value > 0.02 && !added[s.Function] {
			added[s.Function] = true
			n += f.n
			parts, all := e.sets[s.Function], 0.0
			for _, fetches := range parts {
				all += fetches
			}
			for k, share := range e.among(f.shares(), parts, all) {
				shares[k] += share * f.fetches
			}
		}
	}
	if n < 3 {
		return ""
	}
	steps, costs := p.CostSteps()
	best, sum := "", 0.0
	waits := map[string]float64{}
	for i := 1; i < len(shares); i++ {
		name := "memory"
		if i < len(steps) {
			name = levelName(steps[i])
		}
		if waits[name] += shares[i] * costs[i].Waits; name != steps[0].Level && waits[name] > sum {
			best, sum = name, waits[name]
		}
	}
	return best
}

// traffic is that of each cache, by the predicted misses and the share of fetched lines that are written to.
func traffic(p *model.Profile) (out []Traffic) {
	if len(p.Caches) == 0 || p.Block <= 0 {
		return nil
	}
	seconds := float64(p.CountOf(model.CPUSampled)) / 1e9
	if !(seconds > 0) {
		return nil
	}
	var accesses, fetched, written float64
	for i := range p.Records {
		if r := &p.Records[i]; r.Kind != model.Lost && !r.Kind.OfLine() {
			accesses += r.Accesses
		}
	}
	for i := range p.Touches {
		fetched += p.Touches[i].Fetches
		written += p.Touches[i].Written
	}
	dirty := 0.0
	if fetched > 0 {
		dirty = written / fetched
	}
	var sizes []uint64
	for _, c := range p.Caches {
		sizes = append(sizes, uint64(max(c.Size, 0))/uint64(p.Block))
	}
	curve, err := p.MissRatios(sizes, model.CurveOptions{})
	if err != nil {
		return nil
	}
	per := accesses * float64(p.Block) / seconds
	slow, fast := 1.0, 1.0 // by the access rate's interval
	if c := &p.Clock; c.RateHigh > 0 && c.Rate > 0 {
		slow, fast = min(c.RateLow/c.Rate, 1), max(c.RateHigh/c.Rate, 1)
	}
	for i, q := range curve.Points {
		t := Traffic{Level: p.Caches[i].Level, Behind: "memory", Fills: q.MissRatio * per, Low: q.Low * per * slow, High: q.High * per * fast, Bound: q.Quote != model.Quoted || fast > 4*slow}
		if i+1 < len(p.Caches) {
			t.Behind = p.Caches[i+1].Level
		}
		t.WriteBacks = dirty * t.Fills
		out = append(out, t)
	}
	return out
}

// says is the verdict in a line.
func (a *Answer) says() string {
	v := &a.Verdict
	if !v.Known {
		return "not known whether it is bound by memory: " + v.Why
	}
	about := fmt.Sprintf("%s of its CPU time (95%% band %s to %s)", report.WholePercent(v.Memory.Value), report.WholePercent(v.Memory.Low), report.WholePercent(v.Memory.High))
	switch {
	// Of so wide a band, or one that holds next to nothing and as much as would be called bound, its middle says nothing.
	case v.Memory.High-v.Memory.Low > 0.6 || v.Memory.Low < 0.1 && v.Memory.High > 0.4:
		about = "perhaps bound by memory, " + report.Plural(v.Samples, "sample") + " can't tell: it waits for data " + about
	case v.Memory.Low >= 0.3 || v.Memory.Value >= 0.5 && v.Memory.Low >= 0.2:
		about = "bound by memory: it waits for data " + about
	case v.Memory.High <= 0.25:
		return "not bound by memory: it waits for data " + about
	case v.Memory.Value < 0.1:
		return "hardly bound by memory: it waits for data " + about
	default:
		about = "in part bound by memory: it waits for data " + about
	}
	if v.Level != "" {
		about += ", mostly from " + v.Level
	}
	if v.Data != "" {
		about += fmt.Sprintf(", most of it for %s, at %s", v.Data, strings.Join(strings.Fields(v.Place), " "))
	}
	return about
}

// perSecond writes a rate of bytes.
func perSecond(bytes float64) string { return report.Bytes(bytes) + "/s" }
