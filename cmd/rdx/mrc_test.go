package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

func TestMrcText(t *testing.T) {
	out := ok(t, "mrc", demoFile(t, demoProfile(t)))
	t.Log("\n" + out)
	for _, want := range []string{"1160 observations of 1.16G accesses", "fully associative, 64-byte blocks, model local", "L1d    32.0KiB        ?", "L2     1.00MiB    56.9%"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The curve falls, lies in its band, and at the profile's caches is what the
// other commands say.
func TestMrcFormats(t *testing.T) {
	p := demoProfile(t)
	path := demoFile(t, p)
	var report struct {
		Curves []struct {
			Profile struct {
				Caches []report.CacheMisses `json:"caches"`
			} `json:"profile"`
			Points []report.MissPoint `json:"points"`
		} `json:"curves"`
	}
	if err := json.Unmarshal([]byte(ok(t, "mrc", "--format", "json", path)), &report); err != nil {
		t.Fatal(err)
	}
	points := report.Curves[0].Points
	seen := 0
	before := 1.0
	for _, q := range points {
		if q.Low > q.High || q.High > 1 || q.Low < 0 || (q.MissRatio == nil) == (q.Note == "") {
			t.Errorf("point %+v", q)
		}
		if q.MissRatio == nil {
			continue
		}
		if *q.MissRatio > before || *q.MissRatio < q.Low || *q.MissRatio > q.High {
			t.Errorf("point %+v after %v", q, before)
		}
		before = *q.MissRatio
		for _, c := range report.Curves[0].Profile.Caches {
			if uint64(c.Size) == q.Bytes {
				seen++
				if d := c.MissRatio - *q.MissRatio; d > 1e-6 || d < -1e-6 {
					t.Errorf("%s: %v here, %v there", c.Level, *q.MissRatio, c.MissRatio)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no cache of the profile is in the curve")
	}

	rows, err := csv.NewReader(strings.NewReader(ok(t, "mrc", "--format", "csv", path))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(points)+1 || rows[1][1] != strconv.FormatUint(points[0].Bytes, 10) {
		t.Errorf("%d rows for %d points", len(rows)-1, len(points))
	}

	svg := ok(t, "mrc", "--format", "svg", path, path)
	d := xml.NewDecoder(strings.NewReader(svg))
	polygons := 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("svg: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "polygon" {
			polygons++
		}
	}
	if polygons != 2 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("%d bands in\n%s", polygons, svg)
	}
}

func TestMrcSizes(t *testing.T) {
	path := demoFile(t, demoProfile(t))
	rows, err := csv.NewReader(strings.NewReader(ok(t, "mrc", "--format", "csv", "--sizes", "1m,32k,32k", path))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[1][1] != "32768" || rows[2][2] != "16384" {
		t.Errorf("rows %v", rows)
	}
	for _, name := range model.ModelNames {
		ok(t, "mrc", "--model", name, "--sizes", "256k", path)
	}
	// 12 ways of 64 bytes are 768: no power of two of bytes has a whole number of such sets.
	if out := ok(t, "mrc", "--ways", "12", path); !strings.Contains(out, "     768KiB ") || strings.Contains(out, "L2     1.00MiB  ") {
		t.Errorf("sizes for 12 ways: %s", out)
	}
	if out := ok(t, "mrc", "--ways", "4", "--sizes", "32k", path); !strings.Contains(out, "LRU, 4 ways") {
		t.Errorf("ways: %s", out)
	}
}

func TestMrcRefuses(t *testing.T) {
	path := demoFile(t, demoProfile(t))
	for _, args := range [][]string{
		{"mrc"}, {"mrc", "--sizes", "3x", path}, {"mrc", "--sizes", "16", path}, {"mrc", "--model", "oracle", path},
		{"mrc", "--ways", "-1", path}, {"mrc", "--ways", "3", "--sizes", "32k", path}, {"mrc", "--format", "png", path},
	} {
		if _, err := rdx(t, args...); err == nil || exitCode(err) != exitUsage {
			t.Errorf("rdx %s: %v", strings.Join(args, " "), err)
		}
	}
	empty := demoProfile(t)
	empty.Records = nil
	if _, err := rdx(t, "mrc", demoFile(t, empty)); err == nil || !strings.Contains(err.Error(), "no observations") {
		t.Errorf("empty profile: %v", err)
	}
	cut := path + ".cut"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, bytes.Clone(data[:len(data)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rdx(t, "mrc", cut); err == nil || !strings.Contains(err.Error(), cut) {
		t.Errorf("truncated profile: %v", err)
	}
}

// A profile in which nothing was watched for longer than was read ahead gives
// upper bounds, and says so wherever it gives a miss ratio.
func TestFewFollowedIsSaid(t *testing.T) {
	p := demoProfile(t)
	r := p.Records[0]
	p.Records = nil
	for _, k := range []model.Kind{model.Reuse, model.Censored} {
		r.Kind, r.Time, r.Native, r.Exact, r.Observations, r.Accesses = k, 2047, 2047, true, 10000, 1e10
		p.Records = append(p.Records, r)
	}
	if err := p.Derive(); err != nil {
		t.Fatal(err)
	}
	out := ok(t, "mrc", "-v", demoFile(t, p))
	for _, want := range []string{"L2 1.00MiB   at most ", "too few of the accesses not reused soon were watched until", "beyond what was observed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
