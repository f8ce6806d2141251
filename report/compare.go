package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// Comparison is what rdx compare prints. Shares and errors are fractions.
type Comparison struct {
	Live        *overview    `json:"live"`
	Exact       *overview    `json:"exact"`
	Scores      scorePair    `json:"scores"`
	Rate        *rateScore   `json:"access_rate,omitempty"` // nil where accesses were counted
	Pairs       pairScore    `json:"pairs"`
	PlaceScores []PlaceScore `json:"places"`
	NotReused   [2]float64   `json:"never_reused"` // of accesses: live, exact
	Cut         float64      `json:"live_cut_off"` // of the live observations
	Lost        float64      `json:"live_lost"`    // of the live samples
	Bars        []octaveBar  `json:"stack_distance"`
}

type scorePair struct {
	TimeL2   float64 `json:"reuse_time_l2"`
	TimeL10  float64 `json:"reuse_time_l10"`
	StackL2  float64 `json:"stack_distance_l2"`
	StackL10 float64 `json:"stack_distance_l10"`
	MissMean float64 `json:"miss_ratio_error_mean"`
	MissMax  float64 `json:"miss_ratio_error_max"`
}

type rateScore struct {
	Live   float64   `json:"live"` // accesses per unit of the clock
	Source string    `json:"source"`
	True   float64   `json:"true"`
	Error  float64   `json:"error"` // of Live, as a share of True
	Work   float64   `json:"work"`
	AtTrue scorePair `json:"scores_at_true_rate"`
}

type pairScore struct {
	By    string  `json:"by"`
	N     int     `json:"n"`
	Match float64 `json:"weight_matched"`
}

// octaveBar: From..To-1 bytes, shares of accesses.
type octaveBar struct {
	From  uint64  `json:"from_bytes"`
	To    uint64  `json:"to_bytes"`
	Live  float64 `json:"live"`
	Exact float64 `json:"exact"`
}

func NewComparison(live, exact *model.Profile, work float64, by string, n int, caches []string) (*Comparison, error) {
	switch {
	case live.ExactDistances && !exact.ExactDistances:
		return nil, BadInput(fmt.Errorf("the first profile is the exact one: name the live one first"))
	case !exact.ExactDistances:
		return nil, BadInput(fmt.Errorf("the second profile is no exact one (write one with rdx exact -o; for two sampled ones there is rdx diff)"))
	case live.Block != exact.Block:
		return nil, BadInput(fmt.Errorf("the live profile is of blocks of %d bytes, the exact one of %d: no score would mean anything (consider: rdx exact --block %[1]d -o)", live.Block, exact.Block))
	}
	c := &Comparison{Live: Survey(live), Exact: Survey(exact)}
	if c.Live.Observations == 0 || c.Exact.Observations == 0 {
		return nil, fmt.Errorf("a profile without observations")
	}
	var err error
	if c.Scores, err = scoresOf(live, exact); err != nil {
		return nil, err
	}
	if err := c.compareRates(live, exact, work); err != nil {
		return nil, err
	}
	if c.Pairs, err = matchPairs(live, exact, by, n); err != nil {
		return nil, err
	}
	if c.PlaceScores, err = matchPlaces(live, exact, c.Live.Observations, caches); err != nil {
		return nil, err
	}
	c.Lost = float64(c.Live.Lost) / float64(c.Live.Observations+c.Live.Lost)
	c.Cut = float64(c.Live.Kinds[model.Censored.String()]+c.Live.Kinds[model.Pruned.String()]) / float64(c.Live.Observations)
	return c, c.draw(live, exact)
}

func scoresOf(live, exact *model.Profile) (scorePair, error) {
	var h [2]struct{ times, stacks *model.Hist }
	for i, p := range []*model.Profile{live, exact} {
		var err error
		if h[i].times, err = p.Times(); err != nil {
			return scorePair{}, err
		}
		if h[i].stacks, err = p.Stacks(model.LogBins(10)); err != nil {
			return scorePair{}, err
		}
	}
	blocks := uint64(h[1].stacks.Cold)
	times, err := model.Score(h[1].times, h[0].times, blocks)
	if err != nil {
		return scorePair{}, err
	}
	stacks, err := model.Score(h[1].stacks, h[0].stacks, blocks)
	return scorePair{times.L2, times.L10, stacks.L2, stacks.L10, stacks.MissMean, stacks.MissMax}, err
}

