// Needs gcc, make and the package valgrind (its headers too); skips without.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/trace"
)

func traceEngine(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	for _, f := range []string{"gcc", "make", "valgrind"} {
		if _, err := exec.LookPath(f); err != nil {
			t.Skipf("needs %s: %v", f, err)
		}
	}
	if _, err := os.Stat("/usr/include/valgrind/pub_tool_basics.h"); err != nil {
		t.Skipf("needs valgrind's headers: %v", err)
	}
	dir := t.TempDir()
	if b, err := exec.Command("make", "-s", "-C", "../../trace/valgrind", "OUT="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return dir
}

func traceCmd(args ...string) (out string, err error) {
	return rdxCmd(append([]string{"trace"}, args...)...)
}

func rdxCmd(args ...string) (out string, err error) {
	cmd := newRootCmd()
	var b bytes.Buffer
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(context.Background())
	return b.String(), err
}

func TestTraceRecordAndInfo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	engine := traceEngine(t)
	path := filepath.Join(t.TempDir(), "t.rdt")
	if _, err := traceCmd("record", "-q", "--engine", engine, "-o", path, "--", "/bin/sh", "-c", "exit 3"); exitCode(err) != 3 {
		t.Errorf("exit code %d (%v), want the program's 3", exitCode(err), err)
	}
	out, err := traceCmd("info", "--check", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"command   /bin/sh -c exit 3\n", "accesses  ", "readable  ", "thread    "} {
		if !strings.Contains(out, want) {
			t.Errorf("info has no %q:\n%s", want, out)
		}
	}
	f, err := trace.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := f.Mappings(); !slices.ContainsFunc(m, func(m *model.Mapping) bool { return strings.HasSuffix(m.File, "sh") }) {
		t.Errorf("mappings %v, want the program among them", m)
	}
	// Of several processes nobody can tell whose an instruction is.
	if _, err := traceCmd("record", "-q", "--children", "--engine", engine, "-o", path, "--", "/bin/sh", "-c", "/bin/true; exit 0"); err != nil {
		t.Fatal(err)
	}
	if f, err := trace.OpenFile(path); err != nil || len(f.Summary().Mappings) == 0 || f.Mappings() != nil {
		t.Errorf("error %v, or mappings for two processes", err)
	}
	whole, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, whole.Size()-16); err != nil {
		t.Fatal(err)
	}
	if out, err := traceCmd("info", path); err == nil || !strings.Contains(out, "damage ") {
		t.Errorf("cut short: error %v\n%s", err, out)
	}
}

// The rate is of the time that has gone by since the line before, however long that was.
func TestRecordProgress(t *testing.T) {
	before := recorded{time.Unix(100, 0), 1_000_000}
	for after, want := range map[time.Duration]string{
		time.Second:            "rdx: 5.00M accesses, 4.00M/s, 3.00MiB",
		4 * time.Second:        "rdx: 5.00M accesses, 1.00M/s, 3.00MiB",
		500 * time.Millisecond: "rdx: 5.00M accesses, 8.00M/s, 3.00MiB",
	} {
		if got := (recorded{before.at.Add(after), 5_000_000}).since(before, 3<<20); got != want {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
	}
}

// An interrupt ends the program unless it has chosen to ignore it, as without rdx.
func TestInterruptReachesTheProgram(t *testing.T) {
	engine := traceEngine(t)
	if signal.Ignored(os.Interrupt) { // as what a shell starts by & has it
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, os.Interrupt)
		defer signal.Stop(caught)
	}
	program := []string{"--", "/bin/sh", "-c", "kill -INT $$; exit 3"}
	for _, args := range [][]string{
		{"trace", "record", "-q", "--engine", engine, "-o", filepath.Join(t.TempDir(), "t.rdt")},
		{"exact", "--engine", engine}, {"exact", "--engine", engine, "--log2"}, {"exact", "--engine", engine, "--sampled=1e-4"},
		{"exact", "--engine", engine, "--stack=private"},
	} {
		if _, err := rdxCmd(append(args, program...)...); exitCode(err) != 128+int(syscall.SIGINT) {
			t.Errorf("%q: exit code %d (%v), want that of SIGINT", args, exitCode(err), err)
		}
	}
}

func TestTraceRecordBadUse(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	engine := traceEngine(t)
	path := filepath.Join(t.TempDir(), "t.rdt")
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"record"}, exitUsage},
		{[]string{"record", "--max-size", "many", "--", "true"}, exitUsage},
		{[]string{"record", "-q", "--engine", engine, "-o", path, "--", "./no-such-program"}, exitNotFound},
		{[]string{"record", "-q", "--engine", engine, "-o", path, "--", "./trace.go"}, exitNotRun},
		{[]string{"record", "-q", "--engine", engine, "-o", path, "--max-size", "1M", "--", "true"}, exitFailed},
		{[]string{"info"}, exitUsage},
		{[]string{"info", os.DevNull}, exitFailed},
	} {
		_, err := traceCmd(c.args...)
		if err == nil || exitCode(err) != c.code {
			t.Errorf("%q: exit code %d (%v), want %d", c.args, exitCode(err), err, c.code)
		}
		var u report.UsageError
		if errors.As(err, &u) != (c.code == exitUsage) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}

