package pprofout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// combine merges the sessions of one file by the rules of the package
// documentation.
func combine(sessions []*session) (*model.Profile, error) {
	m := newMerged(&sessions[0].head)
	for _, s := range sessions {
		if err := m.add(s); err != nil {
			return nil, err
		}
	}
	return m.profile(), nil
}

// merged is what sessions have in common, so far.
type merged struct {
	p model.Profile // what one value stands for all of
	n int

	writers, commands, sources []string
	counts                     map[model.CountName]int64
	touched                    int64
	untold                     bool // of one, how much it has touched
	clock                      mergedClock

	// Weighted by observations:
	weight, period, effect float64
}

// mergedClock is of the clocks' rates, and of how long accesses wait; without another word sums of what is weighted by
// observations.
type mergedClock struct {
	sources                  []string
	rate, rateLow, rateHigh  float64
	intervals                bool // some rate's interval is known
	least, most              float64
	touches, plain, cold     float64
	wait, within, coldWithin float64 // the largest
	byRate                   float64 // of cold
	unknown                  bool    // of one, within what it waits
	waitsLow, waitsHigh      float64
	waitsError               float64 // the largest
	unmeasured               bool    // of one, how much slower it is than where nothing waits
}

func newMerged(first *model.Profile) *merged {
	m := &merged{p: *first, counts: map[model.CountName]int64{}, clock: mergedClock{least: math.Inf(1), most: math.Inf(-1)}}
	m.p.Counts, m.p.Comments, m.p.Duration = nil, nil, 0
	return m
}

// agrees says why a session can't be merged with those before.
func (m *merged) agrees(h *model.Profile) error {
	p := &m.p
	switch {
	case h.Clock.Name != p.Clock.Name || h.Clock.Unit != p.Clock.Unit:
		return fmt.Errorf("merged profiles have different clocks, %s in %s and %s in %s: read them one by one",
			p.Clock.Name, p.Clock.Unit, h.Clock.Name, h.Clock.Unit)
	case h.Block != p.Block:
		return fmt.Errorf("merged profiles have different blocks, %d and %d bytes: read them one by one", p.Block, h.Block)
	case h.ExactDistances != p.ExactDistances:
		return fmt.Errorf("merged profiles have exact and derived stack distances: read them one by one")
	case !slices.Equal(h.Caches, p.Caches):
		return fmt.Errorf("merged profiles are of machines with different caches, %v and %v: read them one by one", p.Caches, h.Caches)
	case h.Duration > math.MaxInt64-p.Duration:
		return fmt.Errorf("durations of merged profiles add up to more than 292 years")
	}
	return nil
}

func (m *merged) add(s *session) error {
	h, p := &s.head, &m.p
	if err := m.agrees(h); err != nil {
		return err
	}
	m.n++
	if !h.Start.IsZero() && (p.Start.IsZero() || h.Start.Before(p.Start)) {
		p.Start = h.Start
	}
	p.Duration += h.Duration
	p.BinsPerOctave = min(p.BinsPerOctave, h.BinsPerOctave)
	p.Resident = max(p.Resident, h.Resident)
	m.touched += h.Touched
	m.untold = m.untold || h.Touched == 0
	if err := m.addWords(h); err != nil {
		return err
	}
	w := float64(max(s.observations, 1))
	m.weight += w
	m.period += w * h.Period
	m.effect += w * h.DesignEffect
	p.Clock.Resolution = max(p.Clock.Resolution, h.Clock.Resolution)
	p.Clock.Misplaced = max(p.Clock.Misplaced, h.Clock.Misplaced)
	m.clock.add(&h.Clock, w)
	return nil
}

// addWords adds what a session is called, counts by their names, and comments.
func (m *merged) addWords(h *model.Profile) error {
	if h.Writer != "" {
		m.writers = appendNew(m.writers, h.Writer)
	}
	m.commands = appendNew(m.commands, h.Command)
	m.sources = appendNew(m.sources, h.Source)
	for _, c := range h.Counts {
		if c.N > math.MaxInt64-m.counts[c.Name] {
			return fmt.Errorf("counts %q of merged profiles overflow", c.Name)
		}
		m.counts[c.Name] += c.N
	}
	for _, c := range h.Comments {
		m.p.Comments = appendNew(m.p.Comments, c)
	}
	return nil
}

