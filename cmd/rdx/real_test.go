// Needs: root, bpf, watchpoint; and of gcc with OpenMP, sort, stress-ng, javac and
// jcmd, node whichever a test names. Programs with threads as they are in use: they must come to
// the right end, and be seen.
package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

// seen says of a profile how many observations there were, of how many threads,
// and what share of them is of a function whose name contains one of the names.
func seen(p *model.Profile, names ...string) (observations int64, threads int, share float64) {
	tids := map[int]bool{}
	var named int64
	for i := range p.Records {
		r := &p.Records[i]
		observations += r.Observations
		tids[r.TID] = true
		if len(r.Use) > 0 && len(r.Use[0].Lines) > 0 &&
			slices.ContainsFunc(names, func(n string) bool { return strings.Contains(r.Use[0].Lines[0].Function, n) }) {
			named += r.Observations
		}
	}
	return observations, len(tids), float64(named) / float64(max(observations, 1))
}

// assertSeen wants observations of some threads, most of them in the functions
// that the program works in, and next to no loss.
func assertSeen(t *testing.T, p *model.Profile, threads int, share float64, names ...string) {
	t.Helper()
	n, of, named := seen(p, names...)
	t.Logf("%d observations of %d threads, %.0f %% in %v; sampled %v, not %v", n, of, 100*named, names,
		time.Duration(p.CountOf(model.CPUSampled)), time.Duration(p.CountOf(model.CPUMasked)))
	if n < leastSeen || of < threads || named < share {
		t.Errorf("want %d observations of %d threads, %.0f %% in %v: %v", leastSeen, threads, 100*share, names, p.Counts)
	}
	var lost int64
	for _, c := range p.Counts {
		if model.LostBecause.Has(c.Name) {
			lost += c.N
		}
	}
	if float64(lost) > .05*float64(n) {
		t.Errorf("%d lost: %v", lost, p.Counts)
	}
}

// assertSeenBoth is assertSeen of a session with --stack both: each stack has observations of its own, and
// those the words of which could not be watched in all threads are counted.
func assertSeenBoth(t *testing.T, p *model.Profile, threads int, share float64, names ...string) {
	t.Helper()
	n, of, named := seen(p, names...)
	private, _, _ := seen(p.OnStack(model.StackPrivate))
	shared, _, _ := seen(p.OnStack(model.StackShared))
	var lost int64 // records of them
	for i := range p.Records {
		if p.Records[i].Kind == model.Lost {
			lost += p.Records[i].Observations
		}
	}
	var counted, unwatched int64
	for _, c := range p.Counts {
		if model.LostBecause.Has(c.Name) {
			counted += c.N
		}
		if model.NotWatched.Has(c.Name) {
			unwatched += c.N
		}
	}
	t.Logf("%d observations, %d private and %d shared, of %d threads, %.0f %% in %v; %d holds, lost %d, read ahead only %d", n, private, shared, of, 100*named, names, p.CountOf(model.Holds), counted, unwatched)
	if n < leastSeen || private < 20 || shared < 20 || of < threads || named < share {
		t.Errorf("want %d observations of %d threads, 20 of each stack, %.0f %% in %v: %v", leastSeen, threads, 100*share, names, p.Counts)
	}
	if lost > counted {
		t.Errorf("%d records of what was lost, %d counted: %v", lost, counted, p.Counts)
	}
}

// leastSeen is how many observations of a program assertSeen wants, and enough are so many that one hold which is lost, of
// some eight of them, is not too much.
const leastSeen, enough = 100, 250

// attachEnough attaches for a second, or for as many as it takes to see enough: beside other work the program has little CPU time.
func attachEnough(t *testing.T, pid int, args ...string) *model.Profile {
	t.Helper()
	const longest = 16 * time.Second
	for d := time.Second; ; d *= 2 {
		p := attach(t, pid, append(args, "-d", d.String())...).profile()
		assertFree(t, pid)
		if n, _, _ := seen(p); n >= enough || d >= longest {
			return p
		}
	}
}

func TestRealOpenMP(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "gcc")
	bin := filepath.Join(t.TempDir(), "openmp")
	if out, err := exec.Command("gcc", "-O2", "-fopenmp", "-o", bin, "testdata/real/openmp.c").CombinedOutput(); err != nil {
		t.Skipf("needs gcc with OpenMP: %s", out)
	}
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=2", "OMP_WAIT_POLICY=passive")
	p := startCmd(t, cmd)
	if p.line() != "ready" {
		t.Fatal("not ready")
	}
	for _, stack := range []string{"own", "both"} {
		profile := attachEnough(t, p.pid, "--stack", stack)
		if stack == "own" {
			assertSeen(t, profile, 2, .5, "relax")
		}
	}
	t.Log(p.end())
}

