package pprofout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
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
	addClock(add, &p.Clock)
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
	addMachine(add, p)
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
	return signed(kv, digest)
}

// adding adds a line to those of a session.
type adding func(key, value string)

// addClock adds what is known of a clock.
func addClock(add adding, c *model.Clock) {
	add("clock.name", c.Name)
	add("clock.unit", c.Unit)
	add("clock.rate", formatFloat(c.Rate))
	add("clock.rate_source", c.RateSource)
	if c.RateHigh > 0 {
		add("clock.rate_low", formatFloat(c.RateLow))
		add("clock.rate_high", formatFloat(c.RateHigh))
	}
	if c.WaitNS > 0 {
		add("clock.plain_ns", formatFloat(c.PlainNS))
		add("clock.wait_ns", formatFloat(c.WaitNS))
	}
	if c.WaitWithin > 0 {
		add("clock.wait_within", formatFloat(c.WaitWithin))
	}
	if c.Misplaced > 0 {
		add("clock.misplaced", formatFloat(c.Misplaced))
	}
	if c.ColdNS > 0 {
		add("clock.cold_ns", formatFloat(c.ColdNS))
	}
	if c.ColdWithin > 0 {
		add("clock.cold_within", formatFloat(c.ColdWithin))
	}
	if c.ColdByRate > 0 {
		add("clock.cold_by_rate", formatFloat(c.ColdByRate))
	}
	if c.WaitsError > 0 {
		add("clock.waits_low", formatFloat(c.WaitsLow))
		add("clock.waits_high", formatFloat(c.WaitsHigh))
		add("clock.waits_error", formatFloat(c.WaitsError))
	}
	if c.Touches > 0 {
		add("clock.touches", formatFloat(c.Touches))
	}
	add("clock.resolution", formatFloat(c.Resolution))
}

// addMachine adds caches, and what accesses cost.
func addMachine(add adding, p *model.Profile) {
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
}

// signed puts before each line an ID drawn from all of them and from a digest.
func signed(kv [][2]string, digest []byte) []string {
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

// set takes what a line says.
func (s *session) set(key, v string) error {
	p := &s.head
	if to := clockAmount(&p.Clock, key); to != nil {
		var err error
		*to, err = parseAmount(v)
		return err
	}
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
	case "clock.rate_source":
		p.Clock.RateSource = v
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

// clockAmount is where an amount of a clock's is kept; nil if the key is no such.
func clockAmount(c *model.Clock, key string) *float64 {
	switch key {
	case "clock.rate":
		return &c.Rate
	case "clock.rate_low":
		return &c.RateLow
	case "clock.rate_high":
		return &c.RateHigh
	case "clock.plain_ns":
		return &c.PlainNS
	case "clock.wait_ns":
		return &c.WaitNS
	case "clock.wait_within":
		return &c.WaitWithin
	case "clock.misplaced":
		return &c.Misplaced
	case "clock.cold_ns":
		return &c.ColdNS
	case "clock.cold_within":
		return &c.ColdWithin
	case "clock.cold_by_rate":
		return &c.ColdByRate
	case "clock.waits_error":
		return &c.WaitsError
	case "clock.waits_low":
		return &c.WaitsLow
	case "clock.waits_high":
		return &c.WaitsHigh
	case "clock.touches":
		return &c.Touches
	case "clock.resolution":
		return &c.Resolution
	}
	return nil
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
