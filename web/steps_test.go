package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// TestStored: at the machine's own caches the sums over pairs are what rdx top prints, and so is what
// stands behind them.
func TestStored(t *testing.T) {
	for _, name := range []string{"bad.pb.gz", "good.pb.gz", "words.pb.gz"} {
		x := example(t, name)
		p, err := report.Ready(x.Raw, "")
		if err != nil {
			t.Fatal(err)
		}
		d, err := New(x.Raw, name, "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Caches {
			m, err := report.FindMetric(p, strings.ToLower(c.Level))
			if err != nil {
				t.Fatal(err)
			}
			want, seen := 0.0, int64(0)
			for _, q := range report.Pairs(p, m.Value) {
				want += q.Value
				seen += q.Observations
			}
			got, gotSeen := 0.0, int64(0)
			out := make([]float64, len(d.Sizes))
			for i := range d.Cells.Use {
				if v := d.Cells.Misses.values(i, out)[c.At]; v > 0 {
					got += v
					gotSeen += int64(d.Cells.Seen[i])
				}
			}
			if math.Abs(got-want) > 1e-6*want || gotSeen != seen {
				t.Errorf("%s at %s: %g misses of %d observations, rdx top has %g of %d", name, c.Level, got, gotSeen, want, seen)
			}
		}
	}
}

// TestRows: what was measured is told in full, each line under its name.
func TestRows(t *testing.T) {
	d, err := New(example(t, "sharing.pb.gz").Raw, "sharing", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, r := range d.Rows {
		if r.Key != "!" {
			keys[r.Key] = r.Text
		} else if strings.Contains(r.Text, ": -v") {
			t.Errorf("warnings are left out: %q", r.Text)
		}
	}
	if keys["cost"] != "20.01% of the target's CPU time; a thread was held per sample p50 783.481µs, p99 2.456344ms, longest 10.577335ms" {
		t.Errorf("the cost: %q", keys["cost"])
	}
	if keys["command"] != "./sharing 25" || !strings.HasPrefix(keys["duration"], "25.1s from ") || !strings.HasPrefix(keys["clock"], "cpu-time") ||
		!strings.HasPrefix(keys["stack"], "private: ") || !strings.HasPrefix(keys["observations"], "987 of ") || !strings.Contains(keys["rests on"], "never seen reused") {
		t.Errorf("%q", keys)
	}
}

// TestSteps: steps give back what was put in.
func TestSteps(t *testing.T) {
	var s steps
	all := [][]float64{{5, 5, 3, 3, 0}, {0, 0, 0, 0, 0}, {1e9, 1e9, 1e9, 1e9, 1e9}, {7, 6.5, 0, 0.25, 0.25}, {1, 0, 0, 0, 0}}
	for _, v := range all {
		s.add(v)
	}
	out := make([]float64, 5)
	for f, v := range all {
		for i, x := range s.values(f, out) {
			if x != v[i] {
				t.Errorf("function %d: %v, want %v", f, out, v)
			}
		}
	}
}

// TestNth: values are found as by sorting all.
func TestNth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 1; n < 3000; n = n*3/2 + 1 {
		for _, most := range []int{1, 5, 1 << 30} { // with many that are equal, and none
			values := make([]float64, n)
			for i := range values {
				values[i] = float64(rng.IntN(most))
			}
			for _, in := range [][]float64{values, slices.Sorted(slices.Values(values))} {
				sorted := slices.Sorted(slices.Values(in))
				for range 20 {
					k := rng.IntN(n)
					if got := nth(slices.Clone(in), k); got != sorted[k] {
						t.Fatalf("%d of %d values below %d: %g, want %g", k, n, most, got, sorted[k])
					}
				}
			}
		}
	}
}

