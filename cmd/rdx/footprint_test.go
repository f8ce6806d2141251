package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// A loop over m words touches min(w, m) of them in w accesses.
func TestHistFootprint(t *testing.T) {
	const m = 1024
	p := &model.Profile{Duration: time.Second, Block: 8, BinsPerOctave: 64, Clock: model.Clock{Unit: "accesses", Rate: 1},
		Records: []model.Record{{Kind: model.Reuse, Timing: model.Timing{Time: m}, Weight: model.Weight{Observations: 100, Accesses: 1e6}}}}
	path := demoFile(t, p)
	out := ok(t, "hist", "--kind", "footprint", "--format", "json", path)
	var c struct {
		Points []report.FootprintPoint `json:"footprint"`
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Points) < 10 {
		t.Fatalf("%d points: %s", len(c.Points), out)
	}
	for _, q := range c.Points {
		want := math.Min(float64(q.Window), m)
		if math.Abs(q.Blocks-want) > 0.02*want || q.Bytes != 8*q.Blocks {
			t.Errorf("window %d: %.1f blocks, %.1f bytes, want %.0f blocks", q.Window, q.Blocks, q.Bytes, want)
		}
	}
	if text := ok(t, "hist", "--kind", "footprint", path); !strings.Contains(text, "window") || !strings.Contains(text, "8.00KiB") {
		t.Errorf("text:\n%s", text)
	}
	if text := ok(t, "hist", "--kind", "footprint", "--format", "csv", path); !strings.HasPrefix(text, "window_accesses,blocks,bytes\n1,") {
		t.Errorf("csv:\n%s", text)
	}
}
