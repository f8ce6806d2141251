package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// An overview is what a reader must know of a profile before its details.
type overview struct {
	Command      string                 `json:"command"`
	Start        time.Time              `json:"start,omitzero"`
	Seconds      float64                `json:"seconds"`
	Source       string                 `json:"source"`
	Clock        string                 `json:"clock"`
	ClockUnit    string                 `json:"clock_unit"`
	AccessRate   float64                `json:"accesses_per_clock_unit"`
	RateSource   string                 `json:"access_rate_source"`
	Resolution   float64                `json:"resolution_clock_units"`
	Block        int                    `json:"block_bytes"`
	Stack        string                 `json:"stack,omitempty"` // that the figures are of: private or shared
	FalseUnknown bool                   `json:"false_sharing_unknown,omitempty"`
	Accesses     float64                `json:"accesses"` // that the observations stand for
	Observations int64                  `json:"observations"`
	Kinds        map[string]int64       `json:"observations_by_kind"`
	Lost         int64                  `json:"lost"`
	Losses       map[model.Reason]int64 `json:"losses"`
	Shares       model.Shares           `json:"shares"`
	Caches       []CacheMisses          `json:"caches"`
	Warnings     []string               `json:"warnings"`
	Remarks      []string               `json:"remarks"`

	// Full says that the text has all of it: without, it is two lines and the first warnings.
	Full bool `json:"-"`

	below       int64 // observations
	independent float64
	exact       bool // the profile is of rdx exact
}

type CacheMisses struct {
	Level     string  `json:"level"`
	Size      int64   `json:"bytes"`
	Misses    float64 `json:"misses"`
	MissRatio float64 `json:"miss_ratio"`
	// Low and High are the ends of the 95 % band, and Note why the ratio is not to be quoted, as of rdx mrc. Of several stacks
	// together there is none.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Note string  `json:"note,omitempty"`
	// UpperBound: too few observations were followed for as long as it takes to
	// fill such a cache; half of the misses and more may be hits.
	UpperBound bool `json:"upper_bound"`

	quote model.Quote
}

// Survey says what a profile is of, what was seen, and what limits it.
func Survey(p *model.Profile) *overview { return SurveyOf(p, nil) }

// SurveyOf is Survey where a curve of the profile is known, made by the default options: what it has at the sizes of the
// caches is not estimated again.
func SurveyOf(p *model.Profile, known *model.Curve) *overview {
	o := &overview{Command: p.Command, Start: p.Start, Seconds: p.Duration.Seconds(), Source: p.Source,
		Clock: p.Clock.Name, ClockUnit: p.Clock.Unit, AccessRate: p.Clock.Rate, RateSource: p.Clock.RateSource,
		Resolution: p.Clock.Resolution, Block: p.Block, Kinds: map[string]int64{}, Losses: map[model.Reason]int64{}, Remarks: p.Comments,
		Shares: p.Shares(), exact: p.ExactDistances}
	stacks := p.StackKinds()
	if len(stacks) == 1 && stacks[0] != model.StackOwn {
		o.Stack = stacks[0].String()
	}
	misses := make([]float64, len(p.Caches))
	var unnamed int64
	var kinds [model.NumKinds]int64
	var seen [model.NumKinds]bool // some of none
	var last *model.Location      // records of one use follow each other
	named := true
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Lost {
			o.Lost += r.Observations
			o.Losses[model.EndUnknown] += r.Observations
			continue
		}
		o.Observations += r.Observations
		if r.Kind < model.NumKinds {
			kinds[r.Kind], seen[r.Kind] = kinds[r.Kind]+r.Observations, true
		}
		o.Accesses += r.Accesses
		for k, m := range r.Misses {
			misses[k] += m
		}
		if r.BelowResolution {
			o.below += r.Observations
		}
		if len(r.Use) == 0 {
			continue
		}
		if l := r.Use[0]; l != last {
			last, named = l, len(l.Lines) > 0
		}
		if !named {
			unnamed += r.Observations
		}
	}
	for k, n := range kinds {
		if seen[k] {
			o.Kinds[model.Kind(k).String()] = n
		}
	}
	for _, c := range p.Counts {
		if reason, ok := model.LostBecause.Why(c.Name); ok {
			o.Lost += c.N
			o.Losses[reason] += c.N
		}
	}
	maybe := maybeHits(p, known)
	for k, c := range p.Caches {
		m := CacheMisses{Level: c.Level, Size: c.Size, Misses: misses[k], UpperBound: maybe[k] > misses[k]/2}
		if o.Accesses > 0 {
			m.MissRatio = misses[k] / o.Accesses
		}
		m.Low, m.High = m.MissRatio, m.MissRatio
		o.Caches = append(o.Caches, m)
	}
	o.band(p, known, len(stacks))
	o.FalseUnknown = p.CountOf(model.FalseSharingUnknown) > 0 && p.CountOf(model.JoinedHolds) == 0 && o.Kinds[model.FalseSharing.String()] == 0
	o.independent = p.Independent(o.Observations)
	o.warn(p, unnamed)
	return o
}