// add adds a session's clock, of a weight.
func (m *mergedClock) add(c *model.Clock, w float64) {
	m.sources = appendNew(m.sources, c.RateSource)
	m.rate += w * c.Rate
	if c.RateHigh > 0 {
		m.rateLow, m.rateHigh, m.intervals = m.rateLow+w*c.RateLow, m.rateHigh+w*c.RateHigh, true
	} else {
		m.rateLow, m.rateHigh = m.rateLow+w*c.Rate, m.rateHigh+w*c.Rate
	}
	m.least, m.most = min(m.least, c.Rate), max(m.most, c.Rate)
	m.touches += w * c.Touches
	m.plain += w * c.PlainNS
	m.cold, m.byRate = m.cold+w*c.ColdNS, m.byRate+w*c.ColdNS*c.ColdByRate
	m.wait, m.within, m.coldWithin = max(m.wait, c.WaitNS), max(m.within, c.WaitWithin), max(m.coldWithin, c.ColdWithin)
	m.waitsLow, m.waitsHigh, m.waitsError = m.waitsLow+w*c.WaitsLow, m.waitsHigh+w*c.WaitsHigh, max(m.waitsError, c.WaitsError)
	m.unmeasured = m.unmeasured || c.WaitsError == 0
	m.unknown = m.unknown || c.WaitNS > 0 && c.WaitWithin == 0
}

// profile is of all that were added.
func (m *merged) profile() *model.Profile {
	p := &m.p
	if p.Touched = m.touched; m.untold || m.touched < 0 {
		p.Touched = 0
	}
	if m.n > 1 {
		p.Writer = strings.Join(m.writers, " + ")
		p.Command = strings.Join(m.commands, " + ")
		p.Source = strings.Join(m.sources, " + ")
		p.Period, p.DesignEffect = m.period/m.weight, m.effect/m.weight
		p.Comments = append(p.Comments, fmt.Sprintf(model.MergedFrom+" %d sessions", m.n))
		m.clock.mean(&p.Clock, m.weight)
		if m.clock.least != m.clock.most {
			p.Comments = append(p.Comments, fmt.Sprintf(model.RatesDiffer+", %s to %s: each sample keeps its own, the clock's is their mean weighted by observations",
				formatFloat(m.clock.least), formatFloat(m.clock.most)))
		}
	}
	for name, n := range m.counts {
		p.Counts = append(p.Counts, model.Count{Name: name, N: n})
	}
	sortCounts(p.Counts)
	return p
}

// mean makes of the sums a clock.
func (m *mergedClock) mean(c *model.Clock, weight float64) {
	c.RateSource = strings.Join(m.sources, model.MergedSources)
	if m.least != m.most {
		c.Rate = m.rate / weight
	}
	if m.intervals { // each session's interval: what they have in common does not become less
		c.RateLow, c.RateHigh = m.rateLow/weight, m.rateHigh/weight
	}
	c.Touches = m.touches / weight
	c.PlainNS, c.WaitNS, c.WaitWithin = m.plain/weight, m.wait, m.within
	if m.unknown {
		c.WaitWithin = 0
	}
	c.WaitsLow, c.WaitsHigh, c.WaitsError = m.waitsLow/weight, m.waitsHigh/weight, m.waitsError
	if m.unmeasured {
		c.WaitsLow, c.WaitsHigh, c.WaitsError = 0, 0, 0
	}
	c.ColdNS, c.ColdWithin = m.cold/weight, m.coldWithin
	if c.ColdByRate = 0; m.cold > 0 {
		c.ColdByRate = m.byRate / m.cold
	}
}

func sortCounts(c []model.Count) {
	slices.SortFunc(c, func(a, b model.Count) int { return cmp.Compare(a.Name, b.Name) })
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
