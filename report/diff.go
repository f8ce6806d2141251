package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// DiffReport is what rdx diff prints.
type DiffReport struct {
	Before *overview    `json:"before"`
	After  *overview    `json:"after"`
	Caches []diffCache  `json:"caches"`
	By     string       `json:"by"`
	All    int          `json:"pairs_in_all"`
	Pairs  []*diffPair  `json:"pairs"`
	Total  changedShare `json:"total"`
	// Waits is the share of CPU time that misses are waited for, before and after; nil where that is not known.
	Waits [2]*band `json:"waits"`

	// Notes are why the two may not be comparable.
	Notes []string `json:"notes,omitempty"`

	title string
}

type band struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// A changedShare is a share of the accesses in both profiles.
type changedShare struct {
	Before      band `json:"before"`
	After       band `json:"after"`
	Change      band `json:"change"`
	Significant bool `json:"significant"`
}

// changeOf is the change of a share, which is 0 to 1, as its ends are: no band says more than can be.
func changeOf(before, after model.Estimate) changedShare {
	before, after = within(before, 0, 1), within(after, 0, 1)
	d := within(after.Minus(before), -1, 1)
	return changedShare{band(before), band(after), band(d), d.Significant()}
}

func within(e model.Estimate, least, most float64) model.Estimate {
	in := func(v float64) float64 { return min(max(v, least), most) }
	return model.Estimate{Value: in(e.Value), Low: in(e.Low), High: in(e.High)}
}

type diffCache struct {
	Level string `json:"level,omitempty"`
	Bytes uint64 `json:"bytes"`
	Note  string `json:"note,omitempty"` // why one of the ratios is not to be quoted
	changedShare
}

type diffPair struct {
	Use   string   `json:"use"`
	Reuse string   `json:"reuse"`
	Seen  [2]int64 `json:"observations"`
	// Waits are the shares of CPU time that the pair's misses are waited for; nil where that is not known.
	Waits [2]*float64 `json:"waits"`
	changedShare
	records [2][]*model.Record
}

// Waiting is what is known of the time that a profile's program waits: the share of its CPU time, with a band, and
// each record's.
type Waiting struct {
	Value, Low, High float64
	Of               func(*model.Record) float64
}

// AddWaits puts time beside the misses. What is nil is not known.
func (r *DiffReport) AddWaits(of [2]*Waiting) {
	for i, w := range of {
		if w == nil {
			continue
		}
		r.Waits[i] = &band{w.Value, w.Low, w.High}
		for _, q := range r.Pairs {
			sum := 0.0
			for _, x := range q.records[i] {
				sum += w.Of(x)
			}
			q.Waits[i] = &sum
		}
	}
}

func NewDiff(before, after *model.Profile, sizes []string, o model.CurveOptions, by string) (*DiffReport, error) {
	if before.Block != after.Block {
		return nil, fmt.Errorf("blocks of %d and %d bytes (profile both with the same block size)", before.Block, after.Block)
	}
	r := &DiffReport{Before: Survey(before), After: Survey(after), By: by}
	if note := clocksDiffer(before, after); note != "" {
		r.Notes = append(r.Notes, note)
	}
	if a, b := cacheList(before), cacheList(after); a != b && a != "" && b != "" && !sameSizes(before, after) {
		r.Notes = append(r.Notes, fmt.Sprintf("the profiles count misses for different caches, %s and %s: the table has all of these sizes, but of pairs the misses of one cache are compared with those of another (profile both with the same --caches)", a, b))
	}
	if err := r.compareCaches(before, after, sizes, o); err != nil {
		return nil, err
	}
	return r, r.comparePairs(before, after, by)
}