// maybeHits is Profile.MaybeHits, of the curve where that is known.
func maybeHits(p *model.Profile, known *model.Curve) []float64 {
	if known != nil && len(known.MaybeHits) == len(p.Caches) {
		return known.MaybeHits
	}
	maybe, err := p.MaybeHits()
	if err != nil { // a broken profile, which other commands report
		return make([]float64, len(p.Caches))
	}
	return maybe
}

// band takes the ratios and bands of rdx mrc, where there is one stack: one number has one value.
func (o *overview) band(p *model.Profile, known *model.Curve, stacks int) {
	if stacks > 1 || p.Block <= 0 || len(p.Caches) == 0 {
		return
	}
	var sizes []uint64
	for _, c := range p.Caches {
		sizes = append(sizes, uint64(max(c.Size, 0))/uint64(p.Block))
	}
	points, ok := pointsAt(known, sizes)
	if !ok {
		curve, err := p.MissRatios(sizes, model.CurveOptions{})
		if err != nil {
			return // a profile without observations, of which other lines tell
		}
		points = curve.Points
	}
	for i, q := range points {
		c := &o.Caches[i]
		c.MissRatio, c.Low, c.High, c.Note = q.MissRatio, q.Low, q.High, q.Quote.String()
		c.quote = q.Quote
	}
}

// pointsAt are those of a curve, which may be nil, at all of the sizes in blocks.
func pointsAt(c *model.Curve, sizes []uint64) (points []model.Point, ok bool) {
	if c == nil {
		return nil, false
	}
	for _, s := range sizes {
		i := slices.IndexFunc(c.Points, func(q model.Point) bool { return q.Blocks == s })
		if i < 0 {
			return nil, false
		}
		points = append(points, c.Points[i])
	}
	return points, true
}

