package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/fleet/backend"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// windows are profiles of ten seconds each, of a program that has these shares of misses in a ring
// of 4 MiB.
func windows(shares []float64, n int, seed uint64) (files []string, all []*model.Profile) {
	for i, s := range shares {
		p := backend.Made{Name: "phased", Share: s, Lines: 1 << 16, Seed: seed + uint64(i), N: n}.Profile()
		p.Start, p.Duration = time.Unix(1.8e9+10*int64(i), 0), 10*time.Second
		files, all = append(files, fmt.Sprintf("w%d", i)), append(all, p)
	}
	return files, all
}

func repeat(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }

// A change that is there is found where it is, and none where there is none.
func TestPhases(t *testing.T) {
	files, all := windows(slices.Concat(repeat(.1, 8), repeat(.35, 6), repeat(.1, 7)), 400, 10)
	slices.Reverse(all) // they are put in order
	slices.Reverse(files)
	r, err := report.NewPhases(files, all, nil, model.CurveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Phases) != 3 || r.Phases[0].Last != 7 || r.Phases[1].First != 8 || r.Phases[1].Last != 13 {
		t.Fatalf("phases %+v", r.Phases)
	}
	for i, want := range []float64{.1, .35, .1} {
		if q := r.Phases[i].Ratios[1]; q.Low > want || q.High < want {
			t.Errorf("phase %d: %v, want %v", i, q, want)
		}
	}
	if w := r.Windows[3]; w.Pair == "" || w.Rate < 1e6 {
		t.Errorf("window: %+v", w)
	}
}

// Of twenty tables without a change about one has a star, of ten hardly more than two.
func TestPhasesByChance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	wrong := 0
	const tables = 10
	for k := range uint64(tables) {
		files, all := windows(repeat(.15, 10), 300, 1000*k)
		r, err := report.NewPhases(files, all, []string{"1m"}, model.CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Phases) > 1 {
			wrong++
		}
	}
	if wrong > 3 { // of one half on average: one in 500 runs
		t.Errorf("%d of %d tables without a change have one", wrong, tables)
	}
}

func TestPhasesCommand(t *testing.T) {
	dir := t.TempDir()
	_, all := windows([]float64{.1, .1, .4}, 200, 5)
	var args []string
	for i, p := range all {
		path := filepath.Join(dir, fmt.Sprintf("w-%04d.pb.gz", i+1))
		if err := pprofout.WriteFile(path, p); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	for _, format := range []string{"text", "csv", "json", "svg"} {
		out, err := rdx(t, append([]string{"phases", "--format", format}, args...)...)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if format == "svg" {
			d := xml.NewDecoder(bytes.NewReader([]byte(out)))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("svg: %v", err)
				}
			}
		}
	}
	if _, err := rdx(t, "phases", args[0]); err == nil {
		t.Error("one file has phases")
	}
}

func TestNumbered(t *testing.T) {
	for in, want := range map[string]string{"rdx.pb.gz": "rdx-0007.pb.gz", "/a.b/c.pb.gz": "/a.b/c-0007.pb.gz", "x": "x-0007", ".hidden.gz": ".hidden-0007.gz"} {
		if got := numbered(in, 7); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// A window that tells too little has a band and no number, and one phase is one.
func TestPhasesNotQuoted(t *testing.T) {
	for n, want := range map[int]bool{400: false, 6: true} {
		files, all := windows(repeat(.1, 3), n, 10)
		r, err := report.NewPhases(files, all, []string{"1m"}, model.CurveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Text()
		if got := strings.Contains(text, " ? ["); got != want {
			t.Errorf("%d holds a window:\n%s", n, text)
		}
		if !strings.Contains(text, "\n1 phase\n") || !strings.Contains(text, "\n0s ") {
			t.Errorf("%d holds a window:\n%s", n, text)
		}
	}
}
