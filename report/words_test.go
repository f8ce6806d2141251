// Needs: nothing.
package report

import (
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// Of a long command the program's folder goes first.
func TestShortCommand(t *testing.T) {
	for _, c := range []struct {
		command, want string
		n             int
	}{
		{"/usr/lib/python3.11/bin/python3 loc.py", "python3 loc.py", 20},
		{"/usr/bin/sort words", "/usr/bin/sort words", 20},
		{"/usr/lib/python3.11/bin/python3", "python3", 20},
		{"./sort --parallel=1 words", "./sort -...=1 words", 19},
		{"/bin/sort --parallel=1 words -o /dev/null", "sort --p...ev/null", 18},
	} {
		if got := shortCommand(c.command, c.n); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// warnings are those of a profile, on one line each.
func warnings(p *model.Profile) string { return strings.Join(Survey(p).Warnings, "\n") }

// A program that runs for seconds may have no more time to give: then more overhead is what helps.
func TestMoreSamples(t *testing.T) {
	p := &model.Profile{Duration: time.Second, Block: 64, Records: []model.Record{{Kind: model.Reuse, Weight: model.Weight{Observations: 9, Accesses: 90}}}}
	const want = "only 9 observations: differences below 100.0% are chance; profile longer"
	if got := warnings(p); !strings.Contains(got, want+", or with more --overhead") {
		t.Error(got)
	}
	p.Duration = time.Minute
	if got := warnings(p); !strings.Contains(got, want) || strings.Contains(got, "--overhead") {
		t.Error(got)
	}
}

// What costs time beside the overhead can be left out, and that is said.
func TestProbesHaveARemedy(t *testing.T) {
	p := &model.Profile{Duration: time.Minute, Block: 64, Comments: []string{"following probes took 1s of CPU time, 4% of the target's, beside it: that is not in the overhead"}}
	var b strings.Builder
	if err := WriteOverview(&b, Survey(p)); err != nil || !strings.Contains(b.String(), "(--measure-rate=false does without,") {
		t.Errorf("%v: %s", err, &b)
	}
}

// A program whose threads nobody looked at together is told nothing of other threads.
func TestNotWatchedIsSaid(t *testing.T) {
	for stack, want := range map[model.StackKind]string{
		model.StackOwn:     "6 observations have only what was read ahead of them (word touched too often before the use)",
		model.StackPrivate: "6 observations were not watched in all threads (word touched too often before the use)",
	} {
		p := &model.Profile{Duration: time.Minute, Block: 64, Records: []model.Record{{Kind: model.Reuse, Stack: stack, Weight: model.Weight{Observations: 9, Accesses: 90}}}}
		p.AddCount(model.NotWatched.Of(model.TouchedOften), 6)
		if got := warnings(p); !strings.Contains(got, want) {
			t.Error(got)
		}
	}
}

// Pairs that were seen once stand behind the others, are in no sum of theirs, and are counted in the same unit.
func TestTopOnce(t *testing.T) {
	pair := func(share float64, seen int64) *Pair {
		return &Pair{Value: .5 * share, Share: share, Observations: seen}
	}
	p := &model.Profile{Duration: time.Minute}
	top := &Top{Profile: Survey(p), By: "time", Metric: TimeMetric(nil), Total: .5, All: 3, Pairs: []*Pair{pair(.6, 1), pair(.3, 4), pair(.1, 2)}}
	top.Columns(p, nil)
	text := top.Text()
	for _, want := range []string{" 15.0%  15.0% ", "  5.0%  20.0% ", "\n1 pair, with 30.0% of the time, was seen once, which may be chance"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if last := top.Pairs[2]; last.Observations != 1 || last.Cumulative < .999 || last.Cumulative > 1.001 {
		t.Errorf("%+v", last)
	}
}

// A list of nothing says what there is instead, once.
func TestTopOfNothing(t *testing.T) {
	p := &model.Profile{Duration: time.Minute, Block: 64}
	list := func() string {
		return (&Top{Profile: Survey(p), By: "time", Metric: TimeMetric(nil), Other: "--by reuses"}).Text()
	}
	if text := list(); strings.Contains(text, "--by") || !strings.Contains(text, "profile longer") {
		t.Error(text)
	}
	if text := TopData(p, TimeMetric(nil), 9).Text(); strings.Contains(text, "its first pair") {
		t.Error(text)
	}
	p.Records = []model.Record{{Kind: model.Reuse, Stack: model.StackPrivate, Weight: model.Weight{Observations: 9, Accesses: 90}}}
	if text := list(); !strings.Contains(text, "--by invalidations") {
		t.Error(text)
	}
}

// What may come in is a bound where the miss ratio is one, at the fastest rate that may be.
func TestTrafficIsBounded(t *testing.T) {
	for n, want := range map[int64]string{2000: "L1d 64.0GiB/s\n", 2: "L1d at most "} {
		p := &model.Profile{Duration: time.Minute, Block: 64, BinsPerOctave: 16, Caches: []model.Cache{{Level: "L1d", Size: 32 << 10, Line: 64}},
			Clock: model.Clock{Name: "cpu-time", Unit: "nanoseconds", Rate: 1, RateLow: 1, RateHigh: 2}}
		p.AddCount(model.CPUSampled, 1e9)
		for range n {
			r := model.Record{Kind: model.Reuse, TID: 1, Weight: model.Weight{Observations: 1, Accesses: float64(1<<30) / float64(n)}, Timing: model.Timing{Native: 1 << 20, Time: 1 << 20}}
			p.Records = append(p.Records, r)
		}
		if err := p.Derive(); err != nil {
			t.Fatal(err)
		}
		l, err := NewTrafficList(p, 9)
		if err != nil {
			t.Fatal(err)
		}
		if text := l.Text(); !strings.Contains(text, want) {
			t.Errorf("%d observations: no %q in\n%s", n, want, text)
		}
	}
}

// The exact engine does not tell who wrote: that is no thread 0.
func TestWriterName(t *testing.T) {
	if got := []string{writerName(0), writerName(12)}; got[0] != "not known" || got[1] != "12" {
		t.Error(got)
	}
}