// clocksDiffer says what it means that they do, "" where they do not. Rates of two sessions are never quite the same.
func clocksDiffer(before, after *model.Profile) string {
	a, z := &before.Clock, &after.Clock
	const notable = 1.1
	switch {
	case before.ExactDistances != after.ExactDistances:
		return "one of the two is exact, the other sampled: rdx compare says how near a sampled profile comes to the exact one"
	case a.Name != z.Name || a.Unit != z.Unit:
		return fmt.Sprintf("the clocks differ, %s in %s and %s in %s: what looks like a change may be one of the clock; profile both with the same --clock and --source", a.Name, a.Unit, z.Name, z.Unit)
	case max(a.Rate, z.Rate) > notable*min(a.Rate, z.Rate):
		return fmt.Sprintf("the access rates differ, %.3g and %.3g per %s, and distances scale with them: if the program does what it did before, one of the two is wrong (--access-rate states it)", a.Rate, z.Rate, singular(a.Unit))
	}
	return ""
}

// sameSizes says whether both profiles count misses for caches of the same sizes, whatever these are called.
func sameSizes(a, b *model.Profile) bool {
	return slices.EqualFunc(a.Caches, b.Caches, func(x, y model.Cache) bool { return x.Size == y.Size })
}

// cacheList names a profile's caches with their sizes.
func cacheList(p *model.Profile) string {
	var all []string
	for _, c := range p.Caches {
		all = append(all, c.Level+" "+Bytes(float64(c.Size)))
	}
	return strings.Join(all, ", ")
}

// compareCaches compares the miss ratios at the given sizes, or those of both
// profiles' caches, or the powers of four.
func (r *DiffReport) compareCaches(before, after *model.Profile, sizes []string, o model.CurveOptions) error {
	levels := map[uint64]string{}
	for _, p := range []*model.Profile{before, after} {
		for _, c := range p.Caches {
			if s := uint64(max(c.Size, 0)); s >= uint64(p.Block) {
				levels[s] = c.Level
			}
		}
	}
	if len(sizes) == 0 {
		for s := range levels {
			sizes = append(sizes, strconv.FormatUint(s, 10))
		}
		for s := uint64(16 << 10); len(levels) == 0 && s <= 64<<20; s *= 4 {
			sizes = append(sizes, strconv.FormatUint(s, 10))
		}
	}
	a, err := NewMissCurve(before, sizes, o)
	if err != nil {
		return err
	}
	b, err := NewMissCurve(after, sizes, o)
	if err != nil {
		return err
	}
	for i, q := range b.Points {
		c := diffCache{Level: levels[q.Bytes], Bytes: q.Bytes, Note: q.Note, changedShare: changeOf(a.Points[i].raw.Estimate(), q.raw.Estimate())}
		if c.Note == "" {
			c.Note = a.Points[i].Note
		}
		r.Caches = append(r.Caches, c)
	}
	return nil
}