// A program analysed as it runs gives what its recording gives.
func TestExactOfARun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	engine := traceEngine(t)
	path := filepath.Join(t.TempDir(), "t.rdt")
	known := filepath.Join(t.TempDir(), "known")
	if b, err := exec.Command("gcc", "-nostdlib", "-static", "-o", known, "../../trace/testdata/known.S").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	live, err := rdxCmd("exact", "--format", "csv", "--block", "word", "--engine", engine, "--", known)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := traceCmd("record", "-q", "--engine", engine, "-o", path, "--", known); err != nil {
		t.Fatal(err)
	}
	recorded, err := rdxCmd("exact", "--format", "csv", "--block", "word", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"quantity,from,to,value\n", "reuse_time,", "stack_distance,", "miss_ratio,"} {
		if !strings.Contains(live, want) {
			t.Errorf("no %q in the report", want)
		}
	}
	if live != recorded {
		t.Errorf("live:\n%s\nrecorded:\n%s", live, recorded)
	}
	// Between samples the engine counts, and to the last access.
	var reports [2]report.Exact
	for i, how := range []string{"--log2", "--sampled=1e-4"} {
		out, err := rdxCmd("exact", "--engine", engine, how, "--format", "json", "--", "/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(out), &reports[i]); err != nil {
			t.Fatal(err)
		}
	}
	if reports[0].Accesses != reports[1].Accesses {
		t.Errorf("%d accesses, %d when sampled", reports[0].Accesses, reports[1].Accesses)
	}
	if _, err := rdxCmd("exact", "--engine", engine, "--", "./no-such-program"); exitCode(err) != exitNotFound || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("exit code %d, error %v", exitCode(err), err)
	}
	// Where there is nothing to report, it is still said how the program ended.
	if _, err := rdxCmd("exact", "--engine", engine, "--sampled=1e-12", "--", "/bin/sh", "-c", "exit 3"); exitCode(err) != 3 ||
		!strings.Contains(err.Error(), "no sample was taken") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("no sample: exit code %d, error %v", exitCode(err), err)
	}
	for _, how := range []string{"--log2", "--sampled=1e-4", "--stack=private"} { // each runs it another way
		testEnds(t, engine, how)
		if _, err := rdxCmd("exact", "--engine", engine, how, "--", "/dev/null"); exitCode(err) != exitNotRun {
			t.Errorf("%s: exit code %d of what is no program, error %v", how, exitCode(err), err)
		}
	}
}

// The exit code is the program's, and the report of what it did until then says how it ended.
func testEnds(t *testing.T, engine, how string) {
	for _, c := range []struct {
		script string
		code   int
		ended  string
	}{
		{"exit 3", 3, "exit status 3"},
		{"kill -SEGV $$", 128 + int(syscall.SIGSEGV), "segmentation fault"},
		{"kill -KILL $$", 128 + int(syscall.SIGKILL), "killed"},
	} {
		out, err := rdxCmd("exact", "--engine", engine, how, "--format", "json", "--", "/bin/sh", "-c", c.script)
		if exitCode(err) != c.code {
			t.Errorf("%s, %q: exit code %d (%v), want %d", how, c.script, exitCode(err), err, c.code)
		}
		_, body, _ := strings.Cut(out, "{") // behind the warnings
		var r report.Exact
		if err := json.Unmarshal([]byte("{"+body), &r); err != nil {
			t.Fatalf("%s, %q: %v\n%s", how, c.script, err, out)
		}
		if n := len(r.Warnings); r.Accesses == 0 || n == 0 || r.Warnings[n-1] != "/bin/sh: "+c.ended {
			t.Errorf("%s, %q: %d accesses, warnings %q", how, c.script, r.Accesses, r.Warnings)
		}
	}
}

// recordingProcessors is how many processors encode while a program is recorded, as Go sees it.
func recordingProcessors(t *testing.T, engine string, processors int) (during, after int) {
	t.Helper()
	before := runtime.GOMAXPROCS(processors)
	defer runtime.GOMAXPROCS(before)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, p := range []string{in, out} {
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded := make(chan error, 1)
	go func() {
		_, err := traceCmd("record", "-q", "--engine", engine, "-o", filepath.Join(dir, "t.rdt"), "--", "/bin/sh", "-c", `: > "$0"; read x < "$1"`, out, in)
		recorded <- err
	}()
	// Each end of a pipe is opened when the other one is: the program runs now, and waits.
	runs := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(out)
		runs <- err
	}()
	select {
	case err := <-runs:
		if err != nil {
			t.Fatal(err)
		}
	case err := <-recorded:
		t.Fatalf("ended before the program ran: %v", err)
	}
	during = runtime.GOMAXPROCS(0)
	if err := os.WriteFile(in, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-recorded; err != nil {
		t.Fatal(err)
	}
	return during, runtime.GOMAXPROCS(0)
}

func TestRecordingLeavesAProcessor(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	engine := traceEngine(t)
	for processors, want := range map[int]int{1: 1, 2: 1, 5: 4} {
		if during, after := recordingProcessors(t, engine, processors); during != want || after != processors {
			t.Errorf("of %d processors rdx takes %d while it records, want %d, and %d afterwards", processors, during, want, after)
		}
	}
}
