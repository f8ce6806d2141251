package pprofout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rdx-profiler/rdx/model"
)

const formatVersion = "1"

// A session is what the comments of one written profile say: a profile
// without records.
type session struct {
	id           string
	head         model.Profile
	observations int64
	useOmitted   bool
}

var commentRx = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^rdx\[([0-9a-f]+)\] ([a-z_.]+)=(?s:(.*))$`)
})

// comments returns the lines of a session with an ID drawn from them and
// from the samples' digest, so that equal profiles give equal files.
func (s *session) comments(digest []byte) []string {
	p := &s.head
	var kv [][2]string
	add := func(key, value string) { kv = append(kv, [2]string{key, quote(value)}) }
	if p.Writer != "" {
		add("writer", p.Writer)
	}
	add("format", formatVersion)
	if !p.Start.IsZero() {
		add("start", p.Start.UTC().Format(time.RFC3339Nano))
	}
	add("duration", p.Duration.String())
	add("command", p.Command)
	add("source", p.Source)
	add("clock.name", p.Clock.Name)
	add("clock.unit", p.Clock.Unit)
	add("clock.rate", formatFloat(p.Clock.Rate))
	add("clock.rate_source", p.Clock.RateSource)
	if p.Clock.RateHigh > 0 {
		add("clock.rate_low", formatFloat(p.Clock.RateLow))
		add("clock.rate_high", formatFloat(p.Clock.RateHigh))
	}
	if p.Clock.WaitNS > 0 {
		add("clock.plain_ns", formatFloat(p.Clock.PlainNS))
		add("clock.wait_ns", formatFloat(p.Clock.WaitNS))
	}
	if p.Clock.WaitWithin > 0 {
		add("clock.wait_within", formatFloat(p.Clock.WaitWithin))
	}
	if p.Clock.Misplaced > 0 {
		add("clock.misplaced", formatFloat(p.Clock.Misplaced))
	}
	if p.Clock.ColdNS > 0 {
		add("clock.cold_ns", formatFloat(p.Clock.ColdNS))
	}
	if p.Clock.ColdWithin > 0 {
		add("clock.cold_within", formatFloat(p.Clock.ColdWithin))
	}
	if p.Clock.Touches > 0 {
		add("clock.touches", formatFloat(p.Clock.Touches))
	}
	add("clock.resolution", formatFloat(p.Clock.Resolution))
	add("period", formatFloat(p.Period))
	add("block", strconv.Itoa(p.Block))
	add("bins_per_octave", strconv.Itoa(p.BinsPerOctave))
	if p.Resident > 0 {
		add("resident", strconv.FormatInt(p.Resident, 10))
	}
	if p.Touched > 0 {
		add("touched", strconv.FormatInt(p.Touched, 10))
	}
	if p.ExactDistances {
		add("distances", "exact")
	}
	for _, c := range p.Caches {
		add("cache", fmt.Sprintf("%s %d %d %d", c.Level, c.Size, c.Ways, c.Line))
		if c.Assumed {
			add("cache.assumed", c.Level)
		}
	}
	for i, c := range p.Costs {
		add("cost", fmt.Sprintf("%.3g %.3g %.3g", c.Waits, c.Streams, c.Apart))
		if c.Within > 0 {
			add("cost.within", fmt.Sprintf("%d %d", i, c.Within))
		}
	}
	for _, c := range p.CostsOn {
		add("cost_on", fmt.Sprintf("%d %.3g %.3g %.3g", c.Bytes, c.Waits, c.Streams, c.Apart))
	}
	add("observations", strconv.FormatInt(s.observations, 10))
	for _, c := range p.Counts {
		add("count", fmt.Sprintf("%d %s", c.N, text(string(c.Name)))) // text as in its sample
	}
	if s.useOmitted {
		add("use", "omitted")
	}
	for _, c := range p.Comments {
		add("comment", c)
	}

	h := sha256.New()
	h.Write(digest)
	for _, l := range kv {
		fmt.Fprintf(h, "%s=%s\n", l[0], l[1])
	}
	id := hex.EncodeToString(h.Sum(nil)[:6])
	lines := make([]string, len(kv))
	for i, l := range kv {
		lines[i] = fmt.Sprintf("rdx[%s] %s=%s", id, l[0], l[1])
	}
	return lines
}

func formatFloat(f float64) string {
	if f >= 1e-6 && f < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, 64) // easier to read
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func quote(v string) string {
	if !utf8.ValidString(v) || strings.HasPrefix(v, `"`) || strings.ContainsFunc(v, unicode.IsControl) {
		return strconv.Quote(v)
	}
	return v
}