// comparePairs compares the share of the accesses that each pair of functions
// has of the metric.
func (r *DiffReport) comparePairs(before, after *model.Profile, by string) error {
	type key struct{ use, reuse string }
	type side struct {
		records []*model.Record
		seen    int64
		ends    [2]float64 // the value at the profile's ends
	}
	pairs := map[key]*[2]side{}
	var ms [2]metric
	var err error
	for i, p := range []*model.Profile{before, after} {
		if ms[i], err = FindMetric(p, by); err != nil && !isCache(after, by) && !isCache(before, by) {
			return err
		}
	}
	for i, p := range []*model.Profile{before, after} {
		if ms[i].Value == nil { // of a cache that only the other one calls so
			if ms[i], err = sameCache(ms[1-i], []*model.Profile{after, before}[i], p); err != nil {
				return err
			}
		}
	}
	if by == "misses" && ms[0].Name != ms[1].Name {
		// The last level that is more than chance in one only: take the smaller.
		small := 0
		if after.Quotable() < before.Quotable() {
			small = 1
		}
		if ms[1-small], err = sameCache(ms[small], []*model.Profile{before, after}[small], []*model.Profile{before, after}[1-small]); err != nil {
			return err
		}
	}
	if ms[0].unit != "count" {
		return BadInput(fmt.Errorf("--by %s is no share of the accesses: use misses, reuses, accesses or a cache level", by))
	}
	r.By, r.title = ms[1].Name, ms[1].title
	if ms[0].title != ms[1].title {
		return fmt.Errorf("%s against %s (use --by)", ms[0].title, ms[1].title)
	}
	totals := [2]side{}
	keyOf := func(q *Pair) key {
		k := key{diffName(q.Use), diffName(q.Reuse)}
		if q.Kind == "invalidated" {
			k.reuse = "[invalidated by] " + k.reuse
		}
		return k
	}
	for i, p := range []*model.Profile{before, after} {
		for _, q := range Pairs(p, ms[i].Value) {
			k := keyOf(q)
			g := pairs[k]
			if g == nil {
				g = &[2]side{}
				pairs[k] = g
			}
			g[i].records = append(g[i].records, q.records...)
			g[i].seen += q.Observations
			totals[i].records = append(totals[i].records, q.records...)
		}
	}
	var holds [2]int64
	for i, p := range []*model.Profile{before, after} {
		holds[i] = p.Holds()
		short, long, err := p.Ends()
		if err != nil {
			return err
		}
		for k, end := range []*model.Profile{short, long} {
			all, total := grouped(end, ms[i].Value)
			for _, q := range all {
				if g := pairs[keyOf(q)]; g != nil {
					g[i].ends[k] += q.Value
				}
			}
			totals[i].ends[k] = total
		}
	}
	estimate := func(i int, s *side, alpha float64) model.Estimate {
		o, p := []*overview{r.Before, r.After}[i], []*model.Profile{before, after}[i]
		return reaching(p.PerAccess(s.records, ms[i].Value, o.Accesses, holds[i], alpha), s.ends[0]/o.Accesses, s.ends[1]/o.Accesses)
	}
	r.Total = changeOf(estimate(0, &totals[0], 0.05), estimate(1, &totals[1], 0.05))
	r.All = len(pairs)
	for k, g := range pairs {
		alpha := 0.05 / float64(r.All) // Bonferroni: one wrong star in 20 whole lists
		p := &diffPair{Use: k.use, Reuse: k.reuse, Seen: [2]int64{g[0].seen, g[1].seen}, records: [2][]*model.Record{g[0].records, g[1].records}}
		p.changedShare = changeOf(estimate(0, &g[0], alpha), estimate(1, &g[1], alpha))
		r.Pairs = append(r.Pairs, p)
	}
	slices.SortFunc(r.Pairs, func(a, b *diffPair) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Change.Value), math.Abs(a.Change.Value)), strings.Compare(a.Use, b.Use), strings.Compare(a.Reuse, b.Reuse))
	})
	return nil
}

// reaching is the estimate with a band that also has what it is at two ends.
func reaching(e model.Estimate, ends ...float64) model.Estimate {
	e.Low = e.Value - math.Hypot(e.Value-e.Low, max(e.Value-slices.Min(ends), 0))
	e.High = e.Value + math.Hypot(e.High-e.Value, max(slices.Max(ends)-e.Value, 0))
	return e
}

// isCache says whether a profile has a cache of that name.
func isCache(p *model.Profile, name string) bool {
	return slices.ContainsFunc(p.Caches, func(c model.Cache) bool { return strings.EqualFold(c.Level, name) })
}

// sameCache is the metric of a cache of one profile in another one: by its name, or else by its size, as rdx exact --caches has
// names of its own.
func sameCache(m metric, from, in *model.Profile) (metric, error) {
	if isCache(in, m.Name) {
		return FindMetric(in, m.Name)
	}
	for _, c := range from.Caches {
		for _, d := range in.Caches {
			if strings.EqualFold(c.Level, m.Name) && c.Size == d.Size {
				same, err := FindMetric(in, strings.ToLower(d.Level))
				same.Name, same.title = m.Name, m.title
				return same, err
			}
		}
	}
	return metric{}, BadInput(fmt.Errorf("pairs by their misses: the profiles have no cache in common, %s and %s: make both with the same --caches, or use --by reuses or --by accesses", cacheList(from), cacheList(in)))
}

// diffName is what a place is matched by.
func diffName(p place) string { return Printable(Shorten(p.Function, 60)) }

