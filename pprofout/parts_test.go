// Needs: nothing.

package pprofout

import (
	"bytes"
	"iter"
	"math"
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
			r := model.Record{Use: places[use : use+1], Op: model.Op(rng.IntN(3)), TID: rng.IntN(4) - 1, Weight: model.Weight{Observations: int64(1 + rng.IntN(9))}, Derived: model.Derived{Misses: []float64{0, 0}}}
			r.Accesses = float64(r.Observations)
			switch rng.IntN(8) {
			case 0:
				r.Kind = model.Cold
				r.Misses = []float64{r.Accesses, r.Accesses}
			case 1:
				r.Kind = model.Invalidated
				r.Misses = []float64{r.Accesses, r.Accesses}
			default:
				k := rng.IntN(len(places))
				r.Reuse, r.Exact, r.Reuses, r.Time, r.Native = places[k:k+1], rng.IntN(3) > 0, r.Accesses, uint64(1+rng.IntN(200)), 0
				r.Distance = r.Accesses * float64(64*rng.IntN(100)) * 1.1
				r.Misses = []float64{r.Accesses * rng.Float64(), 0}
			}
			parts[use] = append(parts[use], r)
		}
		var whole, inParts bytes.Buffer
		p.Records = slices.Concat(parts...)
		if err := Write(&whole, p); err != nil {
			t.Fatal(err)
		}
		given := &Parts{Uses: places, Locations: locationsOf(p.Records), Kinds: kindsOf(p.Records), Records: func(i int) iter.Seq[*model.Record] {
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
		p.Records = nil
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

// locationsOf are the locations of records, and kindsOf their kinds.
func locationsOf(records []model.Record) (all []*model.Location) {
	for i := range records {
		for _, l := range slices.Concat(records[i].Use, records[i].Reuse) {
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}

func kindsOf(records []model.Record) (all []model.Kind) {
	for i := range records {
		if !slices.Contains(all, records[i].Kind) {
			all = append(all, records[i].Kind)
		}
	}
	return all
}

// What a sample of a part has no room for is refused, and not left out.
func TestPartsRefused(t *testing.T) {
	a, b := &model.Location{Address: 1}, &model.Location{Address: 2}
	p := &model.Profile{BinsPerOctave: 10}
	good := model.Record{Use: []*model.Location{a}, Ending: model.Ending{Reuse: []*model.Location{b}}, Weight: model.Weight{Observations: 1, Accesses: 1}}
	for what, change := range map[string]func(r *model.Record){
		"":                  func(*model.Record) {},
		"of another part":   func(r *model.Record) { r.Use = []*model.Location{b} },
		"a longer stack":    func(r *model.Record) { r.Reuse = []*model.Location{a, b} },
		"an end of none":    func(r *model.Record) { r.Kind = model.Cold },
		"of another kind":   func(r *model.Record) { r.Kind, r.Reuse = model.Cold, nil },
		"elsewhere":         func(r *model.Record) { r.Reuse = []*model.Location{{Address: 2}} },
		"of no known kind":  func(r *model.Record) { r.Kind, r.Reuse = model.NumKinds, nil },
		"of data":           func(r *model.Record) { r.Data = &model.Data{Name: "x"} },
		"with a source":     func(r *model.Record) { r.DataSource = "L1" },
		"of another thread": func(r *model.Record) { r.SetWords(model.Words{EndTID: 1}) },
		"with an address":   func(r *model.Record) { r.SetWords(model.Words{Address: 1}) },
		"with a member":     func(r *model.Record) { r.SetWords(model.Words{Member: "x"}) },
		"of an epoch":       func(r *model.Record) { r.Epoch = 1 },
		"of a hold":         func(r *model.Record) { r.Hold = 1 },
		"with squares":      func(r *model.Record) { r.Squares = 1 },
		"read ahead":        func(r *model.Record) { r.After = 1 },
		"of half a line":    func(r *model.Record) { r.Half = true },
		"not resolved":      func(r *model.Record) { r.BelowResolution = true },
		"of a large thread": func(r *model.Record) { r.TID = 1 << 32 },
		"with misses":       func(r *model.Record) { r.Misses = []float64{1} },
		"fewer than none":   func(r *model.Record) { r.Observations = -1 },
		"of no weight":      func(r *model.Record) { r.Accesses = math.NaN() },
		"of less":           func(r *model.Record) { r.Reuses = -1 },
		"endless":           func(r *model.Record) { r.Distance = math.Inf(1) },
	} {
		given := &Parts{Uses: []*model.Location{a}, Locations: []*model.Location{a, b}, Kinds: []model.Kind{model.Reuse}, Records: func(int) iter.Seq[*model.Record] {
			return func(yield func(*model.Record) bool) {
				r := good
				change(&r)
				yield(&r)
			}
		}}
		if err := Write(&bytes.Buffer{}, p, WithParts(given)); (err == nil) != (what == "") {
			t.Errorf("a record %s: %v", what, err)
		}
	}
	p.Clock.Unit = nanoseconds
	if err := Write(&bytes.Buffer{}, p, WithParts(&Parts{})); err == nil {
		t.Error("times in nanoseconds are left out")
	}
}

// Pieces hold what was written, however it is cut.
func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p pieces
	var want []byte
	for _, n := range []int{0, 1, pieceSize - 1, pieceSize, 3*pieceSize + 5, 7} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if m, err := p.Write(b); m != n || err != nil {
			t.Fatalf("%d of %d bytes, %v", m, n, err)
		}
		want = append(want, b...)
	}
	if !bytes.Equal(slices.Concat(p...), want) {
		t.Error("what was written is not there")
	}
}