func unquote(v string) (string, error) {
	if !strings.HasPrefix(v, `"`) {
		return v, nil
	}
	return strconv.Unquote(v)
}

// parseComments sorts a pprof file's comments into sessions, in order of
// appearance, and the remarks that other tools left.
func parseComments(lines []string) (sessions []*session, other []string, err error) {
	byID := map[string]*session{}
	for i, l := range lines {
		m := commentRx().FindStringSubmatch(l)
		if m == nil {
			other = append(other, l)
			continue
		}
		s := byID[m[1]]
		if s == nil {
			s = &session{id: m[1]}
			byID[m[1]] = s
			sessions = append(sessions, s)
		}
		value, err := unquote(m[3])
		if err == nil {
			err = s.set(m[2], value)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("comment %d, %.80q: %w", i+1, l, err)
		}
	}
	return sessions, other, nil
}

func (s *session) set(key, v string) error {
	p := &s.head
	var err error
	switch key {
	case "format":
		if v != formatVersion {
			err = fmt.Errorf("format %q%s is not known to this version of rdx, which reads format %s", v, writtenBy(p.Writer), formatVersion)
		}
	case "writer": // stands before all that another version may not read
		p.Writer = v
	case "start":
		p.Start, err = time.Parse(time.RFC3339Nano, v)
	case "duration":
		p.Duration, err = time.ParseDuration(v)
		if err == nil && p.Duration < 0 {
			err = fmt.Errorf("negative duration")
		}
	case "command":
		p.Command = v
	case "source":
		p.Source = v
	case "clock.name":
		p.Clock.Name = v
	case "clock.unit":
		p.Clock.Unit = v
	case "clock.rate":
		p.Clock.Rate, err = parseAmount(v)
	case "clock.rate_low":
		p.Clock.RateLow, err = parseAmount(v)
	case "clock.rate_high":
		p.Clock.RateHigh, err = parseAmount(v)
	case "clock.rate_source":
		p.Clock.RateSource = v
	case "clock.plain_ns":
		p.Clock.PlainNS, err = parseAmount(v)
	case "clock.wait_ns":
		p.Clock.WaitNS, err = parseAmount(v)
	case "clock.wait_within":
		p.Clock.WaitWithin, err = parseAmount(v)
	case "clock.misplaced":
		p.Clock.Misplaced, err = parseAmount(v)
	case "clock.cold_ns":
		p.Clock.ColdNS, err = parseAmount(v)
	case "clock.cold_within":
		p.Clock.ColdWithin, err = parseAmount(v)
	case "clock.touches":
		p.Clock.Touches, err = parseAmount(v)
	case "clock.resolution":
		p.Clock.Resolution, err = parseAmount(v)
	case "period":
		p.Period, err = parseAmount(v)
	case "block":
		p.Block, err = strconv.Atoi(v)
	case "bins_per_octave":
		p.BinsPerOctave, err = strconv.Atoi(v)
	case "resident":
		p.Resident, err = strconv.ParseInt(v, 10, 64)
	case "touched":
		p.Touched, err = strconv.ParseInt(v, 10, 64)
	case "design_effect": // of profiles whose samples have no hold
		p.DesignEffect, err = parseAmount(v)
	case "distances":
		p.ExactDistances = v == "exact"
	case "cache":
		var c model.Cache
		c, err = parseCache(v)
		p.Caches = append(p.Caches, c)
	case "cache.assumed":
		for i := range p.Caches {
			p.Caches[i].Assumed = p.Caches[i].Assumed || p.Caches[i].Level == v
		}
	case "cost":
		var c model.Cost
		c, err = parseCost(v)
		p.Costs = append(p.Costs, c)
	case "cost_on":
		p.CostsOn, err = appendCostOn(p.CostsOn, v)
	case "cost.within":
		err = parseWithin(v, p.Costs)
	case "observations":
		s.observations, err = strconv.ParseInt(v, 10, 64)
	case "count":
		n, name, ok := strings.Cut(v, " ")
		c := model.Count{Name: model.CountName(name)}
		if c.N, err = strconv.ParseInt(n, 10, 64); err == nil && (!ok || c.N < 0) {
			err = fmt.Errorf("want a number and a name")
		}
		p.Counts = append(p.Counts, c)
	case "use":
		s.useOmitted = v == "omitted"
	case "comment":
		p.Comments = append(p.Comments, v)
	default:
		// A key of a later version of this format adds what can be ignored.
	}
	return err
}