// warn says in plain words what limits the figures.
func (o *overview) warn(p *model.Profile, unnamed int64) {
	add := func(format string, args ...any) { o.Warnings = append(o.Warnings, fmt.Sprintf(format, args...)) }
	n := float64(o.Observations)
	o.warnUnheld(p)
	children := time.Duration(p.CountOf(model.CPUChildren))
	if children > 0 {
		add("child processes ran for %v, and were not profiled: --follow profiles them, too", children.Round(time.Millisecond))
	}
	if o.Observations == 0 {
		add("%s", o.nothing(p))
		return
	}
	o.warnUnnamed(p, unnamed)
	share := func(k int64) string { return Percent(float64(k), n) }
	if o.independent < 1000 {
		of := ""
		if o.independent < n {
			of = ", which tell as much as " + Plural(int64(math.Round(o.independent)), "independent one")
		}
		add("only %s%s: differences below %s are chance; %s", Plural(o.Observations, "observation"), of, Percent(min(10/o.independent, 1), 1), moreSamples(p))
	}
	for _, c := range o.Caches {
		if c.UpperBound {
			add("too few of the accesses not reused soon were watched until %s is full: from there on predicted misses are upper bounds; profile longer", c.Level)
			break
		}
	}
	for _, c := range p.Caches {
		if c.Assumed {
			add("this machine does not tell the size of %s: %s is assumed; if you know it, name all sizes with --caches, or read rdx mrc, which has every size", c.Level, Bytes(float64(c.Size)))
		}
	}
	if p.Clock.RateIs(model.EstimatedRate) && p.Clock.RateHigh > 0 {
		add("the access rate could not be measured: by a model of the processor it is %.2g to %.2g per %s, which is in the bands; numbers of accesses and distances scale with it (see rdx attach --access-rate)",
			p.Clock.RateLow, p.Clock.RateHigh, singular(p.Clock.Unit))
	}
	if p.Clock.RateIs(model.AssumedRate) {
		add("the access rate, %.3g per %s, is a default guess (see rdx attach --access-rate): all numbers of accesses, distances and misses scale with it",
			p.Clock.Rate, singular(p.Clock.Unit))
	}
	if line := lineSize(p); line > p.Block {
		add("reuse was measured per %d bytes, cache lines have %d: expect fewer misses than predicted where neighbours are used together (--granularity line)", p.Block, line)
	}
	if c := o.Kinds["censored"] + o.Kinds["pruned"]; float64(c) > 0.2*n {
		add("%s of the observations were cut off before a reuse: what lies beyond the longest reuse seen, %s accesses, counts as never reused; profile longer", share(c), Amount(float64(longestReuse(p))))
	}
	if float64(o.below) > 0.1*n {
		add("%s of the observations were reused sooner than the clock can tell, %s: nothing is known about times below that (--burst reads further ahead)", share(o.below), resolution(p))
	}
	if float64(o.Lost) > 0.01*(n+float64(o.Lost)) {
		advice := ""
		for reason := range o.Losses {
			if reason.NeedsRegister() {
				advice = lossAdvice(reason)
			}
		}
		add("%s of the samples were lost: %s%s", Percent(float64(o.Lost), n+float64(o.Lost)), o.topLosses(3), advice)
	}
	if left, all := p.CountOf(model.BlocksNotKept), p.CountOf(model.BlocksAllocated); float64(left) > 0.01*float64(all) {
		add("%d of %d allocated blocks were not kept, too many being in use: data in them are told by their mapping alone; profile a smaller input, or for a shorter time", left, all)
	}
	for _, c := range p.Counts {
		if (model.StackCut.Has(c.Name) || c.Name == model.StacksShortened) && float64(c.N) > 0.05*n {
			add("%d %s: callers are missing; build with -fno-omit-frame-pointer or unwind tables", c.N, c.Name)
		}
	}
	o.warnUnwatched(p)
	if k := p.CountOf(model.FalseSharingUnknown); o.FalseUnknown {
		add("false sharing is not known: of none of %d observations another word of the line could be watched (with --stack both and many threads: use --stack private)", k)
	}
}

// warnUnnamed says of how many uses there is no name, and why.
func (o *overview) warnUnnamed(p *model.Profile, unnamed int64) {
	n, why := float64(o.Observations), namesMissing(p)
	switch {
	case float64(unnamed) > 0.1*n:
		if len(why) == 0 {
			why = []string{"install debug packages, or build with -g"}
		}
		why[0] = Percent(float64(unnamed), n) + " of the uses have no function name: " + why[0]
	case float64(unnamed) <= 0.02*n:
		return
	}
	o.Warnings = append(o.Warnings, why...)
}

// Nothing says why a profile has no observations.
func Nothing(p *model.Profile) string { return Survey(p).nothing(p) }

