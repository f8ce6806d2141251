// Needs gcc, make and the package valgrind (its headers too); skips without.
package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// Programs of every language store 100,000 times to an array whose address
// they print.
func TestLanguages(t *testing.T) {
	dir := t.TempDir()
	prog := filepath.Join(dir, "fill")
	goSource := filepath.Join(dir, "fill.go")
	for _, c := range []struct {
		name, source string
		build        []string
		run          []string
	}{
		{"C", "fill.c", []string{"gcc", "-O1", "-o", prog, "testdata/fill.c"}, []string{prog}},
		{"C++", "fill.cc", []string{"g++", "-O1", "-o", prog, "testdata/fill.cc"}, []string{prog}},
		{"Rust", "fill.rs", []string{"rustc", "-O", "-o", prog, "testdata/fill.rs"}, []string{prog}},
		{"Go", "fill.go.txt", []string{"go", "build", "-o", prog, goSource}, []string{prog}},
		{"Python", "fill.py", nil, []string{"/usr/bin/python3", "testdata/fill.py"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "Go" {
				b, err := os.ReadFile("testdata/fill.go.txt")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(goSource, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.build != nil {
				if _, err := exec.LookPath(c.build[0]); err != nil {
					t.Skip(err)
				}
				if b, err := exec.Command(c.build[0], c.build[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", c.build, err, b)
				}
			} else if _, err := os.Stat(c.run[0]); err != nil {
				t.Skip(err)
			}
			var out bytes.Buffer
			stores := map[uint64]int{}
			res, err := Run(context.Background(), Command{Args: c.run, Stdout: &out}, Options{Engine: engineDir(t)}, func(b []model.Access) {
				for _, a := range b {
					if a.Op == model.Store && a.Size == 8 {
						stores[a.Addr]++
					}
				}
			})
			if err != nil || res.ExitCode != 0 || len(res.Partial) != 0 {
				t.Fatalf("%v, %+v", err, res)
			}
			var at uint64
			if _, err := fmt.Sscanf(out.String(), "0x%x", &at); err != nil {
				t.Fatal(err)
			}
			n, once := 0, 0
			for i := range uint64(100_000) {
				k := stores[at+8*i]
				n += min(k, 1)
				if k == 1 {
					once++
				}
			}
			// Python's and Go's allocators may have written to a few words
			// of the array's pages before.
			if n != 100_000 || once < 99_000 {
				t.Errorf("%d of 100,000 words stored to, %d of them once", n, once)
			}
			t.Logf("%d words stored to once", once)
		})
	}
}

func TestSignalsReachTheProgram(t *testing.T) {
	var out bytes.Buffer
	got, res := accessesOf(t, Command{Args: []string{compile(t, "signals.c", "-O1")}, Stdout: &out}, Options{})
	if res.ExitCode != 0 || len(res.Partial) != 0 {
		t.Errorf("%+v", res)
	}
	var counter uint64
	if _, err := fmt.Sscanf(out.String(), "0x%x", &counter); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range got {
		if a.Addr == counter && a.Op == model.Store {
			n++
		}
	}
	if n != 1000 {
		t.Errorf("%d stores by the handler, want 1000", n)
	}
}

// A program that replaces itself is recorded up to there, which is said, and what replaces
// it on request.
func TestExec(t *testing.T) {
	for _, children := range []bool{false, true} {
		var out bytes.Buffer
		cmd := Command{Args: []string{"/bin/sh", "-c", "exec /bin/echo hello"}, Stdout: &out}
		_, res := accessesOf(t, cmd, Options{Children: children})
		want := 1
		if children {
			want = 2
		}
		if out.String() != "hello\n" || res.ExitCode != 0 || res.Processes != want || children != (len(res.Partial) == 0) {
			t.Errorf("children %v: output %q, %+v, want %d streams", children, &out, res, want)
		}
	}
}

func TestStackUnmapped(t *testing.T) {
	got, res := accessesOf(t, Command{Args: []string{assemble(t, "unmap.S")}}, Options{})
	if res.Signal != syscall.SIGSEGV || len(res.Partial) != 0 || len(got) != 1 {
		t.Errorf("%d accesses, want 1; %+v, want SIGSEGV", len(got), res)
	}
}

func TestClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	path := filepath.Join(t.TempDir(), "t.rdt")
	res, s, err := Record(context.Background(), path, Command{Args: []string{"/usr/bin/yes"}, Stdout: w},
		RecordOptions{Options: Options{Engine: engineDir(t)}})
	if err != nil || res.Signal != syscall.SIGPIPE || s.Signal != int(syscall.SIGPIPE) || s.Accesses == 0 {
		t.Errorf("%v, %+v, %+v, want SIGPIPE", err, res, s)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, got := readAll(t, f.Reader); uint64(len(got)) != s.Accesses || len(f.Damage()) != 0 {
		t.Errorf("%d accesses read of %d, %v", len(got), s.Accesses, f.Damage())
	}
}

// While the program runs it is told how much has been recorded.
func TestProgressOfRecording(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var accesses uint64
	var size int64
	told := 0
	opt := RecordOptions{Options: Options{Engine: engineDir(t)}, Progress: func(a uint64, s int64) {
		if told++; told == 1 {
			accesses, size = a, s
			w.Close() // what the program waits for
		}
	}}
	path := filepath.Join(t.TempDir(), "t.rdt")
	args := []string{"/bin/sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; read x"}
	_, s, err := Record(context.Background(), path, Command{Args: args, Stdin: r}, opt)
	if err != nil || told == 0 || accesses > s.Accesses || size == 0 {
		t.Errorf("%v; told %d times, first of %d accesses and %d bytes; %d in the end", err, told, accesses, size, s.Accesses)
	}
}

// The recording ends although the program goes on in ever new processes.
func TestForksWithoutEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		b := make([]byte, 4096)
		for {
			if _, err := r.Read(b); err != nil {
				return
			}
		}
	}()
	prog := compile(t, "chain.c", "-O1")
	_, res := accessesOf(t, Command{Args: []string{prog}, Stdout: w}, Options{Children: true, MaxProcesses: 3})
	w.Close()
	if res.ExitCode != 0 || res.Processes == 0 {
		t.Errorf("%+v", res)
	}
	t.Logf("%d processes recorded, %q", res.Processes, res.Partial)
}

// Programs that a child starts when the program has ended are not left to wait for an answer: they go on unrecorded, and
// the result says so.
func TestChildStartsProgramsAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const programs = 10
	done := filepath.Join(t.TempDir(), "done")
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // a pipe would be waited for, and so the child
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	// The program is gone once it has been waited for.
	script := `(while kill -0 $$ 2>/dev/null; do :; done; for i in 1 2 3 4 5 6 7 8 9 10; do /bin/echo $i; done; echo done >"$0") & exit 5`
	res, err := Run(ctx, Command{Args: []string{"/bin/sh", "-c", script, done}, Stdout: out}, Options{Engine: engineDir(t), Children: true}, func([]model.Access) {})
	if err != nil || res.ExitCode != 5 || ctx.Err() != nil {
		t.Errorf("%v, %+v, %v", err, res, ctx.Err())
	}
	// The child, which is recorded, has ended.
	said, err := os.ReadFile(out.Name())
	if b, e := os.ReadFile(done); e != nil || err != nil || string(b) != "done\n" || strings.Count(string(said), "\n") != programs {
		t.Errorf("the child has not come to its end: %q, %v, output %q, %v", b, e, said, err)
	}
	// The shell and its child; of each program a stream before exec and one after.
	const all = 2 + 2*programs
	if late := len(res.Partial) == 1 && strings.Contains(res.Partial[0], "after the program's end"); res.Processes < 2 || late == (res.Processes == all) || len(res.Partial) > 1 {
		t.Errorf("%d of %d streams, %q", res.Processes, all, res.Partial)
	}
	t.Logf("%d of %d streams, %q", res.Processes, all, res.Partial)
}

