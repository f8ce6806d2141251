package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// Thread 1 uses what thread 2 writes: half of its accesses are invalidated, a
// quarter falsely shared.
func sharingProfile(t *testing.T) string {
	t.Helper()
	p := demoProfile(t)
	p.Records = nil
	at := func(name string) []*model.Location {
		return []*model.Location{{Address: 0x1000, Lines: []model.Line{{Function: name, SystemName: name, File: "s.c", Line: 7}}}}
	}
	add := func(stack model.StackKind, kind model.Kind, tid, end int, accesses float64) {
		r := model.Record{Kind: kind, Stack: stack, TID: tid, Use: at("reader"), Timing: model.Timing{Time: 1000, Native: 1000}, Weight: model.Weight{Observations: 10, Accesses: accesses}}
		if kind != model.Censored {
			r.Reuse = at("writer")
		}
		w := model.Words{EndTID: end}
		if end != 0 {
			w.Address, w.Written = 0x7f0000001008, 0x7f0000001008
		}
		if kind == model.FalseSharing {
			w.Written += 32
		}
		r.SetWords(w)
		p.Records = append(p.Records, r)
	}
	add(model.StackPrivate, model.Reuse, 1, 0, 4000)
	add(model.StackPrivate, model.Invalidated, 1, 2, 4000)
	add(model.StackPrivate, model.FalseSharing, 1, 2, 2000)
	add(model.StackPrivate, model.Reuse, 2, 0, 8000)
	add(model.StackShared, model.Reuse, 1, 2, 16000)
	return demoFile(t, p)
}

func TestThreads(t *testing.T) {
	file := sharingProfile(t)
	out := ok(t, "threads", file)
	t.Log("\n" + out)
	for _, want := range []string{
		"2 threads",
		"         1    16.0k    20    0.0%   50.0%    0.0%    0.0%    0.0%    0.0%   50.0%   25.0%",
		"         2    16.0k    10    0.0%  100.0%",
		"         2 -> 1                       8.00k              4.00k",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if rows := strings.Split(strings.TrimSpace(ok(t, "threads", "--format", "csv", "-n", "1", file)), "\n"); len(rows) != 3 || !strings.HasPrefix(rows[2], "0,1,") {
		t.Errorf("csv of one thread and the rest: %q", rows)
	}
}

func TestTopInvalidations(t *testing.T) {
	file := sharingProfile(t)
	out := ok(t, "top", "--by", "invalidations", file)
	t.Log("\n" + out)
	for _, want := range []string{
		"25.0% of the accesses find their datum written by another thread, 12.5% another word of its line",
		" 25.0%    8.00k    10 true    writer  s.c:7",
		" 12.5%    4.00k    10 false   writer  s.c:7",
		"-> reader  s.c:7",
		"lines 0x7f0000001000-0x7f0000001040, read at +8, written at +40; 1 pair of threads",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if _, _, err := rdxErr(t, "", "top", "--by", "invalidations", demoFile(t, demoProfile(t))); err == nil || !strings.Contains(err.Error(), "--stack private") {
		t.Errorf("a profile without other threads: %v", err)
	}
	// Where none was seen, that is said of as many as there are; and which stack it is of.
	p, err := pprofout.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p.Records = slices.DeleteFunc(p.Records, func(r model.Record) bool { return r.Kind == model.Invalidated || r.Kind == model.FalseSharing })
	out = ok(t, "top", "--by", "invalidations", demoFile(t, p))
	if !strings.Contains(out, "less than 50.0% of the accesses find their datum written by another thread, less than 50.0%") || strings.Contains(out, "seen sharing") {
		t.Errorf("no invalidation:\n%s", out)
	}
	for stack, want := range map[string]string{"private": "stack        private: what", "shared": "stack        shared: a reuse"} {
		if out := ok(t, "mrc", "-v", "--stack", stack, file); !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
}

// Each stack has a curve of its own; what is not in the profile is an error.
func TestMrcStack(t *testing.T) {
	file := sharingProfile(t)
	private, shared := ok(t, "mrc", "--stack", "private", "--format", "csv", file), ok(t, "mrc", "--stack", "shared", "--format", "csv", file)
	if private == shared || ok(t, "mrc", "--format", "csv", file) != private {
		t.Errorf("private:\n%s\nshared:\n%s", private, shared)
	}
	if _, _, err := rdxErr(t, "", "mrc", "--stack", "own", file); err == nil || !strings.Contains(err.Error(), "no own stack") {
		t.Errorf("own: %v", err)
	}
}

// Where no other word of a line could be watched, that none was seen written tells nothing: false sharing
// is not known, and nobody says that there is none.
func TestFalseSharingUnknown(t *testing.T) {
	p := demoProfile(t)
	p.Records = []model.Record{{Kind: model.Reuse, Stack: model.StackPrivate, TID: 1, Timing: model.Timing{Time: 1000, Native: 1000}, Weight: model.Weight{Observations: 10, Accesses: 4000}}}
	p.Counts = append(p.Counts, model.Count{Name: model.FalseSharingUnknown, N: 10})
	file := demoFile(t, p)
	for command, want := range map[string]string{"top --by invalidations": "an unknown share another word of its line", "threads": " 0.0% ?"} {
		out := strings.Join(strings.Fields(ok(t, append(strings.Fields(command), "-v", file)...)), " ")
		if !strings.Contains(out, want) || !strings.Contains(out, "false sharing is not known") {
			t.Errorf("%s: no %q in %s", command, want, out)
		}
	}
}