func (r *DiffReport) Table() [][]string {
	rows := [][]string{{"what", "use", "reuse", "bytes", "before", "before_low", "before_high", "after", "after_low", "after_high",
		"change", "change_low", "change_high", "significant", "note", "waits_before", "waits_after"}}
	add := func(what, use, reuse, bytes string, c changedShare, note string, waits [2]*float64) {
		fields := []string{what, use, reuse, bytes}
		for _, b := range []band{c.Before, c.After, c.Change} {
			fields = append(fields, Float(b.Value), Float(b.Low), Float(b.High))
		}
		rows = append(rows, append(fields, strconv.FormatBool(c.Significant), note, FloatOr(waits[0]), FloatOr(waits[1])))
	}
	for _, c := range r.Caches {
		add("miss ratio", "", "", Whole(c.Bytes), c.changedShare, c.Note, [2]*float64{})
	}
	all := [2]*float64{}
	for i, w := range r.Waits {
		if w != nil {
			all[i] = &w.Value
		}
	}
	add(r.title, "", "", "", r.Total, "", all)
	for _, p := range r.Pairs {
		add(r.title, p.Use, p.Reuse, "", p.changedShare, "", p.Waits)
	}
	return rows
}

func (r *DiffReport) Text() string {
	var b strings.Builder
	for _, side := range []struct {
		name string
		o    *overview
	}{{"before", r.Before}, {"after", r.After}} {
		command := side.o.Command
		if command == "" {
			command = "(unknown)"
		}
		wrap(&b, side.name, fmt.Sprintf("%s: %s of %s accesses in %s", Shorten(command, 200), Plural(side.o.Observations, "observation"), Amount(side.o.Accesses), Nanoseconds(side.o.Seconds*1e9)))
		for _, m := range side.o.Warnings {
			wrap(&b, "! ", side.name+": "+m)
		}
	}
	for _, m := range r.Notes {
		wrap(&b, "! ", m)
	}
	if a, z := r.Waits[0], r.Waits[1]; a != nil && z != nil {
		wrap(&b, "waits", fmt.Sprintf("for data %s of the CPU time before (95%% band %.0f to %.0f), %s after (%.0f to %.0f)",
			WholePercent(a.Value), 100*a.Low, 100*a.High, WholePercent(z.Value), 100*z.Low, 100*z.High))
	}
	fmt.Fprintf(&b, "\nmiss ratio, %% of accesses; * where the change is not chance\n\n%15s %8s %8s %8s  %s\n", "", "before", "after", "change", "95 % confidence")
	for _, c := range r.Caches {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-5s %9s %s  %s", c.Level, Bytes(float64(c.Bytes)), c.changedShare, c.Note), " ") + "\n")
	}
	head := ""
	waits := func(before, after *float64) string { return "" }
	if r.Waits != [2]*band{} {
		head = fmt.Sprintf(" %13s", "waits, % time")
		waits = func(before, after *float64) string {
			return fmt.Sprintf(" %6s %6s", shareOr(before), shareOr(after))
		}
	}
	all := func(i int) *float64 {
		if r.Waits[i] == nil {
			return nil
		}
		return &r.Waits[i].Value
	}
	fmt.Fprintf(&b, "\n%s, %% of accesses; %d of %d use -> reuse pairs of functions\n\n%15s %8s %8s %8s  %-16s%s\n", r.title, len(r.Pairs), r.All, "seen", "before", "after", "change", "95 % for all", head)
	fmt.Fprintf(&b, "%15s %s%s  all pairs\n", "", r.Total, waits(all(0), all(1)))
	for _, p := range r.Pairs {
		fmt.Fprintf(&b, "%15s %s%s  %s\n%*s-> %s\n", fmt.Sprintf("%d, %d", p.Seen[0], p.Seen[1]), p.changedShare, waits(p.Waits[0], p.Waits[1]), p.Use, 62+len(head), "", p.Reuse)
	}
	return b.String()
}

// String is the columns before, after, change and its band.
func (c changedShare) String() string {
	star := " "
	if c.Significant {
		star = "*"
	}
	return fmt.Sprintf("%8.2f %8.2f %+8.2f%s [%+6.2f, %+6.2f]", 100*c.Before.Value, 100*c.After.Value, 100*c.Change.Value, star, 100*c.Change.Low, 100*c.Change.High)
}

// shareOr is a share in percent, or a dash.
func shareOr(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100**v)
}
