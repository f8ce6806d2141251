package web

// Needs Chromium.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// TestCompare: two profiles side by side have rdx diff's numbers, and its warnings; what is more than chance is marked by a word.
func TestCompare(t *testing.T) {
	b := openBrowser(t)
	all := []Profile{example(t, "bad.pb.gz"), example(t, "good.pb.gz")}
	var ready []*model.Profile
	for _, x := range all {
		p, err := report.Ready(x.Raw, "")
		if err != nil {
			t.Fatal(err)
		}
		ready = append(ready, p)
	}
	want, err := report.NewDiff(ready[0], ready[1], nil, model.CurveOptions{}, "misses")
	if err != nil {
		t.Fatal(err)
	}
	b.show(serve(t, Options{}, all...), "page=compare&other=1", "compare")
	b.await("document.querySelectorAll('section[aria-label=changes] table').length === 2")
	var rows []string
	b.eval("[...document.querySelectorAll('section[aria-label=changes] tbody tr')].map((r) => [...r.querySelectorAll('th, td')].map((c) => c.textContent.trim()).join('|'))", &rows)
	signed := func(v float64) string {
		switch {
		case v > 0:
			return "+" + report.Percent(v, 1)
		case v < 0:
			return "\u2212" + report.Percent(-v, 1)
		}
		return report.Percent(0, 1)
	}
	marked := 0
	line := func(before, after, change, low, high float64, significant bool) string {
		chance := "may be chance"
		if significant {
			marked++
			chance = "\u2605 less"
			if change > 0 {
				chance = "\u2605 more"
			}
		}
		return fmt.Sprintf("%s|%s|%s [%s, %s]|%s", report.Percent(before, 1), report.Percent(after, 1), signed(change), signed(low), signed(high), chance)
	}
	var lines []string
	for _, c := range want.Caches {
		name := fmt.Sprintf("%s %s", c.Level, report.Bytes(float64(c.Bytes)))
		if c.Note != "" {
			name += " " + c.Note
		}
		lines = append(lines, name+"|"+line(c.Before.Value, c.After.Value, c.Change.Value, c.Change.Low, c.Change.High, c.Significant))
	}
	lines = append(lines, "all pairs||"+line(want.Total.Before.Value, want.Total.After.Value, want.Total.Change.Value, want.Total.Change.Low, want.Total.Change.High, want.Total.Significant))
	for _, q := range want.Pairs {
		lines = append(lines, fmt.Sprintf("%s \u2192 %s|%d, %d|", q.Use, q.Reuse, q.Seen[0], q.Seen[1])+line(q.Before.Value, q.After.Value, q.Change.Value, q.Change.Low, q.Change.High, q.Significant))
	}
	if got, want := strings.Join(rows, "\n"), strings.Join(lines, "\n"); got != want {
		t.Errorf("the page has\n%s\nrdx diff\n%s", got, want)
	}
	if marked < 3 {
		t.Errorf("%d changes are more than chance: too few to see anything", marked)
	}
	if s := b.text(".warnings"); len(want.Notes) == 0 || !strings.Contains(s, want.Notes[0]) {
		t.Errorf("rdx diff warns %q, the page %q", want.Notes, s)
	}
	b.accessible("compare")
	b.clean()
}