// What is missing is named by the package that has it.
func TestEngineMissing(t *testing.T) {
	t.Setenv("RDX_ENGINE", t.TempDir())
	_, err := Run(context.Background(), Command{Args: []string{"/bin/true"}}, Options{}, func([]model.Access) {})
	if err == nil || !strings.Contains(err.Error(), "packages valgrind, gcc") {
		t.Errorf("error %v", err)
	}
	_, err = Run(context.Background(), Command{Args: []string{"/bin/true"}}, Options{Engine: t.TempDir()}, func([]model.Access) {})
	if err == nil || !strings.Contains(err.Error(), "packages valgrind, gcc") {
		t.Errorf("error %v", err)
	}
	dir := engineDir(t)
	t.Setenv("PATH", t.TempDir())
	_, err = Run(context.Background(), Command{Args: []string{"/bin/true"}}, Options{Engine: dir}, func([]model.Access) {})
	if err == nil || !strings.Contains(err.Error(), "apt-get install valgrind") {
		t.Errorf("error %v", err)
	}
}

// The disk fills up in the middle of a long recording: the program goes on to
// its end, and what was written is read again.
func TestDiskFillsUpWhileRecording(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("needs a file system of its own: %v", err)
	}
	defer syscall.Unmount(dir, 0)
	var out bytes.Buffer
	path := filepath.Join(dir, "t.rdt")
	args := []string{"/bin/sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i"}
	res, s, err := Record(context.Background(), path, Command{Args: args, Stdout: &out}, RecordOptions{Options: Options{Engine: engineDir(t)}})
	if !errors.Is(err, syscall.ENOSPC) || len(s.Partial) == 0 || out.String() != "200000\n" || res.ExitCode != 0 {
		t.Errorf("error %v, output %q, %+v, %+v", err, &out, res, s)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := uint64(0)
	for {
		_, b, err := f.Next()
		if err != nil {
			break
		}
		n += uint64(len(b))
	}
	if n == 0 || n != s.Accesses || len(f.Damage()) != 0 || len(f.Summary().Partial) == 0 {
		t.Errorf("%d accesses read, the summary has %d; %v", n, s.Accesses, f.Damage())
	}
}

