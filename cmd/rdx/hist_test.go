package main

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

func TestHist(t *testing.T) {
	path := demoFile(t, demoProfile(t))
	for _, locale := range []string{"C", "en_US.UTF-8"} {
		t.Setenv("LC_ALL", locale)
		for _, args := range [][]string{{"--kind", "time"}, {"--kind", "stack"}, {"--bins", "4"}} {
			out := ok(t, append(append([]string{"hist"}, args...), path)...)
			for _, l := range strings.Split(out, "\n") {
				if utf8.RuneCountInString(l) > 80 {
					t.Errorf("%q: more than 80 columns: %s", args, l)
				}
			}
			if ascii := len(out) == utf8.RuneCountInString(out); ascii != (locale == "C") {
				t.Errorf("locale %s: ASCII is %t", locale, ascii)
			}
		}
	}
	out := ok(t, "hist", path)
	for _, want := range []string{
		"reuse time, share of 1.16G accesses",
		"below resolution      <500ns  43.1%  █",
		"524k -    1.05M  >=262us",
		"never seen reused",
		"reuse                  1000",
		"  below resolution       500          sooner than 500ns or 1.00k accesses",
		"cold                     10    0.9%  first access",
		"censored                150   12.9%",
		"pruned                    0",
		"invalidated               0",
		"lost                    205          no free debug register (200), ...",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := ok(t, "hist", "--kind", "stack", path); !strings.Contains(out, "<- L1d 32.0KiB") {
		t.Errorf("no mark at the cache's size in\n%s", out)
	}
}

// Shares add up to one and agree with the model's own histogram.
func TestHistSums(t *testing.T) {
	p := demoProfile(t)
	path := demoFile(t, p)
	for _, kind := range []string{"time", "stack"} {
		var c report.Chart
		if err := json.Unmarshal([]byte(ok(t, "hist", "--kind", kind, "--format", "json", path)), &c); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, b := range append(c.Bars, c.Masses...) {
			sum += b.Share
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(c.Total-1.16e9) > 1e3 {
			t.Errorf("%s: shares add up to %g of %g accesses", kind, sum, c.Total)
		}
		rows, err := csv.NewReader(strings.NewReader(ok(t, "hist", "--kind", kind, "--format", "csv", path))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		sum = 0
		for _, r := range rows[1:] {
			if f, err := strconv.ParseFloat(r[6], 64); err == nil && !strings.HasPrefix(r[0], "observed") {
				sum += f
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: the table's shares add up to %g", kind, sum)
		}
	}
}

// Stack distances have bands, around their shares and with some width; exact ones
// are points.
func TestHistBands(t *testing.T) {
	for _, exact := range []bool{false, true} {
		p := demoProfile(t)
		p.ExactDistances = exact
		path := demoFile(t, p)
		var c report.Chart
		if err := json.Unmarshal([]byte(ok(t, "hist", "--kind", "stack", "--format", "json", path)), &c); err != nil {
			t.Fatal(err)
		}
		for _, b := range append(c.Bars, c.Masses[2]) {
			switch {
			case b.Low == nil || b.High == nil:
				t.Fatalf("exact %t: no band: %+v", exact, b)
			case *b.Low > b.Share+1e-9 || *b.High < b.Share-1e-9:
				t.Errorf("exact %t: %v is not in %v to %v", exact, b.Share, *b.Low, *b.High)
			case (*b.High-*b.Low < 1e-9) != exact && b.Share > 0.01:
				t.Errorf("exact %t: a band from %v to %v", exact, *b.Low, *b.High)
			}
		}
		if out := ok(t, "hist", "--kind", "stack", path); !strings.Contains(out, "95 % confidence") {
			t.Errorf("\n%s", out)
		}
	}
	if out := ok(t, "hist", demoFile(t, demoProfile(t))); strings.Contains(out, "95 %") {
		t.Errorf("times have bands:\n%s", out)
	}
}

// By construction: 400 of 500 resolved reuses lie at 1e6 accesses, and the
// censored ones go there too, for they were cut off before that time and
// after the other.
func TestHistPlaces(t *testing.T) {
	var c report.Chart
	if err := json.Unmarshal([]byte(ok(t, "hist", "--format", "json", demoFile(t, demoProfile(t)))), &c); err != nil {
		t.Fatal(err)
	}
	got := map[uint64]float64{}
	for _, b := range c.Bars {
		if b.Weight > 0 {
			got[b.From] = b.Weight / 1e6
		}
	}
	// Cold accesses never end: the censored ones' weight is shared with them.
	atRisk := 400.0 + 10
	want := map[uint64]float64{65536: 100, 524288: 400 * (150 + atRisk) / atRisk}
	for from, w := range want {
		if math.Abs(got[from]-w) > 0.01*w {
			t.Errorf("from %d: %g million accesses, want %g", from, got[from], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("bins %v, want %v", got, want)
	}
}

func TestHistEmpty(t *testing.T) {
	p := demoProfile(t)
	p.Records = nil
	for _, kind := range []string{"time", "stack"} {
		if out := ok(t, "hist", "--kind", kind, demoFile(t, p)); !strings.Contains(out, "! nothing was observed") {
			t.Errorf("\n%s", out)
		}
	}
}

func TestBarOf(t *testing.T) {
	for _, c := range []struct {
		share float64
		utf8  bool
		want  string
	}{
		{0, true, ""}, {1, true, "████"}, {0.5, true, "██"}, {0.001, true, "▏"}, {0.29, true, "█▏"},
		{0, false, ""}, {1, false, "####"}, {0.001, false, "#"},
	} {
		if got := report.BarOf(c.share, 1, 4, c.utf8); got != c.want {
			t.Errorf("barOf(%g, utf8 %t) = %q, want %q", c.share, c.utf8, got, c.want)
		}
	}
}

func TestQuantities(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{report.Amount(0), "0"}, {report.Amount(757), "757"}, {report.Amount(999.6), "1.00k"}, {report.Amount(1000), "1.00k"}, {report.Amount(149403), "149k"}, {report.Amount(1.5e6), "1.50M"},
		{report.Amount(999999), "1.00M"}, {report.Amount(1e30), "1000000000000E"}, {report.Amount(0.5), "0.50"},
		{report.Bytes(64), "64B"}, {report.Bytes(1 << 20), "1.00MiB"}, {report.Bytes(48 << 10), "48.0KiB"}, {report.Bytes(1023.9), "1.00KiB"},
		{report.Nanoseconds(490), "490ns"}, {report.Nanoseconds(1e10), "10.0s"}, {report.Nanoseconds(97000), "97.0us"},
		{report.Percent(1, 3), "33.3%"}, {report.Percent(1e-9, 1), "<0.1%"}, {report.Percent(0, 1), "0.0%"}, {report.Percent(1, 0), "-"},
		{report.Shorten("abcdefghij", 7), "ab...ij"}, {report.Shorten("abc", 7), "abc"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// What no sample could come from is told first, in one line, with what to do.
func TestUnheldTold(t *testing.T) {
	for name, want := range map[model.CountName]string{
		model.CPUMasked:  "! 3.00s of CPU time (75.0%) was not sampled, of threads that block all signals: --interrupt samples them, at a risk (docs/explanation/safety.md, item 13)",
		model.CPUWaiting: "! 3.00s of CPU time (75.0%) was not sampled, of threads that block all signals and had waited within 10 ms: to interrupt them would not be safe (docs/explanation/safety.md, item 13)",
	} {
		p := demoProfile(t)
		p.Counts = append(p.Counts, model.Count{Name: model.CPUSampled, N: 1e9}, model.Count{Name: name, N: 3e9})
		out := strings.Join(strings.Fields(ok(t, "hist", demoFile(t, p))), " ")
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
		p.Counts[len(p.Counts)-1].N = 1e5
		if out := ok(t, "hist", demoFile(t, p)); strings.Contains(out, "not sampled") {
			t.Errorf("a ten-thousandth is told: %s", out)
		}
	}
}
