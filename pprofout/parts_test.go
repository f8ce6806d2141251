// Needs: nothing.

package pprofout

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/model"
)

// Records in parts make the file that they make all at once, but for the order of its fields.
func TestPartsAreTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for _, n := range []int{0, 1, 50, 3000} {
		p := &model.Profile{Source: "instrumentation", Period: 1, Clock: model.Clock{Name: "instrumentation", Unit: "accesses", Rate: 1}, Block: 64,
			BinsPerOctave: 10, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10}, {Level: "L2", Size: 1 << 20}}, ExactDistances: true}
		m := &model.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/x", BuildID: "ab"}
		var places []*model.Location
		for i := range 40 {
			places = append(places, &model.Location{Address: uint64(0x1000 + 16*((i*7)%40)), Mapping: m, Lines: []model.Line{{Function: string(rune('a' + i%26)), Line: i}}})
		}
		parts := make([][]model.Record, len(places))
		for range n {
			use := rng.IntN(len(places) - 1) // one has none
			r := model.Record{Use: places[use : use+1], Op: model.Op(rng.IntN(3)), TID: rng.IntN(3), Weight: model.Weight{Observations: int64(1 + rng.IntN(9))}, Derived: model.Derived{Misses: []float64{0, 0}}}
			r.Accesses = float64(r.Observations)
			if rng.IntN(5) == 0 {
				r.Kind = model.Cold
				r.Misses = []float64{r.Accesses, r.Accesses}
			} else {
				k := rng.IntN(len(places))
				r.Reuse, r.Exact, r.Reuses, r.Time, r.Native = places[k:k+1], true, r.Accesses, uint64(1+rng.IntN(200)), 0
				r.Distance = r.Accesses * float64(64*rng.IntN(100))
			}
			parts[use] = append(parts[use], r)
		}
		var whole, inParts bytes.Buffer
		p.Records = slices.Concat(parts...)
		if err := Write(&whole, p); err != nil {
			t.Fatal(err)
		}
		p.Records = nil
		given := &Parts{Uses: places, Records: func(i int) iter.Seq[*model.Record] {
			return func(yield func(*model.Record) bool) {
				for k := range parts[i] {
					r := parts[i][k] // not valid after
					ok := yield(&r)
					r = model.Record{}
					if !ok {
						return
					}
				}
			}
		}}
		if err := Write(&inParts, p, WithParts(given)); err != nil {
			t.Fatal(err)
		}
		var texts [2]string
		for i, b := range []*bytes.Buffer{&whole, &inParts} {
			if _, err := Read(bytes.NewReader(b.Bytes())); err != nil {
				t.Fatal(err)
			}
			q, err := profile.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = q.String() + q.DefaultSampleType + strings.Join(q.Comments, "\n")
		}
		if texts[0] != texts[1] {
			t.Errorf("%d records: in parts\n%.3000s\nat once\n%.3000s", n, texts[1], texts[0])
		}
	}
}

func TestPartsRefused(t *testing.T) {
	a, b := &model.Location{Address: 1}, &model.Location{Address: 2}
	p := &model.Profile{BinsPerOctave: 10}
	wrong := &Parts{Uses: []*model.Location{a}, Records: func(int) iter.Seq[*model.Record] {
		return func(yield func(*model.Record) bool) {
			yield(&model.Record{Kind: model.Cold, Use: []*model.Location{b}})
		}
	}}
	if err := Write(&bytes.Buffer{}, p, WithParts(wrong)); err == nil {
		t.Error("a record of another part is written")
	}
}
