// Needs gcc, make and the package valgrind (its headers too); skips without.
package trace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

var buildEngine = sync.OnceValues(func() (string, error) {
	out, err := filepath.Abs("../bin/valgrind")
	if err != nil {
		return "", err
	}
	if b, err := exec.Command("make", "-s", "-C", "valgrind", "OUT="+out).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s", bytes.TrimSpace(b))
	}
	return out, nil
})

// engineDir builds the engine, or skips if this machine lacks what it needs.
func engineDir(t testing.TB) string {
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
	dir, err := buildEngine()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// compile builds a program from testdata.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(source, filepath.Ext(source)))
	args := append([]string{"-o", out, filepath.Join("testdata", source)}, flags...)
	if b, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", source, err, b)
	}
	return out
}

func assemble(t testing.TB, source string) string {
	return compile(t, source, "-nostdlib", "-static")
}

// accessesOf runs a program and returns all its accesses.
func accessesOf(t *testing.T, cmd Command, opt Options) ([]model.Access, Result) {
	t.Helper()
	opt.Engine = engineDir(t)
	opt.checks = opt.Kind != QEMU
	var all []model.Access
	res, err := Run(context.Background(), cmd, opt, func(b []model.Access) { all = append(all, b...) })
	if err != nil {
		t.Fatal(err)
	}
	return all, res
}

// pinned makes both engines' programs see the same. The C library reads on
// past the end of two strings of the environment. Neither may run into the
// random bytes that follow the last: so the one valgrind puts into LD_PRELOAD
// stands first, and the comma stops the reading of hwcaps.
var pinned = []string{
	"LD_PRELOAD=",
	"GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000:" +
		"glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,",
	"PATH=/usr/bin:/bin", "LC_ALL=C", "PERL_HASH_SEED=0",
}

func TestKnownProgramToTheLastAccess(t *testing.T) {
	const turns = 1000
	prog := assemble(t, "known.S")
	for _, store := range []Store{StoreGuarded, StoreCheck, StoreCheckEach} {
		t.Run(string(store), func(t *testing.T) {
			got, res := accessesOf(t, Command{Args: []string{prog}}, Options{Store: store})
			if len(res.Partial) > 0 || res.ExitCode != 0 {
				t.Errorf("result %+v", res)
			}
			if len(got) != knownPerTurn*turns {
				t.Fatalf("%d accesses, want %d", len(got), knownPerTurn*turns)
			}
			words := got[0].Addr
			sp := uint64(0)
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
		})
	}
}

type known struct {
	op    model.Op
	size  uint32
	at    uint64 // from the first word, or below the first push
	stack bool
}

const knownPerTurn = len(knownTurn)

// knownTurn is what testdata/known.S says of itself.
var knownTurn = [...]known{
	{model.Load, 8, 0, false},
	{model.Load, 8, 8, false},
	{model.Store, 4, 16, false},
	{model.Load, 8, 24, false}, {model.Store, 8, 24, false},
	{model.Load, 4, 32, false}, {model.Store, 4, 32, false},
	{model.Load, 8, 40, false}, {model.Store, 8, 40, false},
	{model.Load, 8, 40, false}, {model.Store, 8, 40, false},
	{model.Load, 4, 48, false}, {model.Store, 4, 48, false},
	{model.Store, 8, 0, true},
	{model.Store, 8, 8, true},
	{model.Load, 8, 8, true},
	{model.Load, 8, 0, true},
	{model.Load, 16, 0, false},
	{model.Store, 8, 124, false},
	{model.Load, 1, 0, false}, {model.Store, 1, 64, false},
	{model.Load, 1, 1, false}, {model.Store, 1, 65, false},
	{model.Load, 1, 2, false}, {model.Store, 1, 66, false},
	{model.Load, 1, 3, false}, {model.Store, 1, 67, false},
}

