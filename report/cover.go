package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// A coverList is the fewest places that account for a share of the misses.
type coverList struct {
	Profile *overview    `json:"profile"`
	Cache   int64        `json:"cache_bytes"`
	Cover   float64      `json:"cover"`
	Misses  float64      `json:"misses"`
	Ratio   float64      `json:"miss_ratio"`
	All     int          `json:"places_in_all"`
	ByPlace []coverPlace `json:"places"`

	seen int64 // observations behind the list
}

type coverPlace struct {
	place
	Misses       float64 `json:"misses"`
	Share        float64 `json:"share"`
	Cumulative   float64 `json:"cumulative_share"`
	Observations int64   `json:"observations"` // of records that end there, misses or not
}

// Cover lists the places of the misses in a cache, such as 1m or the name of
// a level.
func Cover(p *model.Profile, percent float64, cache string) (*coverList, error) {
	if !(percent > 0 && percent <= 100) {
		return nil, BadInput(fmt.Errorf("--cover %v: want a percentage above 0 and up to 100", percent))
	}
	c := &coverList{Profile: Survey(p), Cover: percent / 100}
	var err error
	if c.Cache, err = cacheSize(p, cache); err != nil {
		return nil, err
	}
	names := map[string]place{}
	seen := map[string]int64{}
	key := func(stack []*model.Location) string {
		k, l := placeKey(stack)
		names[k] = l
		return k
	}
	weights, err := model.MissWeights(p, c.Cache, key)
	if err != nil {
		return nil, err
	}
	accesses := 0.0
	for i := range p.Records {
		r := &p.Records[i]
		if r.Kind == model.Lost {
			continue
		}
		accesses += r.Accesses
		stack := r.Use
		if r.Kind == model.Reuse {
			stack = r.Reuse
		}
		seen[key(stack)] += r.Observations
	}
	for _, w := range weights {
		c.Misses += w
	}
	c.All = len(weights)
	if accesses > 0 {
		c.Ratio = c.Misses / accesses
	}
	sum := 0.0
	for _, k := range model.Cover(weights, c.Cover) {
		sum += weights[k]
		c.ByPlace = append(c.ByPlace, coverPlace{names[k], weights[k], weights[k] / c.Misses, sum / c.Misses, seen[k]})
		c.seen += seen[k]
	}
	return c, nil
}

// placeKey is the place of a stack, and what tells it from others.
func placeKey(stack []*model.Location) (string, place) {
	l := PlaceOf(stack)
	return l.Function + "\x00" + l.File + "\x00" + fmt.Sprintf("%9d", l.Line), l
}

// cacheSize is the size of a cache named by its level, or given in bytes.
func cacheSize(p *model.Profile, s string) (int64, error) {
	var levels []string
	for _, c := range p.Caches {
		if strings.EqualFold(c.Level, s) {
			return c.Size, nil
		}
		levels = append(levels, strings.ToLower(c.Level))
	}
	n, err := sampler.ParseSize(s)
	if err != nil {
		return 0, BadInput(fmt.Errorf("--cache: %w, or a level of the profile: %s", err, cmp.Or(strings.Join(levels, ", "), "it has none")))
	}
	return n, nil
}

func (c *coverList) overviews() []*overview { return []*overview{c.Profile} }

func (c *coverList) Text() string {
	var b strings.Builder
	WriteOverview(&b, c.Profile)
	fmt.Fprintf(&b, "\n%s of %s predicted misses of a %s cache (%s of the accesses) happen at %d of %d places\n\n",
		Percent(c.Cover, 1), Amount(c.Misses), Bytes(float64(c.Cache)), Percent(c.Ratio, 1), len(c.ByPlace), c.All)
	if len(c.ByPlace) > 0 {
		fmt.Fprintf(&b, "%6s %6s %8s %5s  %s\n", "share", "cum", "misses", "seen", "place")
	}
	for _, q := range c.ByPlace {
		fmt.Fprintf(&b, "%6s %6s %8s %5d  %s\n", Percent(q.Share, 1), Percent(q.Cumulative, 1), Amount(q.Misses), q.Observations, q.place)
	}
	if c.seen < Fewest {
		fmt.Fprintf(&b, "\nthis list rests on only %s, so shares are chance; try a smaller cache\n", Plural(c.seen, "observation"))
	}
	return b.String()
}

func (c *coverList) Table() [][]string {
	rows := [][]string{{"function", "file", "line", "misses", "share", "cumulative_share", "observations"}}
	for _, q := range c.ByPlace {
		rows = append(rows, []string{q.Function, q.File, fmt.Sprint(q.Line), Float(q.Misses), Float(q.Share), Float(q.Cumulative), fmt.Sprint(q.Observations)})
	}
	return rows
}