// writtenBy names the rdx that wrote a profile, if it is known.
func writtenBy(writer string) string {
	if writer == "" {
		return ""
	}
	return ", of rdx " + writer + ","
}

// parseAmount reads a finite number that is not negative.
func parseAmount(v string) (float64, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0, fmt.Errorf("%v is not a finite number >= 0", f)
	}
	return f, nil
}

func parseCache(v string) (model.Cache, error) {
	f := strings.Fields(v)
	if len(f) != 4 {
		return model.Cache{}, fmt.Errorf("want level, size, ways and line")
	}
	c := model.Cache{Level: f[0]}
	var err [3]error
	c.Size, err[0] = strconv.ParseInt(f[1], 10, 64)
	c.Ways, err[1] = strconv.Atoi(f[2])
	c.Line, err[2] = strconv.Atoi(f[3])
	for _, e := range err {
		if e != nil {
			return model.Cache{}, e
		}
	}
	return c, nil
}

// appendCostOn adds what accesses cost on data of one more size.
func appendCostOn(costs []model.Cost, v string) ([]model.Cost, error) {
	size, times, _ := strings.Cut(v, " ")
	c, err := parseCost(times)
	if err == nil {
		c.Bytes, err = strconv.ParseInt(size, 10, 64)
	}
	if n := len(costs); err == nil && (c.Bytes <= 0 || n > 0 && c.Bytes <= costs[n-1].Bytes) {
		err = fmt.Errorf("sizes that costs were measured on do not grow")
	}
	return append(costs, c), err
}

