// Needs: nothing; TestDoctor and TestDoctorForced alone need root, bpf, watchpoint, ptrace.
package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	k, err := sampler.Load(1, sampler.Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	k.Close()
	cmd := exec.Command(os.Args[0], "doctor", "--json")
	cmd.Env = append(os.Environ(), "RDX_TEST_MAIN=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var d diagnosis
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	if !d.Usable || d.SelfTest == nil {
		t.Fatalf("not usable\n%s", out)
	}
	s := d.SelfTest
	t.Logf("%+v", *s)
	if s.Unwatched { // as on machines without watchpoints
		if s.ReadAhead == 0 {
			t.Error("nothing was read ahead")
		}
		return
	}
	ran := make(map[string]bool)
	for _, p := range s.Programs {
		ran[p.Name] = p.Runs > 0 && p.Mean > 0 && p.Mean < time.Millisecond
	}
	if !ran["on_trap0"] || !ran["on_sample"] && !ran["on_access0"] {
		t.Errorf("times of the programs: %+v", s.Programs)
	}
	if s.Pairs < minPairs || s.Right < .8 || s.Lost > .05 {
		t.Errorf("%d pairs, %.3f right, %.3f lost", s.Pairs, s.Right, s.Lost)
	}
}

func TestDoctorPrint(t *testing.T) {
	d := diagnosis{Checks: []sampler.Check{
		{Name: "rights", Grade: sampler.Good, Found: "all"},
		{Name: "ptrace", Grade: sampler.Missing, Found: "refused", Consequence: "threads cannot be held", Remedy: "run as root"},
	}}
	var b bytes.Buffer
	if err := d.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ok        rights", "no        ptrace", "so: threads cannot be held", "do: run as root", "cannot profile on this machine\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A source or clock that is asked for and not there: doctor says so of this
// choice alone, and how to get one that works.
func TestDoctorForced(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	k, err := sampler.Load(1, sampler.Needs{})
	if err != nil {
		t.Skip("needs root and bpf:", err)
	}
	k.Close()
	for flags, says := range map[string]string{
		"--source pebs": "pebs can't be the source: no PEBS: ",
		"--source ibs":  "ibs can't be the source: no IBS: ",
		"--source pmu":  "pmu can't be the source: ",
		"--clock pmu":   "no counter can be the clock: ",
	} {
		t.Run(flags, func(t *testing.T) {
			if strings.Contains(flags, "bs") {
				needs.Watchpoints(t) // else it says that they are missing
			}
			cmd := exec.Command(os.Args[0], append([]string{"doctor"}, strings.Fields(flags)...)...)
			cmd.Env = append(os.Environ(), "RDX_TEST_MAIN=1")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Skipf("this machine has it: %s", out)
			}
			for _, want := range []string{"no        self-test", says, "a session with " + flags + " does not work here",
				"do: leave it out", "rdx cannot profile on this machine with " + flags} {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if code := cmd.ProcessState.ExitCode(); code != exitFailed {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// What no machine could do is bad usage, and nothing is tried out for it.
func TestDoctorBadChoice(t *testing.T) {
	for _, args := range [][]string{{"--source", "spe"}, {"--clock", "tsc"}} {
		cmd := newRootCmd()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"doctor"}, args...))
		err := cmd.Execute()
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), args[1]) || out.Len() > 0 {
			t.Errorf("%q: %v, %q", args, err, &out)
		}
	}
}

func TestSelfTestJudge(t *testing.T) {
	p := &model.Profile{
		Records: []model.Record{
			{Kind: model.Reuse, Timing: model.Timing{Native: 1000}, Weight: model.Weight{Observations: 6}},
			{Kind: model.Reuse, Timing: model.Timing{Native: 1400}, Weight: model.Weight{Observations: 1}},     // within half an octave
			{Kind: model.Reuse, Timing: model.Timing{Native: 1500}, Weight: model.Weight{Observations: 1}},     // not
			{Kind: model.Censored, Timing: model.Timing{Native: 1400}, Weight: model.Weight{Observations: 10}}, // its reuse may have come in time
			{Kind: model.Censored, Timing: model.Timing{Native: 1500}, Weight: model.Weight{Observations: 2}},  // not
		},
		Counts: []model.Count{{Name: model.Holds, N: 12}, {Name: model.LostBecause.Of("a"), N: 2}, {Name: model.LostBecause.Of("b"), N: 1}, {Name: model.Samples, N: 99}},
	}
	s := selfTest{Expected: 1000}
	s.judge(p)
	if s.Pairs != 8 || s.Right != .7 || s.Censored != .5 || s.Lost != .25 {
		t.Errorf("%+v", s)
	}
	if got := lossList(&s); got != "a (2), b (1)" {
		t.Errorf("losses %q", got)
	}
}