// skips lets the program go on unseen now and then, and compares what is seen
// with the whole stream.
type skips struct {
	t    *testing.T
	rng  *rand.Rand
	all  []model.Access
	at   int // in all
	seen int
}

func (s *skips) Skip() uint64 { return uint64(s.rng.Intn(3) * s.rng.Intn(50_000)) }

func (s *skips) Skipped(n uint64) { s.at += int(n) }

func (s *skips) see(batch []model.Access) {
	s.seen += len(batch)
	for i := range batch {
		a := batch[i]
		a.Thread = 0
		if s.at >= len(s.all) || s.all[s.at] != a {
			s.t.Fatalf("access %d: %+v, not as in the run that was seen whole", s.at, a)
		}
		s.at++
	}
}

// Accesses that are skipped are counted to the last one, so that those seen in
// between are where they were when all were seen.
func TestSkippedAccessesAreCounted(t *testing.T) {
	const seed = 1
	text := filepath.Join(t.TempDir(), "text")
	var in []byte
	for i := range 1000 {
		in = append(in, programLine(i)...)
	}
	if err := os.WriteFile(text, in, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := Command{Args: []string{"/bin/gzip", "-6", "-c", text}, Env: pinned}
	opt := Options{Engine: engineDir(t)}
	s := &skips{t: t, rng: rand.New(rand.NewSource(seed))}
	if _, err := Run(context.Background(), cmd, opt, func(batch []model.Access) {
		for _, a := range batch {
			a.Thread = 0
			s.all = append(s.all, a)
		}
	}); err != nil {
		t.Fatal(err)
	}
	opt.Skipper = s
	res, err := Run(context.Background(), cmd, opt, s.see)
	if err != nil || len(res.Partial) > 0 {
		t.Fatal(err, res.Partial)
	}
	if s.at != len(s.all) || s.seen == 0 || s.seen > len(s.all)*9/10 {
		t.Errorf("seed %d: %d accesses seen, %d in all, of %d", seed, s.seen, s.at, len(s.all))
	}
}

// A pipe that may be executed, or interprets a script, is not opened: that would wait for whoever writes to it.
func TestPipeAsProgram(t *testing.T) {
	dir := t.TempDir()
	pipe, script := filepath.Join(dir, "pipe"), filepath.Join(dir, "script")
	if err := syscall.Mkfifo(pipe, 0o755); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(script, []byte("#!"+pipe+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{pipe, script} {
		done := make(chan error, 1)
		go func() {
			_, err := Run(context.Background(), Command{Args: []string{program}}, Options{Engine: dir}, func([]model.Access) {})
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), pipe+" is no regular file") {
				t.Errorf("%s: %v", program, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: it is waited for", program)
			if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // what waits goes on
				f.Close()
			}
		}
	}
}