func (o *overview) nothing(p *model.Profile) string {
	lost := o.Lost - o.Losses[model.NotAttached] // a process that is gone had no sample
	why := ""
	switch ran := time.Duration(p.CountOf(model.CPUTarget)); {
	case p.CountOf(model.CPUChildren) > 0 && lost == 0:
		why = fmt.Sprintf("the program itself ran for only %v of the time", ran.Round(10*time.Microsecond))
	case lost > 0:
		most, n := model.Reason(""), int64(0)
		for reason, k := range o.Losses {
			if reason != model.NotAttached && (k > n || k == n && reason < most) {
				most, n = reason, k
			}
		}
		why = fmt.Sprintf("all %d samples were lost, most to %q%s", lost, most, lossAdvice(most))
	case noSample(p) != "":
		why = noSample(p)
	case ran > 0 && ran < 100*time.Millisecond:
		why = fmt.Sprintf("the program ran for only %v of the time, it waits; profile it while it works, or longer", ran.Round(10*time.Microsecond))
	default:
		why = "no sample came; profile longer, or with a larger --overhead"
	}
	return "nothing was observed: " + why
}

// warnUnwatched says of how many observations the watchpoints tell nothing.
func (o *overview) warnUnwatched(p *model.Profile) {
	doubt := "were not watched in all threads"
	if kinds := p.StackKinds(); len(kinds) == 1 && kinds[0] == model.StackOwn {
		doubt = "have only what was read ahead of them"
	}
	for _, c := range p.Counts {
		if why, ok := model.NotWatched.Why(c.Name); ok && float64(c.N) > 0.01*float64(o.Observations) {
			o.Warnings = append(o.Warnings, fmt.Sprintf("%d observations %s (%s): what comes later is known the less; profile longer", c.N, doubt, why))
		}
	}
}

// short is a session of a program that may well have no more time to give.
const short = 5 * time.Second

// moreSamples is how to get them.
func moreSamples(p *model.Profile) string {
	if p.Duration < short {
		return "profile longer, or with more --overhead"
	}
	return "profile longer"
}

// warnUnheld says how much of the CPU time no sample could come from, and whether more was spent than a share of it.
func (o *overview) warnUnheld(p *model.Profile) {
	for _, c := range p.Comments {
		switch {
		case model.CommentKind(model.NothingWatched).Of(c) && o.Observations > 0:
			o.Warnings = append(o.Warnings, c+": ratios of caches that hold more than was read ahead are bounds (--burst 100000 reads further, and holds threads for 10 ms or more)")
		case model.CommentKind(model.BudgetRaised).Of(c):
			o.Warnings = append(o.Warnings, c)
		}
	}
	masked, waiting := float64(p.CountOf(model.CPUMasked)), float64(p.CountOf(model.CPUWaiting))
	all := masked + waiting + float64(p.CountOf(model.CPUSampled))
	if masked > 0.001*all {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%s of CPU time (%s) was not sampled, of threads that block all signals: --interrupt samples them, at a risk (docs/explanation/safety.md, item 13)", Nanoseconds(masked), Percent(masked, all)))
	}
	if waiting > 0.001*all {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%s of CPU time (%s) was not sampled, of threads that block all signals and had waited within 10 ms: to interrupt them would not be safe (docs/explanation/safety.md, item 13)", Nanoseconds(waiting), Percent(waiting, all)))
	}
}

func singular(unit string) string { return strings.TrimSuffix(unit, "s") }

func lineSize(p *model.Profile) int {
	line := 0
	for _, c := range p.Caches {
		line = max(line, c.Line)
	}
	return line
}

func longestReuse(p *model.Profile) uint64 {
	var t uint64
	for i := range p.Records {
		if p.Records[i].Kind == model.Reuse {
			t = max(t, p.Records[i].Time)
		}
	}
	return t
}

// resolution is the clock's, in its unit and in accesses.
func resolution(p *model.Profile) string {
	accesses := Amount(p.Clock.Resolution*p.Clock.Rate) + " accesses"
	if p.Clock.Unit == "nanoseconds" {
		return Nanoseconds(p.Clock.Resolution) + " or " + accesses
	}
	return accesses
}