// lackey runs a program under valgrind's own lackey and calls each with its
// accesses. A locked instruction, which lackey shows as a load and then a
// compare-and-swap, comes as one load and one store; dropped counts the
// loads so left out.
func lackey(t testing.TB, dir string, cmd Command, each func(model.Access)) (dropped int) {
	t.Helper()
	// A file descriptor of its own would be seen by the program.
	fifo := filepath.Join(t.TempDir(), "log")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(dir, "lackey-amd64-linux"))
	c.Args = append([]string{"valgrind", "--command-line-only=yes", "--tool=lackey", "--trace-mem=yes", "--log-file=" + fifo, "--vgdb=no",
		"--fair-sched=try", "--px-default=allregs-at-each-insn", "--px-file-backed=allregs-at-each-insn", "--"}, cmd.Args...)
	vg, err := launcher()
	if err != nil {
		t.Fatal(err)
	}
	c.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "VALGRIND_LAUNCHER="+vg)
	c.Stdin, c.Dir = cmd.Stdin, cmd.Dir
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 1<<16), 1<<20)
	var pc uint64
	var held *model.Access // a load that may be the first half of a locked instruction
	emit := func(a model.Access) {
		if held != nil {
			each(*held)
			held = nil
		}
		if a.Op == model.Load {
			held = &a
			return
		}
		each(a)
	}
	for sc.Scan() {
		line := sc.Text()
		if len(line) < 5 || line[0] == '=' {
			continue
		}
		addr, size, ok := strings.Cut(line[3:], ",")
		if !ok {
			continue
		}
		a, err := strconv.ParseUint(addr, 16, 64)
		n, err2 := strconv.ParseUint(size, 10, 32)
		if err != nil || err2 != nil {
			t.Fatalf("lackey: line %q", line)
		}
		acc := model.Access{Addr: a, Size: uint32(n), PC: pc}
		switch line[:2] {
		case "I ":
			pc = a
		case " L":
			acc.Op = model.Load
			emit(acc)
		case " S":
			acc.Op = model.Store
			emit(acc)
		case " M":
			acc.Op = model.Load
			if held != nil && held.Addr == a && held.Size == acc.Size && held.PC == pc {
				held = nil
				dropped++
			}
			emit(acc)
			acc.Op = model.Store
			emit(acc)
		default:
			t.Fatalf("lackey: line %q", line)
		}
	}
	if held != nil {
		each(*held)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Logf("lackey %v: %v", cmd.Args, err)
	}
	return dropped
}

func programLine(i int) string {
	return fmt.Sprintf("%d the quick brown fox %d jumps over %x\n", i*7919%1000, i, i*i*2654435761)
}

