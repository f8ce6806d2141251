// Needs: nothing; one test the instrumentation engine.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// laps is a trace of n walks over 1000 words by one instruction: all reuse
// times are 1000, all distances 999.
func laps(n int) string {
	var b strings.Builder
	for i := range 1000 * n {
		fmt.Fprintln(&b, i%1000*8, "R", 8, 1, 4096)
	}
	return b.String()
}

// exactFile is the exact profile of the trace by words.
func exactFile(t *testing.T, trace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "exact.pb.gz")
	mustRdx(t, trace, "exact", "-", "--block", "word", "-o", path)
	return path
}

// sampled is a live profile of laps at 2 accesses per ns of which rdx believes
// rate.
func sampled(rate float64) *model.Profile {
	at := &model.Location{Address: 4096}
	use := []*model.Location{at}
	p := &model.Profile{Command: "laps", Block: 8, BinsPerOctave: 16, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10}},
		Clock:  model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: rate, RateSource: "measured"},
		Counts: []model.Count{{Name: model.CPUSampled, N: 100_000 / 2}}}
	p.Records = []model.Record{
		{Kind: model.Reuse, Use: use, Ending: model.Ending{Reuse: use}, Timing: model.Timing{Time: uint64(500 * rate), Native: 500}, Weight: model.Weight{Observations: 990, Accesses: 99000}},
		{Kind: model.Censored, Use: use, Timing: model.Timing{Time: uint64(1000 * rate), Native: 1000}, Weight: model.Weight{Observations: 10, Accesses: 1000}},
	}
	return p
}

