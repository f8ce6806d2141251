// Needs: root or the same user (ptrace), gcc; some tests eu-stack, g++, rustc.
package unwind

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// image is a mapping of code of a process.
type image struct {
	start, limit, offset uint64
	file                 string
	table                *Table
}

type images []image

// imagesOf reads what code a process has mapped.
func imagesOf(t *testing.T, pid int) images {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out images
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if w[1][2] != 'x' {
			continue
		}
		var m image
		fmt.Sscanf(s.Text(), "%x-%x %s %x", &m.start, &m.limit, &w[1], &m.offset)
		if len(w) > 5 {
			m.file = w[5]
		}
		var r io.ReaderAt
		if m.file == "[vdso]" {
			b := make([]byte, m.limit-m.start)
			mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := mem.ReadAt(b, int64(m.start)); err != nil {
				t.Fatal(err)
			}
			mem.Close()
			r = bytes.NewReader(b)
		} else if strings.HasPrefix(m.file, "/") {
			f, err := os.Open(m.file)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			r = f
		}
		if r != nil {
			if m.table, err = NewTable(r, AMD64); err != nil {
				t.Fatalf("%s: %v", m.file, err)
			}
		}
		out = append(out, m)
	}
	return out
}

func (all images) find(pc uint64) Code {
	for _, m := range all {
		if pc >= m.start && pc < m.limit {
			c := Code{Known: true}
			if m.table != nil {
				if addr, ok := m.table.Address(pc - m.start + m.offset); ok {
					c.Table, c.PC = m.table, addr
				}
			}
			return c
		}
	}
	return Code{}
}

// stopped waits until a process is stopped by SIGSTOP.
func stopped(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if after := b[bytes.LastIndexByte(b, ')')+2:]; after[0] == 'T' {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("process does not stop")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// working waits until a process has used so much CPU time that all its libraries are
// mapped, however busy the machine is.
func working(t *testing.T, pid int) {
	t.Helper()
	const ticks = 20 // of 10 ms
	for deadline := time.Now().Add(30 * time.Second); ; {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		var user, system int
		after := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+2:]))
		fmt.Sscan(after[11]+" "+after[12], &user, &system)
		if user+system >= ticks {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process has used %d ms of CPU time in 30 s", 10*(user+system))
		}
		time.Sleep(time.Millisecond)
	}
}

// snapshot copies registers and stack of a stopped process's first thread.
func snapshot(t *testing.T, pid int) *Snapshot {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		t.Skipf("needs ptrace: %v", err)
	}
	defer unix.PtraceDetach(pid)
	if err := unix.PtraceInterrupt(pid); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		t.Fatal(err)
	}
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		t.Fatal(err)
	}
	s := new(Snapshot)
	s.Regs.PC = r.Rip
	copy(s.Regs.R[:], []uint64{r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15})
	s.Stack = Stack{Base: r.Rsp, Data: make([]byte, 1<<20)}
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &s.Stack.Data[0], Len: 1 << 20}}, []unix.RemoteIovec{{Base: uintptr(r.Rsp), Len: 1 << 20}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Stack.Data = s.Stack.Data[:n]
	return s
}

// euStack is the stack by elfutils, return addresses as they are.
func euStack(t *testing.T, tool string, pid int) []uint64 {
	t.Helper()
	out, err := exec.Command(tool, "-1", "-n", "0", "-p", strconv.Itoa(pid)).Output()
	if len(out) == 0 && err != nil {
		t.Fatalf("eu-stack: %v", err)
	}
	var pcs []uint64
	for line := range strings.Lines(string(out)) {
		var n int
		var pc uint64
		if _, err := fmt.Sscanf(line, "#%d 0x%x", &n, &pc); err == nil {
			pcs = append(pcs, pc)
		}
	}
	return pcs
}

