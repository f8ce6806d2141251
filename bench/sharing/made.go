package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// madeSource is the program whose sharing is known by construction.
const madeSource = "cmd/rdx/testdata/safety/sharing.c"

// made are the shares of accesses that a kind of program is made for, of its
// functions KIND_a and KIND_b: how many another thread's write to the word, or
// elsewhere in its line, comes before their reuse, and, in a shared stack, how
// many are next used by the other thread.
var made = []struct {
	kind                          string
	invalidated, falsely, foreign [2]float64
	private, shared               bool // which of them are defined
}{
	{kind: "pingpong", private: true, shared: true, invalidated: [2]float64{.5, .5}, foreign: [2]float64{.5, .5}},
	{kind: "false", private: true, falsely: [2]float64{.5, .5}},
	{kind: "wide", private: true, falsely: [2]float64{.5, 1. / 14}},
	{kind: "readmostly", private: true, shared: true, invalidated: [2]float64{0, 1. / 8}, foreign: [2]float64{8. / 9, 1}},
	{kind: "queue", private: true, shared: true, invalidated: [2]float64{0, 1}, foreign: [2]float64{1, 1}},
	{kind: "private", private: true, shared: true},
}

// cell is one measured share of uses in one function.
type cell struct{ part, all, squares float64 }

func (c *cell) add(weight float64, observations int64, counts bool) {
	c.all += weight
	c.squares += weight * weight / float64(max(observations, 1))
	if counts {
		c.part += weight
	}
}

func (c cell) share() float64 { return c.part / c.all }

// worth is how many observations of equal weight these are worth.
func (c cell) worth() float64 { return c.all * c.all / c.squares }

// compareMade prints, for every share of the programs made for it, what was
// measured in a run of so many seconds.
func compareMade(seconds float64) error {
	dir, err := os.MkdirTemp("", "rdx-sharing")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "sharing")
	if out, err := exec.Command("gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", bin, madeSource).CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w: %s", madeSource, err, out)
	}
	fmt.Printf("%-10s %-9s %-14s %9s %9s %9s %7s\n", "program", "function", "share", "measured", "true", "off", "worth")
	worst := 0.0
	row := func(kind, function, what string, c cell, want float64) {
		fmt.Printf("%-10s %-9s %-14s %9.3f %9.3f %+9.3f %7.0f\n", kind, function, what, c.share(), want, c.share()-want, c.worth())
		worst = max(worst, math.Abs(c.share()-want))
	}
	for _, m := range made {
		if !strings.Contains(m.kind, *only) {
			continue
		}
		for _, stack := range []string{"private", "shared"} {
			if stack == "private" && !m.private || stack == "shared" && !m.shared {
				continue
			}
			p, err := profileMade(dir, bin, m.kind, stack, seconds)
			if err != nil {
				return err
			}
			for i, f := range []string{"_a", "_b"} {
				invalidated, falsely, foreign := sharesOf(p, m.kind+f)
				if stack == "private" {
					row(m.kind, f[1:], "invalidated", invalidated, m.invalidated[i])
					row(m.kind, f[1:], "falsely shared", falsely, m.falsely[i])
				} else {
					row(m.kind, f[1:], "next by other", foreign, m.foreign[i])
				}
			}
		}
	}
	fmt.Printf("furthest off: %.3f\n", worst)
	return nil
}

func profileMade(dir, bin, kind, stack string, seconds float64) (*model.Profile, error) {
	out := filepath.Join(dir, "p.pb.gz")
	if _, err := run("run", "-q", "--stack", stack, "--overhead", *overhead, "-o", out, "--", bin, kind, fmt.Sprint(math.Ceil(seconds))); err != nil {
		return nil, err
	}
	p, err := pprofout.ReadFile(out)
	if err == nil {
		err = p.Derive()
	}
	return p, err
}

// sharesOf are of the uses in one function.
func sharesOf(p *model.Profile, function string) (invalidated, falsely, foreign cell) {
	for i := range p.Records {
		r := &p.Records[i]
		if len(r.Use) == 0 || len(r.Use[0].Lines) == 0 || r.Use[0].Lines[0].Function != function {
			continue
		}
		switch r.Kind {
		case model.FalseSharing:
			falsely.part += r.Accesses
		case model.Invalidated, model.Reuse:
			w := r.Estimated()
			invalidated.add(w, r.Observations, r.Kind == model.Invalidated)
			foreign.add(w, r.Observations, r.Words().EndTID != 0)
			falsely.add(w, r.Observations, false)
		}
	}
	return invalidated, falsely, foreign
}