// programs are small runs of what Debian installs everywhere.
func programs(t testing.TB) [][]string {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	var b bytes.Buffer
	const lines = 150 // each goes by the same code
	for i := range lines {
		b.WriteString(programLine(i))
	}
	if err := os.WriteFile(text, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return [][]string{
		{"/bin/true"},
		{"/bin/gzip", "-6", "-c", text},
		{"/usr/bin/sort", "-n", text},
		{"/bin/sed", "s/fox/cat/g", text},
		// not grep, see below
		{"/usr/bin/awk", "{ n += $1 } END { print n }", text},
		{"/usr/bin/md5sum", text},
		{"/usr/bin/cut", "-d ", "-f3", text},
		{"/usr/bin/perl", "-e", "my %h; $h{$_*7}=$_ for 1..500; print scalar keys %h"},
	}
}

func TestStreamIsLackeys(t *testing.T) {
	dir := engineDir(t)
	for _, args := range programs(t) {
		t.Run(filepath.Base(args[0]), func(t *testing.T) {
			if _, err := os.Stat(args[0]); err != nil {
				t.Skip(err)
			}
			cmd := Command{Args: args, Env: pinned}
			got, res := accessesOf(t, cmd, Options{spills: true})
			if len(res.Partial) > 0 || res.ExitCode != 0 {
				t.Errorf("result %+v", res)
			}
			n, differ := 0, 0
			dropped := lackey(t, dir, cmd, func(a model.Access) {
				if n < len(got) {
					g := got[n]
					g.Thread = 0
					if g != a {
						if differ == 0 {
							t.Errorf("access %d: %+v, lackey has %+v", n, g, a)
						}
						differ++
					}
				}
				n++
			})
			if n != len(got) {
				t.Errorf("%d accesses, lackey has %d", len(got), n)
			}
			t.Logf("%d accesses, %d differ, %d second loads of locked instructions", len(got), differ, dropped)
		})
	}
}

// With few buffers, and superblocks that end at jumps, as a program is run to be analysed, it makes the same accesses.
func TestOnlineStreamIsTheSame(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	const lines = 4_000 // half as much again as would fill the buffers three times
	var in []byte
	for i := range lines {
		in = append(in, programLine(i)...)
	}
	if err := os.WriteFile(text, in, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := Command{Args: []string{"/bin/gzip", "-6", "-c", text}, Env: pinned}
	want, _ := accessesOf(t, cmd, Options{})
	got, res := accessesOf(t, cmd, Options{online: true})
	for i := range min(len(got), len(want)) {
		got[i].Thread = want[i].Thread
	}
	if !slices.Equal(got, want) || len(res.Partial) > 0 {
		t.Errorf("%d accesses and not %d, or others; %v", len(got), len(want), res.Partial)
	}
	t.Logf("%d accesses, %d bytes of words", len(want), res.RawBytes)
	if least := uint64(3 * fewBuffers * bufferBytes); res.RawBytes < least {
		t.Errorf("%d bytes of words, want %d: the buffers were not used again", res.RawBytes, least)
	}
}

// grep reads /proc/self/maps, where the engines show mappings of their own:
// what differs is the reading of those lines, and does not grow with its work.
func TestGrepDiffersByItsMapsAlone(t *testing.T) {
	dir := engineDir(t)
	var more []int
	for _, lines := range []int{100, 1600} {
		text := filepath.Join(t.TempDir(), "text")
		var in bytes.Buffer
		for i := range lines {
			in.WriteString(programLine(i))
		}
		if err := os.WriteFile(text, in.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := Command{Args: []string{"/bin/grep", "-c", "fox", text}, Env: pinned}
		got, _ := accessesOf(t, cmd, Options{spills: true})
		n, by := 0, map[uint64]int{}
		for _, a := range got {
			by[a.PC]++
		}
		lackey(t, dir, cmd, func(a model.Access) { n++; by[a.PC]-- })
		differ := 0
		for _, k := range by {
			differ += max(k, -k)
		}
		t.Logf("%d lines: %d accesses, lackey %d, %d differ", lines, len(got), n, differ)
		more = append(more, differ)
	}
	if more[0] != more[1] {
		t.Errorf("%d accesses differ with 100 lines, %d with 1600", more[0], more[1])
	}
}

func TestProgramIsLeftAlone(t *testing.T) {
	var out, errout bytes.Buffer
	// $0 is argv[0]: the name that it was called by.
	cmd := Command{Args: []string{"sh", "-c", "echo $0; cat; echo err >&2; exit 7"}, Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errout}
	_, res := accessesOf(t, cmd, Options{})
	if out.String() != "sh\nhello" || errout.String() != "err\n" || res.ExitCode != 7 {
		t.Errorf("stdout %q, stderr %q, %+v", &out, &errout, res)
	}
	if res.Processes != 1 {
		t.Errorf("%d processes recorded, want the shell alone", res.Processes)
	}
}

func TestChildrenOnRequest(t *testing.T) {
	cmd := Command{Args: []string{"/bin/sh", "-c", "/bin/true; (exit 3); /bin/true"}, Stderr: os.Stderr}
	_, res := accessesOf(t, cmd, Options{Children: true})
	// The shell, two forks that exec (each a stream before and one after it)
	// and the subshell.
	if res.Processes != 6 || len(res.Partial) > 0 {
		t.Errorf("%+v, want 6 streams", res)
	}
}

func TestForksBeyondTheBoundRunOn(t *testing.T) {
	var out bytes.Buffer
	cmd := Command{Args: []string{"/bin/sh", "-c", "(echo a); (echo b); echo c"}, Stdout: &out}
	_, res := accessesOf(t, cmd, Options{Children: true, MaxProcesses: 1})
	if out.String() != "a\nb\nc\n" || res.ExitCode != 0 {
		t.Errorf("output %q, %+v", &out, res)
	}
	if res.Processes != 1 || len(res.Partial) != 1 || !strings.Contains(res.Partial[0], "2 processes were not recorded") {
		t.Errorf("%+v, want the shell alone, and 2 refused", res)
	}
}

func TestKilledProgramGivesWhatItDid(t *testing.T) {
	for _, store := range []Store{StoreGuarded, StoreCheck} {
		t.Run(string(store), func(t *testing.T) { testKilled(t, store) })
	}
}

func testKilled(t *testing.T, store Store) {
	engineDir(t) // a skip comes before there is a goroutine
	prog := assemble(t, "kill.S")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		// The program says its pid when it has done its part, and waits.
		var pid [4]byte
		if _, err := io.ReadFull(r, pid[:]); err != nil {
			t.Error(err)
			return
		}
		syscall.Kill(int(binary.LittleEndian.Uint32(pid[:])), syscall.SIGKILL)
	}()
	got, res := accessesOf(t, Command{Args: []string{prog}, Stdout: w}, Options{Store: store})
	w.Close()
	if res.Signal != syscall.SIGKILL || len(res.Partial) == 0 {
		t.Errorf("%+v, want SIGKILL and a partial result", res)
	}
	// The store of the pid came last: that segment may not have been over.
	if want := 300_000; len(got) != want {
		t.Errorf("%d accesses, want %d", len(got), want)
	}
	t.Log(res.Partial)
}

func TestFaultedAccessDidNotHappen(t *testing.T) {
	prog := assemble(t, "fault.S")
	for _, store := range []Store{StoreGuarded, StoreCheck} {
		got, res := accessesOf(t, Command{Args: []string{prog}}, Options{Store: store})
		if res.Signal != syscall.SIGSEGV || len(res.Partial) != 0 {
			t.Errorf("%+v, want SIGSEGV and all accesses", res)
		}
		// 3 of the segment happened, the faulting store and what stands
		// behind it did not.
		if len(got) != 3 {
			t.Errorf("%s: %d accesses, want 3: %+v", store, len(got), got)
		}
	}
}

// valgrind makes several turns of a short loop one superblock, in which each instruction
// is more than once.
func TestFaultInALoopThatIsUnrolled(t *testing.T) {
	for from := 0; from < 8*8; from += 8 {
		prog := compile(t, "unrolled.S", "-nostdlib", "-static", fmt.Sprintf("-DFROM=%d", from))
		got, res := accessesOf(t, Command{Args: []string{prog}}, Options{})
		if res.Signal != syscall.SIGSEGV || len(res.Partial) != 0 {
			t.Errorf("%+v, want SIGSEGV and all accesses", res)
		}
		if want := 2 * (4096 - from) / 8; len(got) != want {
			t.Errorf("from %d: %d accesses, want %d", from, len(got), want)
			continue
		}
		for i, a := range got {
			if at := got[0].Addr + uint64(i/2*8); i%2 == 0 && (a.Addr != at || a.Op != model.Load) || i%2 == 1 && (a.Addr != got[1].Addr || a.Op != model.Store) {
				t.Errorf("from %d: access %d is %+v", from, i, a)
				break
			}
		}
	}
}

// Each turn: two loads, the store that faults, the handler's store to the
// saved register and its return, the store again, a load.
func TestFaultsAcrossBuffers(t *testing.T) {
	const turns, perTurn = 200_000, 6
	prog := assemble(t, "faults.S")
	for _, store := range []Store{StoreGuarded, StoreCheck} {
		got, res := accessesOf(t, Command{Args: []string{prog}}, Options{Store: store})
		if res.ExitCode != 0 || len(res.Partial) != 0 {
			t.Errorf("%+v", res)
		}
		if len(got) != turns*perTurn {
			t.Errorf("%s: %d accesses, want %d", store, len(got), turns*perTurn)
			continue
		}
		x := got[0].Addr
		for i := 0; i < len(got); i += perTurn {
			g := got[i : i+perTurn]
			if g[0].Addr != x || g[1].Addr != x+8 || g[2].Op != model.Store || g[3].Op != model.Load ||
				g[4].Addr != x+16 || g[4].Op != model.Store || g[5].Addr != x+16 || g[5].Op != model.Load {
				t.Errorf("%s: turn %d: %+v", store, i/perTurn, g)
				break
			}
		}
	}
}

// Elements that a mask leaves out are no accesses.
func TestMaskedAccesses(t *testing.T) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !bytes.Contains(cpu, []byte(" avx2 ")) {
		t.Skip("needs a processor with AVX2")
	}
	got, res := accessesOf(t, Command{Args: []string{assemble(t, "masked.S")}}, Options{})
	if res.ExitCode != 0 || len(res.Partial) != 0 {
		t.Errorf("%+v", res)
	}
	want := []known{
		{model.Load, 32, 512, false}, {model.Load, 32, 544, false},
		{model.Load, 8, 0, false}, {model.Load, 8, 16, false},
		{model.Load, 32, 544, false},
		{model.Load, 8, 0, false}, {model.Load, 8, 16, false},
		{model.Store, 8, 64, false}, {model.Store, 8, 80, false},
		{model.Load, 10, 0, false}, {model.Store, 10, 16, false},
	}
	if len(got) != len(want) {
		t.Fatalf("%d accesses, want %d: %+v", len(got), len(want), got)
	}
	table := got[0].Addr - 512
	for i, g := range got {
		if w := want[i]; g.Addr != table+w.at || g.Size != w.size || g.Op != w.op {
			t.Errorf("access %d: %+v, want %+v from %#x", i, g, w, table)
		}
	}
}

// valgrind stores a register whose bit is tested on the stack; the processor
// does not.
func TestBitTestOfARegisterIsNoAccess(t *testing.T) {
	prog := assemble(t, "bits.S")
	for _, spills := range []bool{false, true} {
		got, res := accessesOf(t, Command{Args: []string{prog}}, Options{spills: spills})
		if res.ExitCode != 0 || len(res.Partial) != 0 {
			t.Errorf("%+v", res)
		}
		// of bts in memory
		if !spills && (len(got) != 2 || got[0].Op != model.Load || got[1].Op != model.Store || got[0].Addr != got[1].Addr) {
			t.Errorf("%+v, want a load and a store", got)
		}
		if spills && len(got) <= 2 {
			t.Errorf("%d accesses: valgrind stores nothing any more, and nothing needs to be left out", len(got))
		}
	}
}

func TestThreads(t *testing.T) {
	prog := compile(t, "threads.c", "-O1", "-pthread")
	var out bytes.Buffer
	got, res := accessesOf(t, Command{Args: []string{prog}, Stdout: &out}, Options{})
	if len(res.Partial) > 0 || res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
	checkRows(t, out.String(), got)
}

// checkRows checks what the four threads of threads.c have stored, each in its own
// row of the array whose address the program prints.
func checkRows(t *testing.T, printed string, got []model.Access) {
	t.Helper()
	var words uint64
	if _, err := fmt.Sscanf(printed, "0x%x", &words); err != nil {
		t.Fatal(err)
	}
	stores := map[int32]map[uint64]int{}
	for _, a := range got {
		if a.Addr-words < 4*64 && a.Op == model.Store {
			if stores[a.Thread] == nil {
				stores[a.Thread] = map[uint64]int{}
			}
			stores[a.Thread][(a.Addr-words)/64]++
		}
	}
	if len(stores) != 4 {
		t.Errorf("%d threads stored, want 4", len(stores))
	}
	for id, s := range stores {
		if len(s) != 1 {
			t.Errorf("thread %d stored to %d rows, want its own", id, len(s))
		}
		for row, n := range s {
			if n != 200_000 {
				t.Errorf("thread %d, row %d: %d stores", id, row, n)
			}
		}
	}
}

// What is recorded and read again is what Run hands out.
func TestRecordingIsTheRun(t *testing.T) {
	cmd := Command{Args: programs(t)[1], Env: pinned}
	want, _ := accessesOf(t, cmd, Options{})
	path := filepath.Join(t.TempDir(), "t.rdt")
	_, s, err := Record(context.Background(), path, cmd, RecordOptions{Options: Options{Engine: engineDir(t)}})
	if err != nil || len(s.Partial) != 0 || s.Accesses != uint64(len(want)) {
		t.Fatalf("%+v, %v; want %d accesses", s, err, len(want))
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, got := readAll(t, f.Reader)
	for i := range want {
		want[i].Thread = got[0].Thread
	}
	if !slices.Equal(got, want) {
		t.Errorf("differs at %s", firstDifference(got, want))
	}
}

func TestLiveIsTheRun(t *testing.T) {
	cmd := Command{Args: []string{assemble(t, "known.S")}}
	want, _ := accessesOf(t, cmd, Options{})
	l := StartLive(context.Background(), cmd, Options{Engine: engineDir(t)})
	defer l.Close()
	var got []model.Access
	for l.Next() {
		a, _ := l.Record()
		got = append(got, *a)
	}
	if err := l.Err(); err != nil || l.Result().ExitCode != 0 {
		t.Errorf("%v, %+v", err, l.Result())
	}
	for i := range want {
		want[i].Thread = got[0].Thread
	}
	if !slices.Equal(got, want) {
		t.Errorf("differs at %s", firstDifference(got, want))
	}
}

func TestLiveThatIsNotReadToItsEnd(t *testing.T) {
	l := StartLive(context.Background(), Command{Args: []string{"/bin/sh", "-c", "while :; do :; done"}}, Options{Engine: engineDir(t)})
	if !l.Next() {
		t.Fatal(l.Err())
	}
	l.Close() // the program would go on for ever
	if r := l.Result(); r.Signal != syscall.SIGTERM || len(r.Partial) == 0 {
		t.Errorf("%+v, want SIGTERM and a partial result", r)
	}
}

// The program goes on, and its output is whole, when nobody takes the
// accesses any more.
func TestProgramOutlivesAFailedRecording(t *testing.T) {
	text := programs(t)[1]
	var out bytes.Buffer
	failed := errors.New("reader failed")
	_, err := run(context.Background(), Command{Args: text, Stdout: &out}, Options{Engine: engineDir(t)}, failing{failed})
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	want, err := exec.Command(text[0], text[1:]...).Output()
	if err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%d bytes of output, want %d (%v)", out.Len(), len(want), err)
	}
}

type failing struct{ error }

func (f failing) open(int) (sink, error) { return f, nil }

func (f failing) after(do func()) { do() }

func (f failing) enter(*decoder, []uint64, int) (int, error) { return 0, f.error }

func TestFullDiskWhileRecording(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	_, _, err := Record(context.Background(), "/dev/full", Command{Args: []string{"/bin/true"}}, RecordOptions{Options: Options{Engine: engineDir(t)}})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want ENOSPC", err)
	}
}

func TestRecordingThatDidNotStartLeavesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.rdt")
	for _, engine := range []string{engineDir(t), t.TempDir()} {
		_, _, err := Record(context.Background(), path, Command{Args: []string{"/no-such-program"}}, RecordOptions{Options: Options{Engine: engine}})
		if err == nil {
			t.Error("no error")
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("a file is left: %v", err)
		}
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := Run(context.Background(), Command{Args: []string{"./no-such-program"}}, Options{Engine: engineDir(t)}, func([]model.Access) {})
	if err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error %v", err)
	}
}
