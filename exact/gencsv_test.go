package exact

import (
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

func mustTable(t *testing.T, text string, block int) *LawTable {
	t.Helper()
	table, err := ReadLawTable(strings.NewReader(text), "h.csv", block)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// All ways to write one law generate the same distances.
func TestReadLawTableForms(t *testing.T) {
	for name, text := range map[string]string{
		"distance, weight":   "0,1\n1,1\n2,2\n3,2\n",
		"from, to, weight":   "0,2,2\n2,4,4\n",
		"header":             "distance,weight\n0,1\n1,1\n2,2\n3,2\n",
		"any order, spaces":  "weight, to, other, from\n2, 2, x, 0\n# note\n4, 4, y, 2\n",
		"bytes":              "name,from_bytes,to_bytes,from_ns,to_ns,accesses,share\n,0,128,,,2,0\n,128,256,,,4,0\nobserved cold,,,,,99,1\n",
		"rdx exact":          "quantity,from,to,value\nreuse_time,1,2,500\nstack_distance,0,2,2\nstack_distance,2,4,4\nmiss_ratio,64,,0.5\n",
		"floats, extra rows": "from,to,weight\n0,2,1e-3\n2e0,4.0,2e-3\n9,10,0\n",
	} {
		table := mustTable(t, text, 64)
		if c := table.ColdShare(); c != 0 {
			t.Errorf("%s: cold share %v", name, c)
		}
		near(t, name+": share from 3", table.ShareFrom(3), 1.0/3, 1e-12)
		law, err := table.Law(4)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const n = 60_000
		var count [4]float64
		for _, d := range distances(t, mustGenerate(t, law, 4, 1, n)) {
			if d != model.Infinite {
				count[d]++
			}
		}
		for d, want := range []float64{1, 1, 2, 2} {
			near(t, name, count[d]/n, want/6, 0.012)
		}
	}
}

func TestReadLawTableCold(t *testing.T) {
	for _, text := range []string{"cold,1\n5,3\n", "5,3\ninf,1\n", "quantity,from,to,value\nstack_distance,5,6,3\nstack_distance,cold,,1\n",
		"name,from,to,accesses\n,5,6,3\nnever,,,0.5\ninvalidated,,,0.5\nobserved reuse,,,9\n"} {
		table := mustTable(t, text, 64)
		near(t, "cold share", table.ColdShare(), 0.25, 1e-12)
		law, err := table.Law(0)
		if err != nil {
			t.Fatal(err)
		}
		if !law.cold || law.reach != 6 {
			t.Errorf("%q: law %+v", text, law)
		}
		if law, err = table.Law(8); err != nil || law.cold {
			t.Errorf("%q over 8 blocks: %+v, %v", text, law, err)
		}
		if _, err = table.Law(3); err == nil {
			t.Errorf("%q over 3 blocks: no error", text)
		}
	}
}

func TestReadLawTableErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "h.csv: no rows",
		"# nothing\n":                 "h.csv: no rows",
		"0,0\n":                       "sum to 0",
		"x,y\n1,2\n":                  "h.csv:1: no columns",
		"1\n":                         "h.csv:1: 1 columns",
		"1,2,3,4\n":                   "h.csv:1: 4 columns",
		"1,1\nx,1\n":                  `h.csv:2: distance "x"`,
		"1,1\n-2,1\n":                 `h.csv:2: distance "-2"`,
		"1,1\n1.5,1\n":                `h.csv:2: distance "1.5"`,
		"1,1\n2,-1\n":                 `h.csv:2: weight "-1"`,
		"1,1\n2,NaN\n":                `h.csv:2: weight "NaN"`,
		"1,1\n2,Inf\n":                `h.csv:2: weight "Inf"`,
		"1,1\n2,\n":                   `h.csv:2: weight ""`,
		"1,1\n2\n":                    `h.csv:2: weight ""`,
		"1,1\n1e30,1\n":               `h.csv:2: distance "1e30"`,
		"1,1\n18446744073709551615,1": "too large",
		"from,to,weight\n4,4,1\n":     "h.csv:2: distances from 4 to 4",
		"1,\"x\n":                     "h.csv: parse error",
	} {
		_, err := ReadLawTable(strings.NewReader(text), "h.csv", 64)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := ReadLawTable(strings.NewReader("from_bytes,weight\n1,1\n"), "h.csv", 0); err == nil {
		t.Error("bytes without a block size: no error")
	}
}

// A generated stream has the histogram it was generated from.
func TestHistLawRoundTrip(t *testing.T) {
	r := newRand(t, 11)
	bins := model.LogBins(3)
	h := model.NewHist(bins)
	for i := range 20 {
		h.W[i] = r.Float64()
	}
	h.Cold = 0.2
	law, err := HistLaw(h)
	if err != nil {
		t.Fatal(err)
	}
	got := model.NewHist(bins)
	for _, d := range distances(t, mustGenerate(t, law, 0, 1, 400_000)) {
		if d == model.Infinite {
			got.AddKind(model.Cold, 0, 1)
		} else {
			got.Add(d, 1)
		}
	}
	acc, err := model.Accuracy(h, got)
	if err != nil || acc < 0.995 {
		t.Errorf("accuracy %v, %v", acc, err)
	}
	h.W[3] = -1
	if _, err := HistLaw(h); err == nil {
		t.Error("a negative weight: no error")
	}
}

func FuzzReadLawTable(f *testing.F) {
	f.Add("0,1\n1,1\n", uint64(4))
	f.Add("quantity,from,to,value\nstack_distance,0,2,2\nstack_distance,cold,,4\n", uint64(0))
	f.Add("name,from_bytes,to_bytes,accesses\n,0,128,2\nnever,,,4\n", uint64(1))
	f.Fuzz(func(t *testing.T, text string, n uint64) {
		table, err := ReadLawTable(strings.NewReader(text), "h.csv", 64)
		if err != nil {
			return
		}
		if c, s := table.ColdShare(), table.ShareFrom(n); !(c >= 0 && c <= 1 && s >= 0 && s <= 1+1e-9) {
			t.Fatalf("%q: cold share %v, share from %d %v", text, c, n, s)
		}
		law, err := table.Law(n)
		if err != nil {
			return
		}
		g, err := NewGenerator(law, min(n, 1000), 1)
		if err != nil {
			return
		}
		if err := g.Fill(make([]uint64, 500)); err != nil {
			t.Fatal(err)
		}
	})
}
