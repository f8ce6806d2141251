package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// A place is the innermost function at the leaf of a stack. Without symbols
// its function is the file and the offset in it.
type place struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

func PlaceOf(stack []*model.Location) place {
	if len(stack) == 0 {
		return place{Function: "[no stack]"}
	}
	l := stack[0]
	if len(l.Lines) > 0 {
		return place{l.Lines[0].Function, l.Lines[0].File, l.Lines[0].Line}
	}
	if m := l.Mapping; m != nil && m.File != "" {
		return place{Function: fmt.Sprintf("%s+%#x", filepath.Base(m.File), l.Address-m.Start+m.Offset)}
	}
	return place{Function: fmt.Sprintf("%#x", l.Address)}
}

func (p place) String() string {
	s := Shorten(p.Function, 60)
	if p.File != "" {
		s += "  " + filepath.Base(p.File)
		if p.Line > 0 {
			s += fmt.Sprintf(":%d", p.Line)
		}
	}
	return Printable(s)
}

// A pair is all records between two places. Where no reuse was seen, its end
// is a word such as [censored].
type Pair struct {
	Use          place   `json:"use"`
	Reuse        place   `json:"reuse"`
	Kind         string  `json:"kind"`
	Value        float64 `json:"value"`
	Share        float64 `json:"share"`
	Cumulative   float64 `json:"cumulative_share"`
	Observations int64   `json:"observations"`
	// Medians are over the accesses that the pair stands for; of censored
	// ones they are of the age at the end.
	Time            uint64   `json:"median_reuse_time_accesses"`
	Nanoseconds     *uint64  `json:"median_reuse_time_ns,omitempty"` // nil unless the clock counts them
	BelowResolution bool     `json:"below_resolution"`               // the median is an upper bound
	Distance        *float64 `json:"median_stack_distance_bytes"`    // nil where there is no reuse
	// Misses are its shares of each level's, and Waits the share of CPU time that it is waited for; nil where that is not
	// asked for, or not known.
	Misses []float64 `json:"misses_shares,omitempty"`
	Waits  *float64  `json:"time_share,omitempty"`

	records []*model.Record
}

// Pairs groups a profile's records and sorts them by value, greatest first.
// Those without any value are left out.
func Pairs(p *model.Profile, value func(*model.Record) float64) []*Pair {
	all, total := grouped(p, value)
	slices.SortStableFunc(all, func(a, b *Pair) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(b.Observations, a.Observations), cmp.Compare(a.Use.Function, b.Use.Function), cmp.Compare(a.Use.Line, b.Use.Line))
	})
	sum := 0.0
	for _, q := range all {
		sum += q.Value
		q.Share, q.Cumulative = q.Value/total, sum/total
		q.medians(p)
	}
	return all
}

// grouped is the pairs in no order, without what takes all of them or sorting, and the sum of their values.
func grouped(p *model.Profile, value func(*model.Record) float64) (all []*Pair, total float64) {
	type key struct {
		use, reuse place
		kind       model.Kind
	}
	byKey := map[key]*Pair{}
	for i := range p.Records {
		r := &p.Records[i]
		v := value(r)
		if r.Kind == model.Lost || r.Kind.OfLine() || !(v > 0) {
			continue
		}
		k := key{use: PlaceOf(r.Use), kind: r.Kind}
		switch r.Kind {
		case model.Reuse, model.Invalidated:
			k.reuse = PlaceOf(r.Reuse)
		default:
			k.reuse = place{Function: "[" + r.Kind.String() + "]"}
		}
		q := byKey[k]
		if q == nil {
			q = &Pair{Use: k.use, Reuse: k.reuse, Kind: r.Kind.String()}
			byKey[k] = q
			all = append(all, q)
		}
		q.Value += v
		q.Observations += r.Observations
		q.records = append(q.records, r)
		total += v
	}
	return all, total
}

func (q *Pair) medians(p *model.Profile) {
	weight := func(r *model.Record) float64 {
		if r.Reuses > 0 {
			return r.Reuses
		}
		return r.Accesses
	}
	r := MedianRecord(q.records, weight, func(r *model.Record) float64 { return float64(r.Time) })
	q.Time, q.BelowResolution = r.Time, r.BelowResolution
	if p.Clock.Unit == "nanoseconds" && r.Kind != model.Cold {
		native := MedianRecord(q.records, weight, func(r *model.Record) float64 { return float64(r.Native) }).Native
		q.Nanoseconds = &native
	}
	distance := func(r *model.Record) float64 { d, _ := r.MeanDistance(); return d }
	if d, ok := MedianRecord(q.records, weight, distance).MeanDistance(); ok {
		q.Distance = &d
	}
}

// MedianRecord is the record at half the weight, sorted by value.
func MedianRecord(rs []*model.Record, weight, value func(*model.Record) float64) *model.Record {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b *model.Record) int { return cmp.Compare(value(a), value(b)) })
	half := 0.0
	for _, r := range rs {
		half += weight(r) / 2
	}
	for _, r := range rs {
		if half -= weight(r); half <= 0 {
			return r
		}
	}
	return rs[len(rs)-1]
}
