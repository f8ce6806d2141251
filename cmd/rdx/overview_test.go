package main

import (
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// Of nothing no miss ratio is claimed; the reader is told why there is nothing, and what
// to do.
func TestOverviewOfNothing(t *testing.T) {
	for want, c := range map[string][]model.Count{
		"ran for only 4ms of the time, it waits":            {{Name: "CPU time of the target, ns", N: 4e6}},
		"all 3 samples were lost, most to \"use not seen\"": {{Name: "CPU time of the target, ns", N: 4e6}, {Name: "lost: use not seen", N: 3}},
		"a larger --overhead":                               {{Name: "CPU time of the target, ns", N: 4e9}},
	} {
		p := &model.Profile{Block: 8, Caches: []model.Cache{{Level: "L2", Size: 1 << 20}}, Counts: c}
		var b strings.Builder
		if err := writeOverview(&b, survey(p)); err != nil {
			t.Fatal(err)
		}
		out := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(out, want) || strings.Contains(out, "predicted to miss") || !strings.Contains(out, "observations none") {
			t.Errorf("want %q in:\n%s", want, b.String())
		}
	}
}