// TestPack: columns come back as they were, each at a multiple of 8 bytes, nothing of them is in the JSON, and none comes twice.
func TestPack(t *testing.T) {
	d, err := New(example(t, "words.pb.gz").Raw, "words", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range d.Cells.First {
		if want := d.Cells.Misses.values(i, make([]float64, len(d.Sizes)))[d.First]; m != want {
			t.Fatalf("sample %d misses %g at first, %g at that size", i, m, want)
		}
	}
	seen := map[string]bool{}
	for _, v := range []any{d, &d.more} {
		for _, c := range testPack(t, v) {
			if seen[c.Name] {
				t.Errorf("%s comes twice", c.Name)
			}
			seen[c.Name] = true
		}
	}
	if len(seen) < 29 {
		t.Errorf("only %d columns", len(seen))
	}
}

func testPack(t *testing.T, v any) []column {
	p, err := pack(v)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if n, err := p.WriteTo(&out); err != nil || n != p.size || out.Len() != int(n) {
		t.Fatalf("wrote %d of %d bytes, said %d: %v", out.Len(), p.size, n, err)
	}
	b := out.Bytes()
	at := 8 + int(binary.LittleEndian.Uint32(b[4:]))
	var head struct {
		Value   map[string]map[string]any
		Columns []column
	}
	json.Unmarshal(b[8:at], &head) // what else is in it does not fit
	if string(b[:4]) != packedMagic || at%8 != 0 {
		t.Errorf("begins with %.100q", b)
	}
	columns := map[string]any{}
	eachColumn(reflect.ValueOf(v), "", func(name string, c any) { columns[name] = c })
	for _, c := range head.Columns {
		if in, name, _ := strings.Cut(c.Name, "."); head.Value[in][name] != nil {
			t.Errorf("%s is in the JSON, too", c.Name)
		}
		switch want := columns[c.Name].(type) {
		case ints:
			for i, v := range want {
				if got := int32(binary.LittleEndian.Uint32(b[at+4*i:])); got != v {
					t.Fatalf("%s %d: %d, want %d", c.Name, i, got, v)
				}
			}
			at += (4*c.N + 7) &^ 7
		case doubles:
			for i, v := range want {
				if got := binary.LittleEndian.Uint64(b[at+8*i:]); got != math.Float64bits(v) {
					t.Fatalf("%s %d: %x, want %g", c.Name, i, got, v)
				}
			}
			at += 8 * c.N
		default:
			t.Fatalf("there is no column %s", c.Name)
		}
	}
	if at != len(b) || len(head.Columns) != len(columns) {
		t.Errorf("%d columns of %d end at byte %d of %d", len(head.Columns), len(columns), at, len(b))
	}
	return head.Columns
}

// TestFirstPicture: the overview is there before all of the profile is, says the same as then, and other pages wait.
func TestFirstPicture(t *testing.T) {
	b := openBrowser(t)
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`const get = fetch; fetch = (u) => u.startsWith("more") ? new Promise((r) => (globalThis.goOn = () => r(get(u)))) : get(u)`).Do(ctx)
		return err
	}))
	b.show(serve(t, Options{}, example(t, "words.pb.gz")), "page=overview", "overview")
	b.await("globalThis.goOn && document.querySelector('.curve canvas')")
	lists := "[...document.querySelectorAll('.overview .toplist')].map((l) => l.textContent).join()"
	var first, then string
	b.eval(lists, &first)
	b.eval("location.hash = 'page=pairs'", nil)
	b.await("!document.querySelector('main') && document.body.textContent.includes('reading …')")
	b.eval("location.hash = 'page=overview'", nil)
	b.await("document.querySelector('main')")
	b.eval("goOn()", nil)
	b.await("globalThis.rdxView")
	b.eval(lists, &then)
	if first != then || !strings.Contains(then, "%") {
		t.Errorf("first %q, then %q", first, then)
	}
	b.eval("location.hash = 'page=pairs'", nil)
	b.await("document.querySelector('table.pairs tbody tr')")
	b.clean()
}

// TestSquares: bands of pairs are model.PerAccess's.
func TestSquares(t *testing.T) {
	x := example(t, "words.pb.gz")
	p, err := report.Ready(x.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(x.Raw, "words", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, sq := make([]float64, len(d.Sizes)), make([]float64, len(d.Sizes))
	squares := &d.rest().Pairs
	accesses := 0.0
	for i := range p.Records {
		if p.Records[i].Kind != model.Lost {
			accesses += p.Records[i].Accesses
		}
	}
	compared := 0
	for pair := range d.Pairs.Use {
		for k, c := range d.Caches {
			var records []*model.Record
			sum := 0.0
			cell := 0
			for i := range p.Records {
				if !shown(&p.Records[i]) {
					continue
				}
				if int(d.Cells.Pair[cell]) == pair {
					records = append(records, &p.Records[i])
					sum += d.Cells.Misses.values(cell, out)[c.At]
				}
				cell++
			}
			if !(sum > 0) {
				continue
			}
			want := p.PerAccess(records, func(r *model.Record) float64 { return r.Misses[k] }, accesses, p.Holds(), 0.05)
			unit := squares.values(pair, sq)[c.At] / sum
			low, high := model.CountBand(sum / unit)
			if math.Abs(low*unit/accesses-want.Low) > 1e-4*want.Value || math.Abs(high*unit/accesses-want.High) > 1e-4*want.High {
				t.Errorf("pair %d at %s: band %g to %g, PerAccess has %g to %g", pair, c.Level, low*unit/accesses, high*unit/accesses, want.Low, want.High)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// Where rdx mrc prints a question mark the page does, whatever the words beside it are.
func TestUnknownPoints(t *testing.T) {
	var c model.Curve
	all := []model.Quote{model.Quoted, model.TooRare, model.BelowResolution, model.BeyondObservation, model.TooWide}
	for _, q := range all {
		c.Points = append(c.Points, model.Point{Quote: q})
	}
	x := newCurve(&c)
	for i, q := range all {
		if want := q == model.BelowResolution || q == model.TooWide; x.Unknown[i] != want || (x.Note[i] == "") != (q == model.Quoted) {
			t.Errorf("%v: unknown %v, want %v, %q", q, x.Unknown[i], want, x.Note[i])
		}
	}
}