func (o *overview) topLosses(n int) string {
	var reasons []model.Reason
	for r := range o.Losses {
		reasons = append(reasons, r)
	}
	slices.SortFunc(reasons, func(a, b model.Reason) int {
		if d := o.Losses[b] - o.Losses[a]; d != 0 {
			return int(min(max(d, -1), 1))
		}
		return cmp.Compare(a, b)
	})
	more := ""
	if len(reasons) > n {
		reasons, more = reasons[:n], ", ..."
	}
	said := make([]string, len(reasons))
	for i, r := range reasons {
		said[i] = fmt.Sprintf("%s (%d)", r, o.Losses[r])
	}
	return strings.Join(said, ", ") + more
}

// mostWarnings of an overview that is not full.
const mostWarnings = 3

// WriteOverview prints it in 80 columns: in two lines and the first warnings, or all of it.
func WriteOverview(w io.Writer, o *overview) error {
	var b strings.Builder
	if o.Full {
		o.writeFull(&b)
	} else {
		o.writeBrief(&b)
	}
	warnings := slices.Clone(o.Warnings)
	for _, m := range o.Remarks { // the others are for --format json and pprof -comments
		if model.LimitsFigures(m) {
			warnings = append(warnings, m+remedy(m))
		}
	}
	left := 0
	if !o.Full && len(warnings) > mostWarnings {
		left = len(warnings) - mostWarnings
		warnings = warnings[:mostWarnings]
	}
	for _, m := range warnings {
		wrap(&b, "! ", m)
	}
	if left > 0 {
		fmt.Fprintf(&b, "! and %d more: -v\n", left)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeBrief says in a line what was seen of what, and in another what it is predicted to miss.
func (o *overview) writeBrief(b *strings.Builder) {
	command := o.Command
	if command == "" {
		command = "(unknown)"
	}
	seen := "nothing observed"
	if o.Observations > 0 {
		seen = fmt.Sprintf("%s of %s accesses", Plural(o.Observations, "observation"), Amount(o.Accesses))
	}
	seen = fmt.Sprintf(" for %s: %s, %d lost", Nanoseconds(o.Seconds*1e9), seen, o.Lost)
	wrap(b, "", shortCommand(command, max(80-len(seen), 16))+seen)
	if o.Observations == 0 {
		return // they would say less than 100 %
	}
	var caches []string
	for _, c := range o.Caches {
		caches = append(caches, fmt.Sprintf("%s %s", c.Level, o.shortRatio(c)))
	}
	if len(caches) > 0 {
		stack := ""
		if o.Stack != "" {
			stack = o.Stack + " stack, "
		}
		wrap(b, "", stack+"predicted to miss "+strings.Join(caches, ", "))
	}
}

// shortRatio is missRatio in a word or two.
func (o *overview) shortRatio(c CacheMisses) string {
	low, ratio, high := Percent(c.Low, 1), Percent(c.MissRatio, 1), Percent(c.High, 1)
	switch {
	case c.Low == c.High:
		return ratio
	case c.quote == model.Quoted:
		return fmt.Sprintf("%s [%s, %s]", ratio, strings.TrimSuffix(low, "%"), strings.TrimSuffix(high, "%"))
	case c.quote == model.TooWide && low != high:
		return low + " to " + high
	}
	return atMost(high)
}

// A detailed report begins with overviews.
type detailed interface{ overviews() []*overview }

// Detail has a report say all of what it knows of its profiles.
func Detail(r Report) {
	if d, ok := r.(detailed); ok {
		for _, o := range d.overviews() {
			o.Full = true
		}
	}
}

// writeFull says all but the warnings.
func (o *overview) writeFull(b *strings.Builder) {
	row := func(key, value string) { wrap(b, fmt.Sprintf("%-13s", key), value) }
	command := o.Command
	if command == "" {
		command = "(unknown)"
	}
	row("command", Shorten(command, 300))
	when := ""
	if !o.Start.IsZero() {
		when = " from " + o.Start.Local().Format("2006-01-02 15:04:05")
	}
	row("duration", Nanoseconds(o.Seconds*1e9)+when)
	clock := fmt.Sprintf("%s in %s", o.Clock, o.ClockUnit)
	if o.ClockUnit != "accesses" {
		clock += fmt.Sprintf(", %.3g accesses per %s (%s)", o.AccessRate, singular(o.ClockUnit), o.RateSource)
	}
	row("clock", clock+", source "+o.Source)
	switch o.Stack {
	case model.StackPrivate.String():
		row("stack", "private: what another thread writes is gone")
	case model.StackShared.String():
		row("stack", "shared: a reuse is any thread's")
	}
	kinds := make([]string, 0, len(o.Kinds))
	for k := model.Reuse; k < model.Lost; k++ {
		if n := o.Kinds[k.String()]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
		}
	}
	if o.Observations == 0 {
		row("observations", fmt.Sprintf("none; lost %d", o.Lost))
	} else {
		row("observations", fmt.Sprintf("%d of %s accesses: %s; lost %d", o.Observations, Amount(o.Accesses), strings.Join(kinds, ", "), o.Lost))
	}
	if s := o.Shares; s.Exact > 0 {
		how := "reading ahead"
		if o.exact {
			how = "instrumentation"
		}
		row("rests on", fmt.Sprintf("%s counted by %s, %s timed, %s interpolated, %s never seen reused",
			Percent(s.Exact, 1), how, Percent(s.Timed, 1), Percent(s.Interpolated, 1), Percent(s.Unseen, 1)))
	}
	for _, c := range o.Caches {
		if o.Observations == 0 {
			break // they would say less than 100 %
		}
		row(fmt.Sprintf("%s %s", c.Level, Bytes(float64(c.Size))), o.missRatio(c))
	}
}

// remedy is what to do about a remark that limits the figures, where there is something.
func remedy(remark string) string {
	if model.CommentKind(model.FollowingProbes).Of(remark) {
		return " (--measure-rate=false does without, and foretells the rate)"
	}
	return ""
}

// share does not claim more than the number of observations allows.
func (o *overview) share(v float64) string {
	if least := 10 / max(o.independent, 10); v < least {
		return "less than " + Percent(least, 1)
	}
	return Percent(v, 1)
}

// missRatio says in words what is known of a cache's.
func (o *overview) missRatio(c CacheMisses) string {
	low, ratio, high := Percent(c.Low, 1), Percent(c.MissRatio, 1), Percent(c.High, 1)
	const missing = " of accesses predicted to miss"
	switch {
	case c.Low == c.High:
		return ratio + missing
	case c.quote == model.Quoted:
		return fmt.Sprintf("%s%s, 95%% band %s to %s", ratio, missing, low, high)
	case c.quote == model.TooWide:
		return fmt.Sprintf("between %s and %s%s: rate and distances are not known better", low, high, missing)
	}
	return atMost(high) + missing
}

// atMost is a bound in words.
func atMost(percent string) string {
	if less, ok := strings.CutPrefix(percent, "<"); ok {
		return "less than " + less
	}
	return "at most " + percent
}

// wrap prints text after a prefix, in lines of at most 80 columns that begin
// below its first letter.
func wrap(b *strings.Builder, prefix, text string) {
	const width = 80
	if len(prefix) < 3 {
		b.WriteString(prefix)
	} else {
		fmt.Fprintf(b, "%-13s", strings.TrimRight(prefix, " "))
		prefix = strings.Repeat(" ", max(13, len(strings.TrimRight(prefix, " "))))
	}
	at := len(prefix)
	for i, word := range strings.Fields(text) {
		if i > 0 && at+1+len(word) > width {
			b.WriteString("\n" + strings.Repeat(" ", len(prefix)))
			at = len(prefix)
		} else if i > 0 {
			b.WriteByte(' ')
			at++
		}
		b.WriteString(Printable(word))
		at += len(word)
	}
	b.WriteByte('\n')
}
