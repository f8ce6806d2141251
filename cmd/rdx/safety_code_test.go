// Needs: root, bpf, watchpoint, gcc; strace for TestWritesNothing, luajit for TestRealLuaJIT. Targets whose code changes while they run,
// and that rdx changes nothing of any target.
package main_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/internal/needs"
	"github.com/rdx-profiler/rdx/model"
)

func needX86(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("needs x86-64: the target has its code by bytes")
	}
}

// A thread changes its own loop between a word that it reads again and again, and 256 in turn. What is
// read ahead is the loop as it is: were it one that is no more, the shares would not be those of the time
// that the target spends in each.
func TestSelfModifying(t *testing.T) {
	needRoot(t)
	needX86(t)
	p := target(t, compile(t, "selfmod"), "own")
	assertNear(t, p, "ok same=%f")
}

// LuaJIT drops all that it has compiled more than a hundred times a second, with the memory it was in, and compiles
// anew: as above.
func TestRealLuaJIT(t *testing.T) {
	needRoot(t)
	needTool(t, "luajit")
	assertNear(t, target(t, "luajit", "testdata/real/work.lua"), "ok few=%f")
}

// assertNear wants that the share of the accesses that are reused at once is what the target says, at its end, that it
// spends of its time in a loop that does so.
func assertNear(t *testing.T, p *process, says string) {
	t.Helper()
	holds := 0
	var near, all float64
	attachUntil(t, p.pid, func(profile *model.Profile) bool {
		holds += countOf(profile, model.Holds)
		for i := range profile.Records {
			if r := &profile.Records[i]; r.Kind == model.Reuse || r.Kind == model.Censored {
				all += r.Accesses // a hold has fewer records of what is reused at once than of octaves
				if r.Kind == model.Reuse && r.Time < 16 {
					near += r.Accesses
				}
			}
		}
		return holds >= 1000 // if all uses of each are in one loop, 0.15 is nine standard deviations
	}, "--granularity", "word")
	var want float64
	if _, err := fmt.Sscanf(p.end(), says, &want); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d holds; %.3f of the uses are reused at once, of the time %.3f", holds, near/all, want)
	if want < .2 || want > .8 {
		t.Fatalf("the target spends %.2f of its time in one loop: the test tells nothing", want)
	}
	if math.Abs(near/all-want) > .15 {
		t.Errorf("%.3f of the uses are reused at once, want %.3f", near/all, want)
	}
}

// Another thread changes the code that a held thread is about to run. Where the use is then made by another
// instruction than was read ahead, it is lost, and said so; the program goes on as if nothing had been.
func TestPatchedMeanwhile(t *testing.T) {
	needs.Watchpoints(t)
	needRoot(t)
	needX86(t)
	p := target(t, compile(t, "selfmod"), "other")
	holds, noticed := 0, 0
	attachUntil(t, p.pid, func(profile *model.Profile) bool {
		holds += countOf(profile, model.Holds)
		noticed += countOf(profile, model.LostBecause.Of(model.UseElsewhere))
		return holds >= 200 && noticed > 0
	}, "--granularity", "word")
	t.Logf("%d holds, %d uses by another instruction; target: %s", holds, noticed, p.end())
}

// Of the system calls that write into another process, or open its memory for that, a session makes none.
func TestWritesNothing(t *testing.T) {
	needRoot(t)
	needTool(t, "strace")
	if runtime.GOARCH != "amd64" {
		t.Skip("on arm64 a thread may have to be resumed by PTRACE_SINGLESTEP")
	}
	p := target(t, compile(t, "sum"), "2")
	dir := t.TempDir()
	calls, output := filepath.Join(dir, "calls"), filepath.Join(dir, "p.pb.gz")
	argv := []string{"strace", "-f", "--seccomp-bpf", "-s", "200", "-o", calls, "-e", "trace=ptrace,process_vm_readv,process_vm_writev,open,openat",
		rdxPath(t), "attach", "-p", strconv.Itoa(p.pid), "-o", output, "-d", "3s", "--measure-rate"}
	if code := start(t, append(argv, busy...)...).wait(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	assertFree(t, p.pid)
	holds := countOf(readProfile(t, output), model.Holds)
	b, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	read := strings.Count(text, "process_vm_readv(") + strings.Count(text, "PTRACE_GETREGSET")
	if holds < 10 || read < holds {
		t.Errorf("%d holds, %d times read: the trace tells nothing", holds, read)
	}
	for _, write := range []string{`process_vm_writev\(`, `PTRACE_(POKE|SET\w*REGS|SETSIGINFO|SETSIGMASK|SINGLE|SYSEMU)`, `/proc/\d+/(task/\d+/)?(mem|clear_refs)".*O_(WRONLY|RDWR)`} {
		if found := regexp.MustCompile(`.*` + write + `.*`).FindString(text); found != "" {
			t.Errorf("rdx writes: %s", found)
		}
	}
	t.Logf("%d holds, %d times read; target: %s", holds, read, p.end())
}
