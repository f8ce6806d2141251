// Needs gcc, make and the packages valgrind and qemu-user; skips without.
package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

var buildPlugin = sync.OnceValues(func() (string, error) {
	out, err := filepath.Abs("../bin/qemu")
	if err != nil {
		return "", err
	}
	if b, err := exec.Command("make", "-s", "-C", "qemu", "OUT="+out).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s", bytes.TrimSpace(b))
	}
	return out, nil
})

// pluginDir builds the plugin, or skips if this machine lacks what it needs.
func pluginDir(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	for _, f := range []string{"gcc", "make", "qemu-x86_64"} {
		if _, err := exec.LookPath(f); err != nil {
			t.Skipf("needs %s: %v", f, err)
		}
	}
	dir, err := buildPlugin()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func underQEMU(t *testing.T, cmd Command, opt Options) ([]model.Access, Result) {
	t.Helper()
	opt.Kind, opt.Engine = QEMU, pluginDir(t)
	var all []model.Access
	res, err := Run(context.Background(), cmd, opt, func(b []model.Access) { all = append(all, b...) })
	if err != nil {
		t.Fatal(err)
	}
	return all, res
}

// The same accesses as under valgrind.
func TestQEMUKnownProgramToTheLastAccess(t *testing.T) {
	const turns = 1000
	got, res := underQEMU(t, Command{Args: []string{assemble(t, "known.S")}}, Options{})
	if len(res.Partial) > 0 || res.ExitCode != 0 || res.Processes != 1 {
		t.Errorf("result %+v", res)
	}
	if len(got) != knownPerTurn*turns {
		t.Fatalf("%d accesses, want %d", len(got), knownPerTurn*turns)
	}
	words, sp := got[0].Addr, uint64(0)
	for i, a := range got {
		want := knownTurn[i%knownPerTurn]
		at := words + want.at
		if want.stack {
			if sp == 0 {
				sp = a.Addr
			}
			at = sp - want.at
		}
		if a.Addr != at || a.Size != want.size || a.Op != want.op || int(a.Thread) <= 0 {
			t.Fatalf("access %d: %+v, want %s of %d at %#x", i, a, want.op, want.size, at)
		}
	}
}

// Four threads, truly in parallel, each with its id and its own row.
func TestQEMUThreads(t *testing.T) {
	prog := compile(t, "threads.c", "-O1", "-pthread")
	var out bytes.Buffer
	got, res := underQEMU(t, Command{Args: []string{prog}, Stdout: &out}, Options{})
	if len(res.Partial) > 0 || res.ExitCode != 0 || res.Processes != 1 {
		t.Errorf("%+v", res)
	}
	checkRows(t, out.String(), got)
}

// Two threads hand a turn to and fro, and store to the next words of an array in
// theirs. By pipes the order that is kept is theirs to the last access. By
// spinning the accesses around each change of turns may be misplaced, up to those
// between two times: 64.
func TestQEMUOrderOfThreads(t *testing.T) {
	prog := compile(t, "turns.c", "-O1", "-pthread")
	const turns, perTurn = 80, 300
	order := func(by string, ordered bool) []uint64 {
		var out bytes.Buffer
		got, res := underQEMU(t, Command{Args: []string{prog, by}, Stdout: &out}, Options{Ordered: ordered})
		if len(res.Partial) > 0 || res.ExitCode != 0 || res.Processes != 1 {
			t.Errorf("%s: %+v", by, res)
		}
		var words uint64
		if _, err := fmt.Sscanf(out.String(), "0x%x", &words); err != nil {
			t.Fatal(err)
		}
		var at []uint64
		for _, a := range got {
			if i := (a.Addr - words) / 8; i < turns*perTurn && a.Op == model.Store {
				at = append(at, i)
			}
		}
		if len(at) != turns*perTurn {
			t.Fatalf("%s: %d stores, want %d", by, len(at), turns*perTurn)
		}
		return at
	}
	if at := order("pipe", false); slices.IsSorted(at) {
		t.Error("threads are in order though it is not kept: the test tells nothing")
	}
	if at := order("pipe", true); !slices.IsSorted(at) {
		t.Error("pipe: not in order")
	}
	const edge = 64
	inner := slices.DeleteFunc(order("spin", true), func(i uint64) bool { return i%perTurn < edge || i%perTurn >= perTurn-edge })
	if !slices.IsSorted(inner) || len(inner) != turns*(perTurn-2*edge) {
		t.Error("spin: more out of order than the accesses between two times")
	}
}

// What is recorded in the threads' order is all of what each has done, in its own
// order; where that order cannot be kept, nothing is run.
func TestQEMUOrderedRecording(t *testing.T) {
	prog := compile(t, "threads.c", "-O1", "-pthread")
	path := filepath.Join(t.TempDir(), "t.rdt")
	var out bytes.Buffer
	_, s, err := Record(context.Background(), path, Command{Args: []string{prog}, Stdout: &out},
		RecordOptions{Options: Options{Kind: QEMU, Engine: pluginDir(t), Ordered: true}})
	if err != nil || len(s.Partial) != 0 {
		t.Fatalf("%v, %+v", err, s)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []model.Access
	src := NewSource(f.Reader)
	for b := src.NextBatch(); b != nil; b = src.NextBatch() {
		got = append(got, b...)
	}
	if err := src.Err(); err != nil {
		t.Fatal(err)
	}
	checkRows(t, out.String(), got)
	// A program that has more accesses than there is room for goes on to its end.
	out.Reset()
	opt := Options{Kind: QEMU, Engine: pluginDir(t), Ordered: true, room: 3 << 20}
	if _, err := Run(context.Background(), Command{Args: []string{prog}, Stdout: &out}, opt, func([]model.Access) {}); err == nil ||
		!strings.Contains(err.Error(), "more than the 3 MiB") || out.Len() == 0 {
		t.Errorf("%v, the program printed %q", err, &out)
	}
	for _, opt := range []Options{{Ordered: true}, {Kind: QEMU, Engine: pluginDir(t), Ordered: true, Children: true}} {
		if opt.Kind == "" {
			opt.Engine = "."
		}
		if _, err := Run(context.Background(), Command{Args: []string{prog}}, opt, func([]model.Access) {}); err == nil {
			t.Errorf("%+v: no error", opt)
		}
	}
}

func TestQEMUProgramIsLeftAlone(t *testing.T) {
	var out, errout bytes.Buffer
	cmd := Command{Args: []string{"sh", "-c", "echo $0; cat; (exit 3); echo err >&2; kill -9 $$"}, Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errout}
	_, res := underQEMU(t, cmd, Options{})
	if out.String() != "sh\nhello" || errout.String() != "err\n" || res.Signal != syscall.SIGKILL || res.Processes != 1 || len(res.Partial) == 0 {
		t.Errorf("stdout %q, stderr %q, %+v", &out, &errout, res)
	}
	// the subshell is followed on request; cat, after its exec, is not seen
	_, res = underQEMU(t, Command{Args: []string{"/bin/sh", "-c", "(exit 3); exit 0"}}, Options{Children: true})
	if res.Processes != 2 || res.ExitCode != 0 || len(res.Partial) != 0 {
		t.Errorf("%+v, want the shell and its subshell", res)
	}
}

// However the program ends, what it did until then is there, and marked as what it is.
func TestQEMUBadEnds(t *testing.T) {
	// The access at which it ends is left out, and so is what it may have done since.
	for name, want := range map[string]int{"unmap.S": 0, "fault.S": 2} {
		got, res := underQEMU(t, Command{Args: []string{assemble(t, name)}, Stderr: io.Discard}, Options{})
		if res.Signal != syscall.SIGSEGV || len(res.Partial) == 0 || len(got) != want {
			t.Errorf("%s: %d accesses, want %d; %+v, want SIGSEGV and a partial result", name, len(got), want, res)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	got, res := underQEMU(t, Command{Args: []string{"/usr/bin/yes"}, Stdout: w}, Options{})
	if res.Signal != syscall.SIGPIPE || len(res.Partial) == 0 || len(got) == 0 {
		t.Errorf("closed pipe: %d accesses, %+v", len(got), res)
	}
	_, _, err = Record(context.Background(), "/dev/full", Command{Args: []string{"/bin/true"}}, RecordOptions{Options: Options{Kind: QEMU, Engine: pluginDir(t)}})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full disk: error %v, want ENOSPC", err)
	}
	dir := pluginDir(t)
	if _, err := Run(context.Background(), Command{Args: []string{"/bin/true"}}, Options{Kind: QEMU, Engine: t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "needs the packages gcc") {
		t.Errorf("no plugin: error %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Run(context.Background(), Command{Args: []string{"/bin/true"}}, Options{Kind: QEMU, Engine: dir}, nil); err == nil || !strings.Contains(err.Error(), "apt-get install qemu-user") {
		t.Errorf("no QEMU: error %v", err)
	}
}

// A script is run by what its first line names, as without us.
func TestQEMUScript(t *testing.T) {
	dir := t.TempDir()
	for i, script := range []string{
		"#!/bin/sh\necho $0 $# $1\n",
		"#! \t/bin/echo -n  and more \n",
		"#!" + dir + "/0\n",
		"#!/bin/sh -eu\necho $-; kill -SEGV $$\n",
	} {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, "a b", "c")
		want, _ := cmd.Output()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		var out bytes.Buffer
		got, res := underQEMU(t, Command{Args: []string{path, "a b", "c"}, Stdout: &out, Stderr: io.Discard}, Options{})
		if len(want) == 0 || out.String() != string(want) || len(got) == 0 || ws.Signaled() != (res.Signal != 0) || !ws.Signaled() && res.ExitCode != ws.ExitStatus() {
			t.Errorf("%q: prints %q, want %q; %d accesses, %+v, want %#x", script, &out, want, len(got), res, ws)
		}
	}
}

// touches counts how often each distance between touches of the same word
// occurs, by powers of two; what touched a word first is in the last bin.
type touches struct {
	n, loads, stores uint64
	last             map[uint64]uint64
	hist             [65]float64
}

func (h *touches) add(a model.Access) {
	if h.last == nil {
		h.last = map[uint64]uint64{}
	}
	for w := a.Addr / 8; w <= (a.Addr+uint64(a.Size)-1)/8; w++ {
		h.n++
		if a.Op == model.Load {
			h.loads++
		} else {
			h.stores++
		}
		bin := 64
		if at, ok := h.last[w]; ok {
			bin = int(math.Log2(float64(h.n - at)))
		}
		h.hist[bin]++
		h.last[w] = h.n
	}
}

// likeness is 100 less the distance of two histograms in per cent, as l2 of
// rdx compare.
func likeness(a, b *touches) float64 {
	var d, s float64
	for i := range a.hist {
		x, y := a.hist[i]/float64(a.n), b.hist[i]/float64(b.n)
		d += (x - y) * (x - y)
		s += x*x + y*y
	}
	return 100 * (1 - math.Sqrt(d/s))
}

// The two engines share nothing but the program. At the level of words they
// differ by what the programs find of their surroundings: the engine's own
// preloaded library, the processor's features, what the kernel puts on the
// stack.
func TestTwoEnginesAgree(t *testing.T) {
	dir, plugin := engineDir(t), pluginDir(t)
	text := filepath.Join(t.TempDir(), "text")
	var in bytes.Buffer
	for i := range 4000 {
		in.WriteString(programLine(i))
	}
	if err := os.WriteFile(text, in.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	// The two show processors of different makers, for which the C library
	// has different preferences.
	env := append([]string{"LD_PRELOAD=", pinned[1] + "-AVX2,-AVX,-BMI2,-ERMS,-FSRM,-SSE4_2,-SSE4_1,-SSSE3,-AVX_Fast_Unaligned_Load," +
		"-Fast_Unaligned_Load,-Fast_Unaligned_Copy,-Fast_Copy_Backward,-Fast_Rep_String,-Slow_BSF,-Prefer_No_VZEROUPPER," +
		":glibc.cpu.x86_data_cache_size=32768:glibc.cpu.x86_shared_cache_size=1048576:glibc.cpu.x86_non_temporal_threshold=1073741824"},
		pinned[2:]...)
	for _, args := range [][]string{
		{"/bin/gzip", "-6", "-c", text},
		{"/bin/bzip2", "-c", text},
		{"/usr/bin/xz", "-1", "-T1", "-c", text},
		{"/usr/bin/sort", "--parallel=1", "-n", text},
		{"/bin/sed", "s/fox/cat/g", text},
		{"/usr/bin/awk", "{ n += $1 } END { print n }", text},
		append([]string{"/usr/bin/md5sum"}, slices.Repeat([]string{text}, 20)...), // its start counts for little then
		{"/usr/bin/perl", "-e", "my %h; $h{$_*7}=$_ for 1..20000; print scalar keys %h"},
	} {
		t.Run(filepath.Base(args[0]), func(t *testing.T) {
			if _, err := os.Stat(args[0]); err != nil {
				t.Skip(err)
			}
			var h [2]touches
			for i, opt := range []Options{{Engine: dir}, {Kind: QEMU, Engine: plugin}} {
				env := slices.Clone(env)
				if opt.Kind == QEMU {
					// what valgrind sets
					env[0] += filepath.Join(dir, "vgpreload_core-amd64-linux.so") + ":"
				}
				res, err := Run(context.Background(), Command{Args: args, Env: env}, opt, func(b []model.Access) {
					for _, a := range b {
						h[i].add(a)
					}
				})
				if err != nil || len(res.Partial) != 0 || res.ExitCode != 0 {
					t.Fatalf("%v, %+v", err, res)
				}
			}
			v, q := &h[0], &h[1]
			off := 100 * math.Abs(float64(q.n)/float64(v.n)-1)
			like := likeness(v, q)
			t.Logf("%d touches of words under valgrind, %d under QEMU: %.3f %% apart; loads %d and %d, stores %d and %d; histograms %.2f %% alike",
				v.n, q.n, off, v.loads, q.loads, v.stores, q.stores, like)
			if off > 0.1 || like < 99.9 {
				t.Errorf("%.3f %% apart, %.2f %% alike; want 0.1 and 99.9", off, like)
			}
		})
	}
}