// Whole stacks of real programs, stopped anywhere, against elfutils.
func TestAgainstElfutils(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs x86-64")
	}
	eu := lookTool(t, "eu-stack", "elfutils")
	text := filepath.Join(t.TempDir(), "text")
	b := make([]byte, 8<<20)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range b {
		b[i] = byte('a' + r.IntN(8)*r.IntN(3))
	}
	if err := os.WriteFile(text, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{
		{"xz", "-9", "-k", "-c", text},
		{"sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i+1 from n where i<100000000) select count(distinct i%1000003) from n"},
		{"/usr/bin/python3", "-c", "def f(n): return n if n < 2 else f(n-1) + f(n-2)\nwhile True: sorted(str(i * 7919 % 30007) for i in range(30000)); f(15)"},
	} {
		t.Run(filepath.Base(c[0]), func(t *testing.T) {
			lookTool(t, c[0], filepath.Base(c[0]))
			cmd := exec.Command(c[0], c[1:]...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			pid := cmd.Process.Pid
			working(t, pid) // where it stops then does not matter
			var w *Walker
			same, whole := 0, 0
			const stops = 30
			for range stops {
				syscall.Kill(pid, syscall.SIGSTOP)
				stopped(t, pid)
				want := euStack(t, eu, pid)
				s := snapshot(t, pid)
				if w == nil {
					w = NewWalker(AMD64, imagesOf(t, pid).find)
				}
				frames, end := w.Walk(s)
				var got []uint64
				for _, f := range frames {
					got = append(got, f.PC)
				}
				if slices.Equal(got, want) {
					same++
				} else {
					t.Logf("ends %q\n%x\neu-stack:\n%x", end, got, want)
				}
				if end == Outermost {
					whole++
				}
				syscall.Kill(pid, syscall.SIGCONT)
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
			t.Logf("of %d stacks %d as eu-stack has them, %d complete", stops, same, whole)
			if same < stops || whole < stops {
				t.Error("not all the same and complete")
			}
		})
	}
}

// chain is a stack as its functions' names, leaf first.
func chain(t *testing.T, all images, frames []Frame) []string {
	t.Helper()
	symbols := map[string][]elf.Symbol{}
	var names []string
	for i, f := range frames {
		pc := f.PC
		if i > 0 {
			pc--
		}
		name := "?"
		for _, m := range all {
			if pc < m.start || pc >= m.limit || m.table == nil {
				continue
			}
			addr, _ := m.table.Address(pc - m.start + m.offset)
			if symbols[m.file] == nil && m.file != "[vdso]" {
				e, err := elf.Open(m.file)
				if err != nil {
					t.Fatal(err)
				}
				a, _ := e.Symbols()
				b, _ := e.DynamicSymbols()
				symbols[m.file] = append(a, b...)
				e.Close()
			}
			for _, s := range symbols[m.file] {
				if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= addr && addr < s.Value+s.Size {
					name = s.Name
					break
				}
			}
		}
		names = append(names, name)
	}
	return names
}

// Programs that stop themselves at known places.
func TestKnownChains(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs x86-64")
	}
	for _, c := range []struct {
		name, compiler, pkg string
		args                []string
		want                []string // what the names hold, main last
	}{
		{"C", "gcc", "gcc", []string{"testdata/chain.c"}, []string{"stop", "leaf", "callback", "*", "sorted", "recursive", "recursive", "recursive", "dynamic", "aligned", "main"}},
		{"C at -O3", "gcc", "gcc", []string{"-O3", "-mavx2", "testdata/chain.c"}, []string{"stop", "leaf", "callback", "*", "sorted", "recursive", "*", "dynamic", "aligned", "main"}},
		{"C, static", "gcc", "gcc", []string{"-static", "testdata/chain.c"}, []string{"stop", "leaf", "callback", "*", "sorted", "recursive", "recursive", "recursive", "dynamic", "aligned", "main"}},
		{"C, linked early", "gcc", "gcc", []string{"-Wl,-z,now", "-fcf-protection", "testdata/chain.c"}, []string{"stop", "leaf", "callback", "*", "sorted", "recursive", "recursive", "recursive", "dynamic", "aligned", "main"}},
		{"signal handler", "gcc", "gcc", []string{"-DHANDLER", "testdata/chain.c"}, []string{"stop", "leaf", "handler", "*", "interrupted", "main"}},
		{"handler on its own stack", "gcc", "gcc", []string{"-DHANDLER", "-DALTSTACK", "testdata/chain.c"}, []string{"stop", "leaf", "handler"}},
		{"thread", "gcc", "gcc", []string{"-DTHREAD", "-pthread", "testdata/chain.c"}, []string{"stop", "leaf", "work", "*"}},
		{"C++", "g++", "g++", []string{"testdata/chain.cc"}, []string{"stop", "leaf", "Square4area", "*", "_M_invoke", "apply", "caught", "main"}},
		{"Rust", "rustc", "rustc", []string{"-C", "opt-level=2", "-C", "force-frame-pointers=no", "testdata/chain.rs"}, []string{"stop", "leaf", "*", "sorted", "*", "5chain4main", "*", "main", "*"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			compiler := lookTool(t, c.compiler, c.pkg)
			bin := filepath.Join(t.TempDir(), "chain")
			args := append([]string{"-o", bin}, c.args...)
			if c.compiler != "rustc" {
				args = append([]string{"-O2", "-fomit-frame-pointer", "-o", bin}, c.args...)
			}
			if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
				t.Fatalf("compile: %v: %s", err, out)
			}
			cmd := exec.Command(bin)
			cmd.Env = append(os.Environ(), "LD_BIND_NOW=")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			stopped(t, cmd.Process.Pid)
			tid := cmd.Process.Pid
			if c.name == "thread" {
				tid = otherThread(t, tid)
			}
			all := imagesOf(t, cmd.Process.Pid)
			s := snapshot(t, tid)
			frames, end := NewWalker(AMD64, all.find).Walk(s)
			names := chain(t, all, frames)
			t.Logf("%v: %s", end, strings.Join(names, " < "))
			i := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "stop") })
			if i < 0 {
				t.Fatal("the function that stops is not there")
			}
			if at, ok := matches(names[i:], c.want); !ok {
				t.Errorf("want %v, differs at %d", c.want, at)
			}
			if c.name == "handler on its own stack" {
				if end != NotCopied {
					t.Errorf("ends %q, want %q: the interrupted stack is elsewhere", end, NotCopied)
				}
			} else if end != Outermost {
				t.Errorf("ends %q", end)
			}
		})
	}
}

// matches compares names with words that they hold; "*" stands for any number
// of frames.
func matches(names, want []string) (at int, ok bool) {
	if len(want) == 0 {
		return 0, true
	}
	if want[0] == "*" {
		for i := 0; i <= len(names); i++ {
			if _, ok := matches(names[i:], want[1:]); ok {
				return 0, true
			}
		}
		return 0, false
	}
	if len(names) == 0 || !strings.Contains(names[0], want[0]) {
		return 0, false
	}
	at, ok = matches(names[1:], want[1:])
	return at + 1, ok
}

// otherThread is the process's second thread. Its number may come before the first one's, where numbers begin anew,
// and does as a word where they get another digit.
func otherThread(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil || len(entries) != 2 {
		t.Fatalf("threads of the process: %v, %v", entries, err)
	}
	first, _ := strconv.Atoi(entries[0].Name())
	second, _ := strconv.Atoi(entries[1].Name())
	return first + second - pid
}
