package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// CorunSet is the programs that a command was given.
type CorunSet struct {
	Programs []model.Corunner
	Least    []float64 // miss ratio of each below which its profile cannot tell
	Block    int
	Sizes    []int64 // of caches, bytes
	How      string  // the rates were obtained
}

// leastOfAll is the miss ratio of all accesses below which it is chance: that of
// programs whose own are all at what is just quotable.
func (s *CorunSet) leastOfAll() float64 {
	sum, rates := 0.0, 0.0
	for i, p := range s.Programs {
		sum += p.Rate * s.Least[i]
		rates += p.Rate
	}
	return sum / rates
}

func (s *CorunSet) blocks(size int64) float64 { return float64(size) / float64(s.Block) }

// Corunner takes from a profile what its program does to a shared cache. The
// rate is in accesses per second, 0 if the profile does not tell, as one of rdx exact does not.
func Corunner(p *model.Profile) (model.Corunner, error) {
	var c model.Corunner
	survival, err := p.Survival()
	if err != nil {
		return c, err
	}
	if !(survival.Total() > 0) {
		return c, errNoObservations
	}
	var fp model.Footprint
	if err := fp.Reset(survival); err != nil {
		return c, err
	}
	times, err := p.Times()
	if err != nil {
		return c, err
	}
	c.Footprint = fp.At
	c.Cold = min(1, (times.Total()-times.Finite())/times.Total())
	// What ran under instrumentation took long for other reasons than its own.
	if p.Duration > 0 && !p.ExactDistances {
		var accesses float64
		for i := range p.Records {
			if p.Records[i].Kind != model.Lost {
				accesses += p.Records[i].Accesses
			}
		}
		c.Rate = accesses / p.Duration.Seconds()
	}
	return c, nil
}

var errNoObservations = errors.New("the profile has no observations")

// LeastQuotable is the miss ratio that 10 of a profile's observations make:
// smaller ones are chance.
func LeastQuotable(p *model.Profile) float64 {
	var n int64
	for i := range p.Records {
		if p.Records[i].Kind != model.Lost {
			n += p.Records[i].Observations
		}
	}
	return 10 / max(p.Independent(n), 10)
}

// quote writes a miss ratio, but not more of it than the profile can tell.
func quote(ratio, least float64) string {
	if ratio < least {
		return below(least)
	}
	return Percent(ratio, 1)
}

// alone is a program's miss ratio with the cache to itself.
func alone(p model.Corunner, blocks float64) (float64, error) {
	if !(blocks > 0) {
		return 1, nil
	}
	r, err := model.Compose([]model.Corunner{p}, blocks)
	if err != nil {
		return 0, err
	}
	return r[0].MissRatio, nil
}

// ShortNames are the rows' programs without their folders, by program; with them if
// two files have one name.
func ShortNames[T any](rows []T, program func(*T) string) map[string]string {
	short, whole, of := map[string]string{}, map[string]string{}, map[string]string{}
	for i := range rows {
		p := program(&rows[i])
		short[p], whole[p] = Printable(filepath.Base(p)), Printable(p)
		of[short[p]] = p
	}
	if len(of) < len(short) {
		return whole
	}
	return short
}

// composeRow is one program in one cache.
type composeRow struct {
	Cache   int64   `json:"cache_bytes"`
	Program string  `json:"program"`
	Rate    float64 `json:"rate"`
	Alone   float64 `json:"miss_ratio_alone"`
	Shared  float64 `json:"miss_ratio_shared"`
	Bytes   float64 `json:"occupancy_bytes"`
	Least   float64 `json:"least_quotable"` // smaller miss ratios are chance
}

func Compose(set *CorunSet, size int64) ([]composeRow, error) {
	shared, err := model.Compose(set.Programs, set.blocks(size))
	if err != nil {
		return nil, err
	}
	var rows []composeRow
	for i, p := range set.Programs {
		a, err := alone(p, set.blocks(size))
		if err != nil {
			return nil, err
		}
		rows = append(rows, composeRow{size, p.Name, p.Rate, a, shared[i].MissRatio, shared[i].Blocks * float64(set.Block), set.Least[i]})
	}
	return rows, nil
}

type ComposeReport struct {
	Rates string       `json:"rates"`
	Rows  []composeRow `json:"programs"`
}

func (r *ComposeReport) Table() [][]string {
	rows := [][]string{{"cache_bytes", "program", "rate", "miss_ratio_alone", "miss_ratio_shared", "occupancy_bytes", "least_quotable"}}
	for _, x := range r.Rows {
		rows = append(rows, []string{strconv.FormatInt(x.Cache, 10), x.Program, Float(x.Rate), Float(x.Alone), Float(x.Shared), Float(x.Bytes), Float(x.Least)})
	}
	return rows
}

func (r *ComposeReport) Text() string {
	var b strings.Builder
	names := ShortNames(r.Rows, func(x *composeRow) string { return x.Program })
	var size int64 = -1
	for _, x := range r.Rows {
		if x.Cache != size {
			size = x.Cache
			fmt.Fprintf(&b, "cache of %s, shared (access rates %s)\n", Bytes(float64(size)), r.Rates)
			fmt.Fprintf(&b, "%9s %9s %9s %9s  %s\n", "alone", "shared", "holds", "rate/s", "program")
		}
		fmt.Fprintf(&b, "%9s %9s %9s %9s  %s\n", quote(x.Alone, x.Least), quote(x.Shared, x.Least), Bytes(x.Bytes), Amount(x.Rate), names[x.Program])
	}
	return b.String()
}
