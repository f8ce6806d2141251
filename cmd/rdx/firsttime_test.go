// What somebody met who had read no more than the README (docs/reference/field.md, "A first-time user").
package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Memory that has no name leads: which option names it is said, and with that option, why it has none.
func TestHeapIsNamed(t *testing.T) {
	p := demoProfile(t)
	data := &model.Data{Kind: model.DataAnonymous, Name: "anonymous memory"}
	for i := range p.Records {
		p.Records[i].Data = data
	}
	if out := ok(t, "top", "--by", "data", demoFile(t, p)); !strings.Contains(out, "rdx attach --heap") {
		t.Errorf("--heap is not named:\n%s", out)
	}
	p.Comments = append(p.Comments, model.HeapProbed+"0 calls, by an estimate of 4µs each 0.0% of the sampled CPU time, beside the overhead")
	out := ok(t, "top", "--by", "data", demoFile(t, p))
	if strings.Contains(out, "rdx attach --heap") || !strings.Contains(strings.Join(strings.Fields(out), " "), "allocated before rdx was there") {
		t.Errorf("with --heap, all being allocated before:\n%s", out)
	}
}

// That the rate could not be measured is in what is printed, with what to do.
func TestRateNotMeasuredIsSaid(t *testing.T) {
	p := demoProfile(t)
	p.Clock.RateSource, p.Clock.RateLow, p.Clock.RateHigh = model.EstimatedRate, .1, 4
	for _, command := range []string{"top", "mrc"} {
		out := strings.Join(strings.Fields(ok(t, command, demoFile(t, p))), " ")
		if !strings.Contains(out, "access rate could not be measured") || !strings.Contains(out, "--access-rate") {
			t.Errorf("rdx %s:\n%s", command, out)
		}
	}
}

// A miss ratio has one band, whichever command says it.
func TestOneBandANumber(t *testing.T) {
	path := demoFile(t, demoProfile(t))
	var top struct {
		Profile struct {
			Caches []struct {
				Size, Misses float64
				Low, High    float64
				Ratio        float64 `json:"miss_ratio"`
			}
		}
	}
	var mrc struct {
		Curves []struct {
			Points []struct{ Bytes, Low, High float64 }
		}
	}
	if err := json.Unmarshal([]byte(ok(t, "top", "--format", "json", path)), &top); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(ok(t, "mrc", "--sizes", "32k,1m", "--format", "json", path)), &mrc); err != nil {
		t.Fatal(err)
	}
	if len(top.Profile.Caches) != 2 || len(mrc.Curves) != 1 || len(mrc.Curves[0].Points) != 2 {
		t.Fatalf("%+v, %+v", top, mrc)
	}
	for i, c := range top.Profile.Caches {
		if q := mrc.Curves[0].Points[i]; c.Low != q.Low || c.High != q.High {
			t.Errorf("%v bytes: top has a band of %v to %v, mrc of %v to %v", q.Bytes, c.Low, c.High, q.Low, q.High)
		}
	}
}

// A profile of nothing has no miss ratios of "less than 100 %".
func TestNoRatioOfNothing(t *testing.T) {
	p := &model.Profile{BinsPerOctave: 8, Duration: 1, Caches: []model.Cache{{Level: "L2", Size: 1 << 20, Ways: 16, Line: 64}}}
	out, err := rdx(t, "top", "-v", demoFile(t, p))
	if strings.Contains(out, "100") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// diff says how the time has changed that is waited for memory, not only shares of accesses.
func TestDiffHasTime(t *testing.T) {
	path := demoFile(t, demoProfile(t))
	var d struct{ Waits []any }
	if err := json.Unmarshal([]byte(ok(t, "diff", "--format", "json", path, path)), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Waits) != 2 {
		t.Errorf("waits %v", d.Waits)
	}
}

// Words that the output has are in the glossary.
func TestGlossaryHasTheWords(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"censored", "interpolated", "pruned", "independent", "chance", "model local", "seen", "cold", "lost", "distance"} {
		found := false
		for line := range strings.Lines(string(b)) {
			cells := strings.Split(line, "|")
			found = found || len(cells) > 2 && strings.Contains(cells[1], word)
		}
		if !found {
			t.Errorf("the glossary does not have %q", word)
		}
	}
}

// A pair that was seen once, however much it stands for, is not listed among others, and it is said how much that is.
func TestPairsSeenOnce(t *testing.T) {
	p := demoProfile(t)
	at := &model.Location{Address: 0x400200, Mapping: p.Records[0].Use[0].Mapping, Lines: []model.Line{{Function: "lucky", SystemName: "lucky"}}}
	r := model.Record{Kind: model.Reuse, Use: []*model.Location{at}, Op: model.Load, TID: 7,
		Timing: model.Timing{Native: 500000, Time: 1000000}, Weight: model.Weight{Observations: 1, Accesses: 1e9}}
	r.Reuse = []*model.Location{at}
	p.Records = append(p.Records, r)
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	out := ok(t, "top", demoFile(t, p))
	if strings.Contains(out, "lucky") || !strings.Contains(out, "were seen once each, which may be chance") && !strings.Contains(out, "was seen once, which may be chance") {
		t.Error(out)
	}
}