func compareJSON(t *testing.T, args ...string) (c report.Comparison) {
	t.Helper()
	if err := json.Unmarshal([]byte(ok(t, append([]string{"compare", "--format", "json"}, args...)...)), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompare(t *testing.T) {
	exact := exactFile(t, laps(100))
	right := demoFile(t, sampled(2))
	c := compareJSON(t, right, exact)
	// 1 % is cold on both sides; the times are those of one bin. What SSX makes
	// of them is within a bin of 10 per octave of 999.
	if s := c.Scores; s.TimeL2 < 0.999 || s.StackL2 < 0.98 || s.MissMean > 0.05 {
		t.Errorf("scores %+v", s)
	}
	if c.Rate == nil || c.Rate.Error != 0 || c.Rate.True != 2 || c.Rate.AtTrue != c.Scores {
		t.Errorf("rate %+v", c.Rate)
	}
	if c.Pairs.Match != 1 || math.Abs(c.NotReused[0]-0.01) > 1e-9 || math.Abs(c.NotReused[1]-0.01) > 1e-9 || c.Cut != 0.01 || c.Lost != 0 {
		t.Errorf("%+v", c)
	}

	// A quarter of the rate puts all distances two octaves too low; the true
	// rate mends it.
	wrong := demoFile(t, sampled(0.5))
	c = compareJSON(t, wrong, exact)
	if s := c.Scores; s.TimeL2 > 0.02 || s.StackL2 > 0.02 || s.MissMax < 0.9 {
		t.Errorf("scores at a wrong rate %+v", s)
	}
	if math.Abs(c.Rate.Error+0.75) > 1e-9 || c.Rate.AtTrue.StackL2 < 0.98 {
		t.Errorf("rate %+v", c.Rate)
	}
	// Ten times the work in the same time is ten times the rate.
	if c := compareJSON(t, "--work", "10", right, exact); c.Rate.True != 20 {
		t.Errorf("ten times the work: %+v", c.Rate)
	}

	out := ok(t, "compare", wrong, exact)
	for _, want := range []string{"0.5 per nanosecond (measured); true 2,", "-75%", "never reused", "4.00KiB -   8.00KiB"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := ok(t, "compare", demoFile(t, sampled(5)), exact); !strings.Contains(strings.Join(strings.Fields(out), " "), "+150% (if it did more, say how many times by --work)") {
		t.Errorf("no word of --work in\n%s", out)
	}
	csv := ok(t, "compare", "--format", "csv", wrong, exact)
	for _, want := range []string{"quantity,from,to,value\n", "\naccess_rate_error,,,-0.75\n", "\nnever_reused_exact,,,0.01\n", "\nexact,4096,8192,0.99\n"} {
		if !strings.Contains(csv, want) {
			t.Errorf("no %q in\n%s", want, csv)
		}
	}
}

// Three instructions, each by itself: the first misses 10,000 times in a cache of 512
// words, the second 32,000 times, the third once.
func TestComparePlaces(t *testing.T) {
	var b strings.Builder
	for i, walk := range []struct{ words, n int }{{1000, 10_000}, {3200, 32_000}, {1, 60_000}} {
		for j := range walk.n {
			fmt.Fprintln(&b, i<<20+j%walk.words*8, "R", 8, 1, 4096*(i+1))
		}
	}
	exact := exactFile(t, b.String())
	live := sampled(1)
	live.Records = nil
	// One that takes the first for the worst, and nothing to miss but in these two.
	for i, n := range []int64{500, 100, 500} {
		at := []*model.Location{{Address: uint64(4096 * (i + 1))}}
		time := []uint64{1000, 3200, 1}[i]
		live.Records = append(live.Records, model.Record{Kind: model.Reuse, Use: at, Ending: model.Ending{Reuse: at}, Timing: model.Timing{Time: time, Native: time}, Weight: model.Weight{Observations: n, Accesses: float64(100 * n)}})
	}
	wrong := demoFile(t, live)
	const ratio = 42_001. / 102_000
	// 1,100 observations leave no doubt which are the two worst.
	want := []report.PlaceScore{
		{Cache: 4096, Ratio: ratio, Cover: .75, NumPlaces: 1, All: 3, Match: 10_000. / 32_000, Chance: 1},
		{Cache: 4096, Ratio: ratio, Cover: .80, NumPlaces: 2, All: 3, Match: 1, Chance: 1},
		{Cache: 4096, Ratio: ratio, Cover: .90, NumPlaces: 2, All: 3, Match: 1, Chance: 1},
		{Cache: 4096, Ratio: ratio, Cover: .95, NumPlaces: 2, All: 3, Match: 1, Chance: 1},
	}
	c := compareJSON(t, "--cache", "4k", wrong, exact)
	if len(c.PlaceScores) != len(want) {
		t.Fatalf("%+v", c.PlaceScores)
	}
	for i, q := range c.PlaceScores {
		if math.Abs(q.Ratio-want[i].Ratio) > 1e-9 || math.Abs(q.Match-want[i].Match) > 1e-9 || math.Abs(q.Chance-want[i].Chance) > 1e-9 {
			t.Errorf("%+v, want %+v", q, want[i])
		}
		q.Ratio, q.Match, q.Chance = want[i].Ratio, want[i].Match, want[i].Chance
		if q != want[i] {
			t.Errorf("%+v, want %+v", q, want[i])
		}
	}
	// Without --cache, those of the live profile: of 32k nothing misses again but what is cold.
	if c := compareJSON(t, wrong, exact); len(c.PlaceScores) != 4 || c.PlaceScores[0].Cache != 32<<10 || c.PlaceScores[0].Ratio != 4201./102_000 {
		t.Errorf("%+v", c.PlaceScores)
	}
	out := strings.Join(strings.Fields(ok(t, "compare", "--cache", "4k,l1d", wrong, exact)), " ")
	for _, want := range []string{"75% 80% 90% 95% 4.00KiB, 41.2% of accesses 1 2 2 2 of 3 places as many, by the live profile 31.2% 100.0% 100.0% 100.0% of the best choice's misses by chance 100.0% 100.0% 100.0% 100.0% by 1100 observations drawn from the exact ones", "32.0KiB, 4.1% of accesses"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if csv := ok(t, "compare", "--cache", "4k", "--format", "csv", wrong, exact); !strings.Contains(csv, "\nplaces_matched_75,4096,,0.3125\n") {
		t.Error(csv)
	}
}

// Of eight accesses one misses at a, three at b: one observation finds b in three of eight times, a, which has a third of
// its misses, in one, and no miss in four.
func TestDrawMisses(t *testing.T) {
	exact := map[string]float64{"a": 1, "b": 3}
	r := rand.New(rand.NewPCG(1, 2))
	const times = 100_000
	mean, all := 0.0, 0.0
	for range times {
		mean += model.WeightMatch(exact, report.DrawMisses(r, []string{"a", "b"}, exact, 8, 1), 1) / times
		drawn := report.DrawMisses(r, []string{"a", "b"}, exact, 8, 4)
		all += (drawn["a"] + drawn["b"]) / times
	}
	if want := (3 + 1./3) / 8; math.Abs(mean-want) > .005 || math.Abs(all-2) > .02 {
		t.Errorf("mean match %.4f, want %.4f; %.3f misses of 4 observations, want 2", mean, want, all)
	}
}

func TestCompareRefuses(t *testing.T) {
	exact, live := exactFile(t, laps(3)), demoFile(t, sampled(2))
	lines := demoFile(t, demoProfile(t))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"compare", live}, "name two profiles"},
		{[]string{"compare", exact, live}, "name the live one first"},
		{[]string{"compare", live, live}, "rdx exact -o"},
		{[]string{"compare", lines, exact}, "blocks of 64 bytes, the exact one of 8"},
		{[]string{"compare", "--work", "0", live, exact}, "--work"},
		{[]string{"compare", "--format", "x", live, exact}, "--format"},
		{[]string{"compare", "-n", "0", live, exact}, "-n 0"},
		{[]string{"compare", "--cache", "l7", live, exact}, "--cache"},
		{[]string{"compare", "--cache", "1", live, exact}, "--cache"},
		{[]string{"compare", "--by", "l7", live, exact}, "--by"},
		{[]string{"exact", "-", "--children", "-o", live}, "--children"},
	} {
		_, _, err := rdxErr(t, "", c.args...)
		var usage report.UsageError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &usage) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
	if _, _, err := rdxErr(t, "1\n", "exact", "-", "-o", filepath.Join(t.TempDir(), "no", "dir")); err == nil {
		t.Error("a profile that cannot be written is no error")
	}
}

// An exact profile read back is what was counted, also of distances whose bin
// is not that of their time.
func TestExactProfileRoundTrip(t *testing.T) {
	trace := mustRdx(t, "", "gen", "--zipf", "1", "-n", "3000", "-t", "50000", "--seed", "9")
	want := exactJSON(t, trace, "--sizes", "16k,64k")
	path := filepath.Join(t.TempDir(), "exact.pb.gz")
	_, errs, err := rdxErr(t, trace, "exact", "-", "-o", path, "--caches", "16k,64k")
	if err != nil || !strings.Contains(errs, "50.0k accesses") {
		t.Fatalf("%v %s", err, errs)
	}
	p, err := pprofout.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	times, err := p.Times()
	if err != nil {
		t.Fatal(err)
	}
	dists, err := p.Stacks(model.LogBins(10))
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]struct {
		got  *model.Hist
		want report.ExactHist
	}{"times": {times, *want.Times}, "distances": {dists, want.Distances}} {
		sum := 0.0
		for _, b := range h.want.Bins {
			if got := h.got.W[h.got.Bins.Index(b.From)]; math.Abs(got-b.Touches) > 1e-9*b.Touches { // Kaplan-Meier rounds
				t.Errorf("%s of %d: %v, want %v", name, b.From, got, b.Touches)
			}
			sum += b.Touches
		}
		if math.Abs(h.got.Finite()-sum) > 1e-9*sum || h.got.Cold != h.want.Cold {
			t.Errorf("%s: %v and %v cold, want %v and %v", name, h.got.Finite(), h.got.Cold, sum, h.want.Cold)
		}
	}
	for i, c := range report.Survey(p).Caches {
		if math.Abs(c.MissRatio-want.Misses[i].Ratio) > 1e-9 {
			t.Errorf("%d bytes: miss ratio %v, want %v", c.Size, c.MissRatio, want.Misses[i].Ratio)
		}
	}
	// The other commands read it.
	for _, args := range [][]string{{"top", "-v", path}, {"hist", "-v", "--kind", "stack", path}, {"mrc", "-v", path}, {"diff", path, path}} {
		if out := ok(t, args...); args[0] != "diff" && !strings.Contains(out, "% counted by instrumentation, 0.0% timed") {
			t.Errorf("rdx %s does not say that nothing was timed:\n%s", args[0], out)
		}
	}
}