// compareRates says what the rate should have been, and what would have come
// of it.
func (c *Comparison) compareRates(live, exact *model.Profile, work float64) error {
	cpu := live.CountOf(model.CPUSampled) + live.CountOf(model.CPUMasked) + live.CountOf(model.CPUWaiting)
	accesses := exact.CountOf(model.ExactAccesses)
	if live.Clock.Unit != "nanoseconds" || cpu == 0 || accesses == 0 || !(live.Clock.Rate > 0) {
		return nil
	}
	r := &rateScore{Live: live.Clock.Rate, Source: live.Clock.RateSource, True: work * float64(accesses) / float64(cpu), Work: work}
	r.Error = r.Live/r.True - 1
	var err error
	r.AtTrue, err = scoresOf(live.AtRate(r.True), exact)
	c.Rate = r
	return err
}

func matchPairs(live, exact *model.Profile, by string, n int) (pairScore, error) {
	var weights [2]map[string]float64
	var name string
	for i, p := range []*model.Profile{live, exact} {
		m, err := FindMetric(p, by)
		if err != nil {
			return pairScore{}, err
		}
		name = m.title
		weights[i] = map[string]float64{}
		for _, q := range Pairs(p, m.Value) {
			key := diffName(q.Use) + " -> " + diffName(q.Reuse)
			if q.Kind != model.Reuse.String() {
				key = diffName(q.Use) // the live one cannot tell cold from censored
			}
			weights[i][key] += q.Value
		}
	}
	return pairScore{name, n, model.WeightMatch(weights[1], weights[0], n)}, nil
}

// draw fills the chart and the mass that has no place in it.
func (c *Comparison) draw(live, exact *model.Profile) error {
	var h [2]*model.Hist
	for i, p := range []*model.Profile{live, exact} {
		var err error
		if h[i], err = p.Stacks(model.LogBins(1)); err != nil {
			return err
		}
		c.NotReused[i] = h[i].Cold / h[i].Total()
	}
	last := 0
	for i := range h[0].W {
		if h[0].W[i]+h[1].W[i] > 0 {
			last = i
		}
	}
	b := h[0].Bins
	for i := 0; i <= last; i++ {
		c.Bars = append(c.Bars, octaveBar{scaleUp(b.Lo(i), float64(live.Block)), scaleUp(b.Hi(i), float64(live.Block)),
			h[0].W[i] / h[0].Total(), h[1].W[i] / h[1].Total()})
	}
	return nil
}

func (c *Comparison) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return WriteJSON(w, c)
	case "csv":
		return c.writeCSV(w)
	}
	return c.writeText(w, HasUTF8())
}

// writeCSV writes one row a number; from and to are bytes of stack distance, from
// of what is matched by place the bytes of the cache.
func (c *Comparison) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	row := func(name, from, to string, v float64) {
		out.Write([]string{name, from, to, strconv.FormatFloat(v, 'g', -1, 64)})
	}
	scores := func(suffix string, s scorePair) {
		row("reuse_time_l2"+suffix, "", "", s.TimeL2)
		row("reuse_time_l10"+suffix, "", "", s.TimeL10)
		row("stack_distance_l2"+suffix, "", "", s.StackL2)
		row("stack_distance_l10"+suffix, "", "", s.StackL10)
		row("miss_ratio_error_mean"+suffix, "", "", s.MissMean)
		row("miss_ratio_error_max"+suffix, "", "", s.MissMax)
	}
	out.Write([]string{"quantity", "from", "to", "value"})
	scores("", c.Scores)
	if r := c.Rate; r != nil {
		row("access_rate", "", "", r.Live)
		row("access_rate_true", "", "", r.True)
		row("access_rate_error", "", "", r.Error)
		scores("_at_true_rate", r.AtTrue)
	}
	row("weight_matched", "", "", c.Pairs.Match)
	for _, q := range c.PlaceScores {
		row(fmt.Sprintf("places_matched_%.0f", 100*q.Cover), strconv.FormatInt(q.Cache, 10), "", q.Match)
		row(fmt.Sprintf("places_matched_by_chance_%.0f", 100*q.Cover), strconv.FormatInt(q.Cache, 10), "", q.Chance)
	}
	row("never_reused", "", "", c.NotReused[0])
	row("never_reused_exact", "", "", c.NotReused[1])
	row("live_cut_off", "", "", c.Cut)
	row("live_lost", "", "", c.Lost)
	for _, b := range c.Bars {
		from, to := strconv.FormatUint(b.From, 10), strconv.FormatUint(b.To, 10)
		row("live", from, to, b.Live)
		row("exact", from, to, b.Exact)
	}
	out.Flush()
	return out.Error()
}

