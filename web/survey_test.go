package web

// Needs: nothing.

import (
	"encoding/json"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// What is said of a profile does not change by a digit where the curve is taken and not estimated again.
func TestSurveyOfCurve(t *testing.T) {
	profiles := []Profile{{"large", written(t, large(5000, 6))}}
	for _, name := range []string{"words.pb.gz", "good.pb.gz", "bad.pb.gz", "sharing.pb.gz"} {
		profiles = append(profiles, example(t, name))
	}
	for _, x := range profiles {
		for _, stack := range append([]string{""}, stackNames(x.Raw)...) {
			p, err := report.Ready(x.Raw, stack)
			if err != nil {
				t.Fatal(err)
			}
			e, err := p.Estimated()
			if err != nil {
				t.Fatal(err)
			}
			d := &Data{Block: p.Block, Sizes: grid(p, e, nil)}
			curve, err := d.draw(p, e, nil)
			if err != nil || curve == nil {
				t.Fatal(x.Name, err)
			}
			want, _ := json.Marshal(report.Survey(p))
			if got, err := json.Marshal(report.SurveyOf(p, curve)); err != nil || string(got) != string(want) {
				t.Errorf("%s, stack %q: (%v)\n%s\nwant\n%s", x.Name, stack, err, got, want)
			}
			few := &model.Curve{Points: curve.Points[:1]} // without the caches' sizes: they are estimated
			if got, err := json.Marshal(report.SurveyOf(p, few)); err != nil || string(got) != string(want) {
				t.Errorf("%s, stack %q, of one size: (%v)\n%s\nwant\n%s", x.Name, stack, err, got, want)
			}
		}
	}
}