// combine merges the sessions of one file by the rules of the package
// documentation.
func combine(sessions []*session) (*model.Profile, error) {
	p := sessions[0].head
	p.Counts = nil
	p.Comments = nil
	p.Duration = 0
	touched, untold := int64(0), false
	counts := map[model.CountName]int64{}
	var writers, commands, sources, rateSources []string
	var weight, rate, rateLow, rateHigh, touches, plain, wait, within, coldWithin, cold, period, effect float64
	known, unknown := false, false // an interval of the rate, and how long accesses wait
	minRate, maxRate := math.Inf(1), math.Inf(-1)
	for _, s := range sessions {
		h := &s.head
		switch {
		case h.Clock.Name != p.Clock.Name || h.Clock.Unit != p.Clock.Unit:
			return nil, fmt.Errorf("merged profiles have different clocks, %s in %s and %s in %s: read them one by one",
				p.Clock.Name, p.Clock.Unit, h.Clock.Name, h.Clock.Unit)
		case h.Block != p.Block:
			return nil, fmt.Errorf("merged profiles have different blocks, %d and %d bytes: read them one by one", p.Block, h.Block)
		case h.ExactDistances != p.ExactDistances:
			return nil, fmt.Errorf("merged profiles have exact and derived stack distances: read them one by one")
		case !slices.Equal(h.Caches, p.Caches):
			return nil, fmt.Errorf("merged profiles are of machines with different caches, %v and %v: read them one by one", p.Caches, h.Caches)
		}
		if !h.Start.IsZero() && (p.Start.IsZero() || h.Start.Before(p.Start)) {
			p.Start = h.Start
		}
		if h.Duration > math.MaxInt64-p.Duration {
			return nil, fmt.Errorf("durations of merged profiles add up to more than 292 years")
		}
		p.Duration += h.Duration
		p.Clock.Resolution = max(p.Clock.Resolution, h.Clock.Resolution)
		p.BinsPerOctave = min(p.BinsPerOctave, h.BinsPerOctave)
		p.Resident = max(p.Resident, h.Resident)
		touched += h.Touched
		untold = untold || h.Touched == 0
		if h.Writer != "" {
			writers = appendNew(writers, h.Writer)
		}
		commands = appendNew(commands, h.Command)
		sources = appendNew(sources, h.Source)
		rateSources = appendNew(rateSources, h.Clock.RateSource)
		for _, c := range h.Counts {
			if c.N > math.MaxInt64-counts[c.Name] {
				return nil, fmt.Errorf("counts %q of merged profiles overflow", c.Name)
			}
			counts[c.Name] += c.N
		}
		for _, c := range h.Comments {
			p.Comments = appendNew(p.Comments, c)
		}
		w := float64(max(s.observations, 1))
		weight += w
		rate += w * h.Clock.Rate
		touches += w * h.Clock.Touches
		plain += w * h.Clock.PlainNS
		wait = max(wait, h.Clock.WaitNS)
		cold += w * h.Clock.ColdNS
		within, coldWithin, p.Clock.Misplaced = max(within, h.Clock.WaitWithin), max(coldWithin, h.Clock.ColdWithin), max(p.Clock.Misplaced, h.Clock.Misplaced)
		unknown = unknown || h.Clock.WaitNS > 0 && h.Clock.WaitWithin == 0
		if h.Clock.RateHigh > 0 {
			rateLow, rateHigh, known = rateLow+w*h.Clock.RateLow, rateHigh+w*h.Clock.RateHigh, true
		} else {
			rateLow, rateHigh = rateLow+w*h.Clock.Rate, rateHigh+w*h.Clock.Rate
		}
		period += w * h.Period
		effect += w * h.DesignEffect
		minRate, maxRate = min(minRate, h.Clock.Rate), max(maxRate, h.Clock.Rate)
	}
	if p.Touched = touched; untold || touched < 0 {
		p.Touched = 0
	}
	if n := len(sessions); n > 1 {
		p.Writer = strings.Join(writers, " + ")
		p.Command = strings.Join(commands, " + ")
		p.Source = strings.Join(sources, " + ")
		p.Clock.RateSource = strings.Join(rateSources, model.MergedSources)
		p.Period = period / weight
		p.Clock.Touches = touches / weight
		p.Clock.PlainNS, p.Clock.WaitNS = plain/weight, wait
		if p.Clock.ColdNS, p.Clock.ColdWithin, p.Clock.WaitWithin = cold/weight, coldWithin, within; unknown {
			p.Clock.WaitWithin = 0
		}
		if known { // each session's interval: what they have in common does not become less
			p.Clock.RateLow, p.Clock.RateHigh = rateLow/weight, rateHigh/weight
		}
		p.DesignEffect = effect / weight
		p.Comments = append(p.Comments, fmt.Sprintf(model.MergedFrom+" %d sessions", n))
		if minRate != maxRate {
			p.Clock.Rate = rate / weight
			p.Comments = append(p.Comments, fmt.Sprintf(model.RatesDiffer+", %s to %s: each sample keeps its own, the clock's is their mean weighted by observations",
				formatFloat(minRate), formatFloat(maxRate)))
		}
	}
	for name, n := range counts {
		p.Counts = append(p.Counts, model.Count{Name: name, N: n})
	}
	sortCounts(p.Counts)
	return &p, nil
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

// parseWithin reads up to how many bytes of data a cost holds, and its number.
func parseWithin(v string, costs []model.Cost) error {
	number, bytes, _ := strings.Cut(v, " ")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(costs) {
		return fmt.Errorf("want the number of a cost before it, and bytes")
	}
	costs[i].Within, err = strconv.ParseInt(bytes, 10, 64)
	if err == nil && costs[i].Within < 0 {
		err = fmt.Errorf("%s bytes: want 0 or more", bytes)
	}
	return err
}

// parseCost reads what an access costs; a writer may not know the third time.
func parseCost(v string) (c model.Cost, err error) {
	fields := strings.Fields(v)
	to := [...]*float64{&c.Waits, &c.Streams, &c.Apart}
	if len(fields) != 2 && len(fields) != len(to) {
		return c, fmt.Errorf("want two or three times")
	}
	for i, f := range fields {
		if *to[i], err = strconv.ParseFloat(f, 64); err == nil && !(*to[i] >= 0) {
			err = fmt.Errorf("time %s: want 0 or more", f)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}
