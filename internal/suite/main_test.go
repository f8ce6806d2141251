package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever go test says is counted, and what failed and why is shown.
func TestSuite(t *testing.T) {
	var out strings.Builder
	s := &suite{out: &out, start: time.Now(), packages: 3, running: map[name]time.Time{}, text: map[name]*strings.Builder{}, tally: map[string][2]int{}}
	for line := range strings.Lines(`{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"a remark\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood","Elapsed":2.5}
{"Action":"output","Package":"m/a","Test":"TestRoot","Output":"    a_test.go:7: needs root\n"}
{"Action":"skip","Package":"m/a","Test":"TestRoot","Elapsed":0}
{"Action":"pass","Package":"m/a","Elapsed":3}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"    b_test.go:9: 1, want 2\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad","Elapsed":0.1}
{"Action":"fail","Package":"m/b","Elapsed":0.2}
{"ImportPath":"m/c","Action":"build-output","Output":"c.go:1: syntax error\n"}
{"Action":"output","Package":"m/c","Output":"FAIL\tm/c [build failed]\n"}
{"Action":"fail","Package":"m/c","Elapsed":0}
`) {
		s.line([]byte(line))
	}
	s.close()
	for _, want := range []string{"ok   m/a ", "1 tests   1 skipped", "2.5s m/a TestGood", "skipped m/a TestRoot: a_test.go:7: needs root",
		"FAIL m/b TestBad (0.1s)\n    b_test.go:9: 1, want 2", "c.go:1: syntax error", "FAIL m/c ", "1 passed, 2 failed, 1 skipped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "a remark") {
		t.Error("what a test that passed has said is printed")
	}
}

// Each package is in one of the two groups.
func TestBelow(t *testing.T) {
	for pkg, want := range map[string]bool{"sampler": true, "sampler/ptrace": true, "sampler/interp/a64": false, "collector/estimate": false, "cmd/rdx": true, "cmd/rdx-gpu": false, "model": false} {
		if got := below(module+pkg, timed) && !below(module+pkg, pure); got != want {
			t.Errorf("%s is timed: %v, want %v", pkg, got, want)
		}
	}
}

// Each test of the commands runs once, in one group or the other; other packages' names have no part in it.
func TestJobs(t *testing.T) {
	jobs := jobsOf([2][]string{{module + "sampler", module + "cmd/rdx"}, {module + "proc", module + "model", module + "why", module + "trace"}}, nil, false, time.Minute)
	if len(jobs[first]) != 2 || len(jobs[rest]) != 4 {
		t.Fatalf("%q", jobs)
	}
	has := func(argv []string, want ...string) bool {
		return strings.Contains(strings.Join(argv, " "), strings.Join(want, " "))
	}
	if has(jobs[first][0], "-skip") || !has(jobs[first][0], module+"sampler") || has(jobs[first][0], "cmd/rdx") ||
		!has(jobs[first][1], "-skip", commandsPure, module+"cmd/rdx") || !has(jobs[rest][2], "-run", commandsPure, module+"cmd/rdx") || !has(jobs[rest][0], "nice", "-n", "19") {
		t.Errorf("%q", jobs)
	}
	// What takes long is for itself, the longest first, and what does not is together.
	if !has(jobs[rest][0], "1", module+"trace") || !has(jobs[rest][1], "1", module+"model") || !has(jobs[rest][3], "1", module+"proc", module+"why") {
		t.Errorf("%q", jobs[rest])
	}
	// What mostly waits does so beside the rest.
	jobs = jobsOf([2][]string{{module + "sampler"}, {module + "bench/fleet", module + "model"}}, nil, false, time.Minute)
	if len(jobs[rest]) != 1 || len(jobs[waiting]) != 1 || has(jobs[rest][0], "bench/fleet") || !has(jobs[rest][0], module+"model") ||
		!has(jobs[waiting][0], module+"bench/fleet") || has(jobs[waiting][0], module+"model") || !has(jobs[waiting][0], "nice", "-n", "19") {
		t.Errorf("%q", jobs)
	}
	if jobs := jobsOf([2][]string{nil, {module + "cmd/rdx"}}, nil, true, time.Minute); len(jobs[first]) > 0 || len(jobs[rest]) != 1 || !has(jobs[rest][0], "-short", module+"cmd/rdx") {
		t.Errorf("-short: %q", jobs)
	}
	// What takes longest begins first, or it would run alone at the end.
	jobs = jobsOf([2][]string{nil, {module + "agent", module + "trace", module + "vm", module + "web"}}, nil, true, time.Minute)
	if !has(jobs[rest][0], module+"web", module+"trace", module+"agent", module+"vm") {
		t.Errorf("-short: %q", jobs)
	}
}

// What times nothing runs beside each other, each test of it once, and not with the rest of its package.
func TestUntimed(t *testing.T) {
	names, err := untimedTests("../../" + commands)
	if err != nil || len(names) < 50 || !slices.Contains(names, "TestKilled") || slices.Contains(names, "TestNoFreeDebugRegister") || slices.Contains(names, "TestForetoldRate") {
		t.Fatalf("%q, %v", names, err)
	}
	jobs := jobsOf([2][]string{{module + commands}, nil}, names, false, time.Minute)
	if len(jobs[streamed]) != streams || len(jobs[first]) != 1 {
		t.Fatalf("%q", jobs)
	}
	skip := jobs[first][0][slices.Index(jobs[first][0], "-skip")+1]
	for _, name := range names {
		runs := 0
		for _, argv := range jobs[streamed] {
			if regexp.MustCompile(argv[slices.Index(argv, "-run")+1]).MatchString(name) {
				runs++
			}
		}
		if runs != 1 || !regexp.MustCompile(skip).MatchString(name) {
			t.Errorf("%s runs %d times, skipped elsewhere by %s", name, runs, skip)
		}
	}
	if regexp.MustCompile(skip).MatchString("TestForetoldRate") {
		t.Error("TestForetoldRate is skipped")
	}
}