// Of a program the profile has functions, and pairs that a profile of the
// same file can be matched with; and so has that of its recording.
func TestExactProfileOfProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	t.Setenv("RDX_ENGINE", traceEngine(t))
	dir := t.TempDir()
	bin := filepath.Join(dir, "known")
	c := exec.Command("gcc", "-g", "-O1", "-x", "c", "-o", bin, "-")
	c.Stdin = strings.NewReader(`
		static volatile long a[1000];
		__attribute__((noinline)) static long turn(void) { long s = 0; for (int i = 0; i < 1000; i++) s += a[i]; return s; }
		int main(void) { long s = 0; for (int i = 0; i < 500; i++) s += turn(); return s != 0; }`)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path, recording := filepath.Join(dir, "exact.pb.gz"), filepath.Join(dir, "t.rdt")
	mustRdx(t, "", "trace", "record", "-q", "-o", recording, "--", bin)
	for _, of := range [][]string{{"--", bin}, {recording}} {
		mustRdx(t, "", append([]string{"exact", "--block", "word", "-o", path}, of...)...)
		p, err := pprofout.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var ownStack float64
		for _, r := range p.Records {
			if report.PlaceOf(r.Use).Function == "turn" && r.Kind == model.Reuse && report.PlaceOf(r.Reuse).Function == "turn" && r.Distance >= 999*8*r.Reuses {
				ownStack += r.Reuses
			}
		}
		if ownStack != 499_000 {
			t.Errorf("of %s: %v reuses by turn of turn's words, want 499000", of[0], ownStack)
		}
	}
}
