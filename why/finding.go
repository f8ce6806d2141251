package why

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// Finding is one thing that stands out, with what it rests on.
type Finding struct {
	Rule     string   `json:"rule"` // a word: stride, chase, gather, random, split, fuse, block, streaming, capacity, sharing
	Title    string   `json:"title"`
	Place    string   `json:"place"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Data     string   `json:"data,omitempty"`
	Cost     *Share   `json:"cost,omitempty"` // of CPU time, at most what mending it gives; nil: not known
	Evidence []string `json:"evidence"`
	Try      string   `json:"try"`
	Gives    string   `json:"gives,omitempty"`
	Samples  int64    `json:"samples"` // behind it
	weight   float64
}

const (
	// leastTime is what a finding must cost at least, as a share of the CPU time, and leastSeen how many samples must
	// stand behind it.
	leastTime, leastSeen = 0.05, 3
	// pays is the share of time that waiting must have, by the low end of its band or in the middle, for anything to stand out.
	pays, paysLow = 0.10, 0.03
	mostFindings  = 8
)

// findings are those that matter, the most costly first: none of a program that does not wait for memory.
func findings(p *model.Profile, a *Answer) []Finding {
	v := &a.Verdict
	if v.Memory.Value < pays || v.Memory.Low < paysLow {
		return nil
	}
	out := waiting(a)
	out = append(out, split(a)...)
	pairs := report.Pairs(p, farMisses(p))
	out = append(out, fuse(p, a, pairs)...)
	out = append(out, again(p, a, pairs)...)
	out = append(out, capacity(p)...)
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(b.weight, a.weight) })
	return out[:min(len(out), mostFindings)]
}

// waiting are the places that wait: one finding for all of one function and its data, but that strides, which
// are mended in another way, are one by themselves.
func waiting(a *Answer) (out []Finding) {
	type key struct {
		function, data string
		strided        bool
	}
	by := map[key][]*Spot{}
	var order []key
	for _, s := range a.Spots {
		if s.inOrder {
			continue // other rules' business
		}
		k := key{s.Function, s.Data, s.Manner == model.MannerStride.String()}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], s)
	}
	for _, k := range order {
		all := by[k]
		n, sum := all[0].Samples, 0.0
		for _, s := range all {
			sum += s.Time.Value
		}
		cost := sampled(sum, float64(a.Verdict.Samples))
		if n < leastSeen || cost.Value < leastTime || cost.Low < paysLow/2 {
			continue
		}
		rule := most(all, func(s *Spot) string { return s.Manner })
		first := all[0]
		f := Finding{Rule: rule, Place: first.Place, File: first.File, Line: first.Line, Data: k.data, Cost: &cost, Samples: n, weight: cost.Value}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%d of %s of CPU time are in %s, of these %d right behind such an access", n, report.Plural(a.Verdict.Samples, "sample"), k.function, behind(all)))
		switch rule {
		case model.MannerStride.String():
			describeStride(&f, all)
		case model.MannerChase.String():
			f.Title = "a pointer chase: each address is read from what the one before it found"
			f.Try = "lay what is visited one after the other next to each other (an array, a pool, nodes of several items), or fetch the node after next ahead"
		case model.MannerGather.String():
			f.Title = "indirect access, as in a[b[i]]: the addresses come from values that are read in order"
			f.Try = "sort or group the indices, make what they point to smaller, or prefetch a few iterations ahead"
		case model.MannerRandom.String():
			f.Title = "look-ups all over the data, as of a hash table or a search"
			f.Try = "make the data smaller or nearer (open addressing, small keys beside each other, a smaller table), look up several at a time with prefetches, use huge pages"
		default:
			f.Rule = "scattered"
			f.Title = "waits at data that were not touched for long, each by an instruction that comes by seldom"
			f.Try = "make the working set smaller, or work on all of one part of it before the next"
		}
		f.addUse(a)
		out = append(out, f)
	}
	return out
}

// behind is how many samples found the thread right behind one of these accesses. Samples do not tell steps apart: spots that
// differ in the step alone have the same ones.
func behind(all []*Spot) (n int64) {
	type key struct{ place, manner string }
	seen := map[key]bool{}
	for _, s := range all {
		if k := (key{s.Place, s.Manner}); !seen[k] {
			seen[k] = true
			n += s.Behind
		}
	}
	return n
}

// describeStride is for waits in large strides.
func describeStride(f *Finding, all []*Spot) {
	times, sum, step := map[int64]float64{}, 0.0, int64(0)
	for _, s := range all {
		size := max(s.Step, -s.Step)
		times[size] += s.Time.Value
		sum += s.Time.Value
		if times[size] > times[step] {
			step = size
		}
	}
	in := fmt.Sprintf("steps of %s", report.Bytes(float64(step)))
	if times[step] < 0.9*sum {
		in = fmt.Sprintf("large steps, most often of %s", report.Bytes(float64(step)))
	}
	f.Title = fmt.Sprintf("a walk in %s: each access is to another page or line, and no prefetcher follows", in)
	f.Try = "interchange the loops so that the inner one goes along the rows, or block them"
	if step >= 512 && step&(step-1) == 0 {
		f.Evidence = append(f.Evidence, "the step is a power of two: the lines compete for few sets of the cache")
		f.Try += "; if that can't be, pad the rows by a line"
	}
}

// addUse says how much of the fetched lines is used.
func (f *Finding) addUse(a *Answer) {
	for _, w := range a.Walks {
		if w.Place == f.Place && w.Fetches > 0 && w.Windows >= 2 && w.Used > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%.0f of 64 bytes of a fetched line are used while it is looked at", w.Used))
			break
		}
	}
	f.addMembers(a)
}

// addMembers says which members of structs are fetched, by all instructions of the finding's function that fetch most from its data.
func (f *Finding) addMembers(a *Answer) {
	var all []string
	function := ""
	for _, w := range a.Walks {
		if w.Place == f.Place {
			function = w.Function
		}
	}
	for _, w := range a.Walks {
		for _, m := range w.Members {
			if w.Function == function && w.Data == f.Data && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	if len(all) > 0 {
		f.Evidence = append(f.Evidence, "fetched there: "+report.Members(all))
	}
}

// split finds structures of which little is used: lines that come in order, in steps of half a line or more, of which less
// than half is touched.
func split(a *Answer) (out []Finding) {
	fetches := 0.0
	for _, w := range a.Walks {
		fetches += w.Fetches
	}
	type key struct{ function, data string }
	done := map[key]bool{}
	for _, w := range a.Walks {
		step := w.Step
		if step < 0 {
			step = -step
		}
		k := key{w.Function, w.Data}
		regular := w.Stride == model.StrideWithin.String() || w.Stride == model.StrideLine.String() || w.Stride == model.StrideLarger.String()
		if done[k] || !regular || step < 24 || step >= 2048 || w.Used > 32 || w.Fetches < 0.2*fetches || w.Windows < leastSeen {
			continue
		}
		done[k] = true
		cost := a.Verdict.Memory.Value * w.Fetches / fetches
		if cost < leastTime {
			continue
		}
		c := band(cost, cost-a.Verdict.Memory.Low*w.Fetches/fetches, a.Verdict.Memory.High*w.Fetches/fetches-cost)
		f := Finding{Rule: "split", Title: fmt.Sprintf("little of each line is used: %.0f of 64 bytes, in steps of %d", w.Used, step), Place: w.Place, File: w.File, Line: w.Line,
			Data: w.Data, Samples: w.Windows, weight: cost, Cost: &c}
		f.Evidence = []string{fmt.Sprintf("%s of all lines that are fetched come here, in steps of %d bytes, %.0f bytes used of each", report.WholePercent(w.Fetches/fetches), step, w.Used)}
		f.addMembers(a)
		f.Try = "keep the members that this loop uses in arrays of their own (structure of arrays), or split the structure into a hot and a cold part"
		f.Gives = fmt.Sprintf("as many items with %.1f times fewer lines", 64/max(w.Used, 1))
		out = append(out, f)
	}
	return out
}

// farMisses are a record's misses in the largest cache of which the profile tells, if it was not read ahead.
func farMisses(p *model.Profile) func(*model.Record) float64 {
	k := max(p.Quotable(), 0)
	return func(r *model.Record) float64 {
		if r.Exact || k >= len(r.Misses) {
			return 0
		}
		return r.Misses[k]
	}
}

// walkAt is how a place walks: whether in order.
func (a *Answer) inOrder(place string) bool {
	for _, w := range a.Walks {
		if w.Place == place && w.Fetches > 0 {
			return w.Stride == model.StrideWithin.String() || w.Stride == model.StrideLine.String() || w.Stride == model.StrideLarger.String()
		}
	}
	return false
}

// missesAt are the total of what farMisses counts, and the cache's name.
func missesAt(p *model.Profile, value func(*model.Record) float64) (sum, accesses float64, level string) {
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind != model.Lost && !r.Kind.OfLine() {
			sum += value(r)
			accesses += r.Accesses
		}
	}
	if len(p.Caches) > 0 {
		level = p.Caches[max(p.Quotable(), 0)].Level
	}
	return sum, accesses, level
}

// quoted says whether a cache's miss ratio is known well enough to be told of as a number.
func quoted(p *model.Profile, k int) bool {
	if k >= len(p.Caches) || p.Block <= 0 {
		return false
	}
	curve, err := p.MissRatios([]uint64{uint64(max(p.Caches[k].Size, 0)) / uint64(p.Block)}, model.CurveOptions{})
	return err == nil && curve.Points[0].Quote == model.Quoted
}

// gives says what the misses would be were a pair near: its share is taken out of them.
func gives(p *model.Profile, q *report.Pair) string {
	sum, accesses, level := missesAt(p, farMisses(p))
	if !(accesses > 0) || !(sum > 0) || !quoted(p, max(p.Quotable(), 0)) {
		return ""
	}
	share := min(q.Value/sum, 1)
	off := 1.96 * math.Sqrt((share*(1-share)+0.02)/float64(q.Observations+4))
	left := band(1-share, off, off)
	seconds := float64(p.CountOf(model.CPUSampled)) / 1e9
	out := fmt.Sprintf("were this pair near, %s misses would be %s instead of %s of accesses (%s to %s)", level, report.Percent(left.Value*sum, accesses),
		report.Percent(sum, accesses), report.Percent(left.Low*sum, accesses), report.Percent(left.High*sum, accesses))
	if seconds > 0 {
		line := float64(p.Block)
		out += fmt.Sprintf(", traffic into it %s instead of %s", perSecond(left.Value*sum*line/seconds), perSecond(sum*line/seconds))
	}
	return out
}

// fuse finds two loops that go over the same data one after the other.
func fuse(p *model.Profile, a *Answer, pairs []*report.Pair) (out []Finding) {
	sum, _, level := missesAt(p, farMisses(p))
	for _, q := range pairs {
		if q.Kind != model.Reuse.String() || q.Observations < leastSeen || q.Value < 0.15*sum || q.Use == q.Reuse {
			continue
		}
		apart := q.Use.Function != q.Reuse.Function || q.Use.File != q.Reuse.File || q.Use.Line-q.Reuse.Line > nearLines || q.Reuse.Line-q.Use.Line > nearLines
		if !apart || !a.inOrder(q.Use.String()) || !a.inOrder(q.Reuse.String()) {
			continue
		}
		f := Finding{Rule: "fuse", Title: "two loops go over the same data, one after the other", Place: fmt.Sprintf("%s -> %s", q.Use, q.Reuse), File: q.Use.File, Line: q.Use.Line,
			Samples: q.Observations, weight: a.Verdict.Memory.Value * q.Value / sum}
		f.Evidence = []string{fmt.Sprintf("%s of all predicted %s misses are of data touched in the first place and next in the second, %s observed", report.Percent(q.Value, sum), level, report.Plural(q.Observations, "time"))}
		if q.Distance != nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("between them %s of other data are touched", report.Bytes(*q.Distance)))
		}
		f.Try = "do both in one pass (fuse the loops), or block by block: all passes over a part that fits a cache before the next part"
		f.Gives = gives(p, q)
		out = append(out, f)
	}
	return out
}

// nearLines is how far lines of one loop may be apart.
const nearLines = 2

// again finds a loop nest that walks large data again and again.
func again(p *model.Profile, a *Answer, pairs []*report.Pair) (out []Finding) {
	sum, _, level := missesAt(p, farMisses(p))
	for _, q := range pairs {
		if q.Kind != model.Reuse.String() || q.Observations < leastSeen || q.Value < 0.25*sum || q.Use != q.Reuse || q.Distance == nil || !a.inOrder(q.Use.String()) {
			continue
		}
		f := Finding{Rule: "block", Title: "a loop walks the same large data again and again", Place: q.Use.String(), File: q.Use.File, Line: q.Use.Line,
			Samples: q.Observations, weight: 0.9 * a.Verdict.Memory.Value * q.Value / sum}
		f.Evidence = []string{fmt.Sprintf("%s of all predicted %s misses are of data that this place touched %s before, %s observed", report.Percent(q.Value, sum), level, report.Bytes(*q.Distance), report.Plural(q.Observations, "time"))}
		f.Try = "block the loops: do all work on a part that fits a cache before the next part"
		f.Gives = gives(p, q)
		out = append(out, f)
	}
	return out
}

// capacity finds a working set just above a cache: with twice the cache most misses would be gone.
func capacity(p *model.Profile) (out []Finding) {
	if p.Block <= 0 {
		return nil
	}
	for _, c := range p.Caches {
		at := uint64(max(c.Size, 0)) / uint64(p.Block)
		curve, err := p.MissRatios([]uint64{at, 2 * at}, model.CurveOptions{})
		if err != nil {
			return nil
		}
		now, then := curve.Points[0], curve.Points[1]
		if now.Quote != model.Quoted || then.High > now.Low/2 || now.MissRatio < 0.005 {
			continue
		}
		out = append(out, Finding{Rule: "capacity", Title: fmt.Sprintf("the working set is just above %s", c.Level), Place: c.Level, Samples: int64(curve.Holds), weight: leastTime,
			Evidence: []string{fmt.Sprintf("%s of accesses miss %s, %s; with twice its size it would be %s (at most %s)", report.Percent(now.MissRatio, 1), c.Level, report.Bytes(float64(c.Size)), report.Percent(then.MissRatio, 1), report.Percent(then.High, 1))},
			Try:      "make the data a little smaller: narrower types, fewer members, smaller blocks, less at a time"})
	}
	return out
}

// leastShared is which share of the accesses must find their line gone for a finding.
const leastShared = 0.01

// sharing finds what threads take from each other, where they were watched for it: false sharing, and what several write.
func sharing(whole *model.Profile) (out []Finding) {
	for _, f := range report.SharingFindings(whole) {
		if f.Seen < leastSeen || f.Share < leastShared {
			continue
		}
		x := Finding{Rule: "sharing", Title: "false sharing: threads write to different data in one line", Place: f.Where[0].String(), File: f.Where[0].File, Line: f.Where[0].Line, Data: strings.Join(f.Data, ", "), Samples: f.Seen, weight: 1,
			Evidence: []string{f.Text}, Try: "give each thread's data lines of their own: pad or align them to 64 bytes, or to 128"}
		if f.Kind != "false" {
			x.Title, x.Try = "threads write the same data", "give each thread its own and add them up seldom, or take a lock for longer pieces of work"
		}
		out = append(out, x)
	}
	return out
}