func TestRealJava(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "java", "javac", "jcmd")
	dir := t.TempDir()
	if out, err := exec.Command("javac", "-d", dir, "testdata/real/Work.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v: %s", err, out)
	}
	p := target(t, "java", "-XX:+PreserveFramePointer", "-cp", dir, "Work")
	// The names of compiled code, in a perf map.
	if out, err := exec.Command("jcmd", fmt.Sprint(p.pid), "Compiler.perfmap").CombinedOutput(); err != nil {
		t.Skipf("needs a JVM that writes perf maps (from 17 on): %s", out)
	}
	t.Cleanup(func() { os.Remove(fmt.Sprintf("/tmp/perf-%d.map", p.pid)) })
	profile := attachEnough(t, p.pid)
	assertSeen(t, profile, 2, .5, "Work.work", "Work::work")
	profile = attachEnough(t, p.pid, "--stack", "both")
	assertSeenBoth(t, profile, 2, .5, "Work.work", "Work::work")
	p.end()
}

func TestRealNode(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "node")
	script, err := filepath.Abs("testdata/real/work.js")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "--perf-basic-prof", script)
	cmd.Dir = t.TempDir() // it leaves logs
	p := startCmd(t, cmd)
	if p.line() != "ready" {
		t.Fatal("not ready")
	}
	t.Cleanup(func() { os.Remove(fmt.Sprintf("/tmp/perf-%d.map", p.pid)) })
	profile := attachEnough(t, p.pid)
	assertSeen(t, profile, 2, .5, "churn")
	profile = attachEnough(t, p.pid, "--stack", "both")
	assertSeenBoth(t, profile, 2, .5, "churn")
	p.end()
}

// sortLines take sort two seconds of CPU time: a tenth of that pays for hundreds of observations.
const sortLines = 2_500_000

// assertSorted wants the numbers of TestRealSort, of which the sum is known, in order.
func assertSorted(t *testing.T, file string, sum uint64) {
	t.Helper()
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	var last uint64
	for line := range bytes.Lines(out) {
		v, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil || v < last {
			t.Fatalf("line %d: %q after %016x: %v", n+1, line, last, err)
		}
		n, last, sum = n+1, v, sum-v
	}
	if n != sortLines || sum != 0 {
		t.Errorf("%d lines and a sum off by %d, want %d of the input's", n, sum, sortLines)
	}
}

func TestRealSort(t *testing.T) {
	needRoot(t)
	needTool(t, "sort")
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	r := random(t)
	var lines []byte
	var sum uint64
	for range sortLines {
		n := r.Uint64()
		lines, sum = fmt.Appendf(lines, "%016x\n", n), sum+n
	}
	if err := os.WriteFile(in, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	rdxPath(t) // built before sort begins, which ends by itself
	cmd := exec.Command("sort", "--parallel=2", "-S", "256M", "-o", out, in)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	p := startCmd(t, cmd)
	eventually(t, "sort has a second thread", func() bool { return len(tids(p.pid)) > 1 })
	profile := attachBriefly(t, p).profile()
	if code := p.wait(); code != 0 {
		t.Errorf("sort: exit code %d", code)
	}
	assertSorted(t, out, sum)
	// It has no symbols but the library's.
	assertSeen(t, profile, 2, 0)
}

// stress-ng checks its own work, and says so by its exit code.
func TestRealStressNG(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needTool(t, "stress-ng")
	for _, stressors := range []string{
		"--pthread 1 --matrix 1 --qsort 1",
		"--futex 1 --sem 1 --pipe 1 --poll 1 --timer 1 --sigq 1 --mq 1",
		"--vm 1 --vm-bytes 32M --memcpy 1 --tsearch 1",
		"--fork 1 --exec 1 --vfork 1 --clone 1",
	} {
		for _, stack := range []string{"own", "both"} {
			s := rdx(t, slices.Concat([]string{"run", "--stack", stack}, busy, []string{"--follow", "--interrupt", "--", "stress-ng", "--verify", "--timeout", "1s", "--temp-path", t.TempDir()}, strings.Fields(stressors))...)
			if code := s.wait(); code != 0 {
				t.Fatalf("%s: exit code %d: %s", stressors, code, s.stderr.String())
			}
			profile := readProfile(t, s.output)
			n, threads, _ := seen(profile)
			t.Logf("%s, --stack %s: %d observations of %d threads; %v", stressors, stack, n, threads, profile.Counts)
			if n == 0 || profile.CountOf(model.LostBecause.Of(model.ThreadNotSampled)) > 0 {
				t.Errorf("%s, --stack %s: nothing or not all threads seen: %v", stressors, stack, profile.Counts)
			}
		}
	}
}