func (c *Comparison) writeText(w io.Writer, utf8 bool) error {
	var b strings.Builder
	wrap(&b, "live", fmt.Sprintf("%s: %s of %s accesses in %s", Shorten(c.Live.Command, 200), Plural(c.Live.Observations, "observation"), Amount(c.Live.Accesses), Nanoseconds(c.Live.Seconds*1e9)))
	wrap(&b, "exact", fmt.Sprintf("%s: %s accesses to blocks of %d bytes", Shorten(c.Exact.Command, 200), Amount(c.Exact.Accesses), c.Exact.Block))
	for _, m := range c.Live.Warnings {
		wrap(&b, "! ", m)
	}
	head := fmt.Sprintf("\n%-32s %8s", "", "")
	columns := []scorePair{c.Scores}
	if r := c.Rate; r != nil {
		unit := singular(c.Live.ClockUnit)
		more := ""
		if r.Work != 1 {
			more = fmt.Sprintf(" %g times", r.Work)
		}
		hint := ""
		if r.Work == 1 && r.Error > 1 {
			hint = " (if it did more, say how many times by --work)"
		}
		wrap(&b, "access rate", fmt.Sprintf("%.3g per %s (%s); true %.3g, if the live run did%s the exact one's work: %+.0f%%%s", r.Live, unit, r.Source, r.True, more, 100*r.Error, hint))
		head = fmt.Sprintf("\n%-32s %8s %8s", "", "", "at true") + fmt.Sprintf("\n%-32s %8s %8s", "", "", "rate")
		columns = append(columns, r.AtTrue)
	}
	b.WriteString(strings.TrimRight(head, " ") + "\n")
	for _, row := range []struct {
		name  string
		value func(scorePair) float64
	}{
		{"reuse times in place, l2", func(s scorePair) float64 { return s.TimeL2 }},
		{"  l10", func(s scorePair) float64 { return s.TimeL10 }},
		{"stack distances in place, l2", func(s scorePair) float64 { return s.StackL2 }},
		{"  l10", func(s scorePair) float64 { return s.StackL10 }},
		{"miss ratio error, mean", func(s scorePair) float64 { return s.MissMean }},
		{"  greatest", func(s scorePair) float64 { return s.MissMax }},
	} {
		fmt.Fprintf(&b, "%-32s", row.name)
		for _, s := range columns {
			fmt.Fprintf(&b, " %8s", Percent(row.value(s), 1))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%-32s %8s  by %s\n", fmt.Sprintf("weight of the first %d pairs", c.Pairs.N), Percent(c.Pairs.Match, 1), c.Pairs.By)
	fmt.Fprintf(&b, "%-32s %8s  exactly %s\n", "never reused", Percent(c.NotReused[0], 1), Percent(c.NotReused[1], 1))
	fmt.Fprintf(&b, "%-32s %8s  of the live observations; lost %s\n", "cut off before a reuse", Percent(c.Cut, 1), Percent(c.Lost, 1))
	writePlaces(&b, c.PlaceScores, c.Live.Observations)

	const width = 21
	fmt.Fprintf(&b, "\nstack distance, share of accesses\n\n%-21s %-29s  %s\n", "", "live", "exact")
	greatest := max(c.NotReused[0], c.NotReused[1])
	for _, q := range c.Bars {
		greatest = max(greatest, q.Live, q.Exact)
	}
	draw := func(label string, live, exact float64) {
		bar := BarOf(live, greatest, width, utf8)
		line := fmt.Sprintf("%-21s %6s %s%s  %6s %s", label, Percent(live, 1), bar, strings.Repeat(" ", width+1-len([]rune(bar))), Percent(exact, 1), BarOf(exact, greatest, width, utf8))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, q := range c.Bars {
		draw(fmt.Sprintf("%9s - %9s", Bytes(float64(q.From)), Bytes(float64(q.To))), q.Live, q.Exact)
	}
	draw("never seen reused", c.NotReused[0], c.NotReused[1])
	_, err := io.WriteString(w, b.String())
	return err
}
