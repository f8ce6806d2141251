// Needs: readelf, gcc; for arm64 files aarch64-linux-gnu-readelf and a C library of it.
package unwind

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lookTool finds a program or skips the test.
func lookTool(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("needs %s: apt-get install %s", name, pkg)
	}
	return path
}

func openTable(t *testing.T, path string, arch *Arch) *Table {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	table, err := NewTable(f, arch)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// text is a rule as readelf prints it.
func (r rule) text() string {
	switch r.kind {
	case offset:
		return fmt.Sprintf("c%+d", r.offset)
	case valOffset:
		return fmt.Sprintf("v%+d", r.offset)
	case register:
		return fmt.Sprintf("r%d", r.reg)
	case expression:
		return "exp"
	case valExpression:
		return "vexp"
	}
	return "u" // same and undefined
}

func (r *row) cfaText(a *Arch) string {
	if r.cfa.kind == register {
		return fmt.Sprintf("%s%+d", a.names[r.cfa.reg], r.cfa.offset)
	}
	return "exp"
}

// compareReadelf compares every row of every function with those of readelf.
func compareReadelf(t *testing.T, readelf, path string, arch *Arch) {
	t.Helper()
	table := openTable(t, path, arch)
	cmd := exec.Command(readelf, "--debug-dump=no-follow-links,frames-interp", path)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var got []string // of the function that is being read, in the form of got
	var columns []string
	functions, rows, wrong := 0, 0, 0
	finish := func(f *fde, want []string) {
		if f == nil || len(want) == 0 {
			return
		}
		functions++
		got = got[:0]
		f.rows(func(r *row) bool {
			line := fmt.Sprintf("%016x %s", r.start, r.cfaText(arch))
			for _, c := range columns {
				n := slices.Index(arch.names, c)
				if c == "ra" {
					n = int(r.ra)
				}
				if n < 0 {
					continue
				}
				line += " " + r.rule(uint8(n)).text()
			}
			got = append(got, line)
			return true
		})
		rows += len(got)
		if !slices.Equal(got, want) {
			if wrong++; wrong <= 3 {
				t.Errorf("%s, function at %#x:\n%s\nreadelf says:\n%s", path, f.start, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
	var current *fde
	var want []string
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		w := slices.DeleteFunc(strings.Fields(s.Text()), func(w string) bool { return w[0] == '(' }) // r3 (rbx)
		switch {
		case len(w) == 0:
			finish(current, want)
			current, want, columns = nil, nil, nil
		case len(w) > 3 && w[3] == "FDE":
			pc := strings.TrimPrefix(w[len(w)-1], "pc=")
			start, _, _ := strings.Cut(pc, "..")
			at, err := strconv.ParseUint(start, 16, 64)
			if err != nil {
				t.Fatalf("readelf says %q", s.Text())
			}
			if current, err = table.fde(at); err != nil {
				wrong++
				t.Errorf("%s, function at %#x: %v", path, at, err)
			}
		case w[0] == "LOC":
			columns = w[2:]
		case current != nil && len(w) > 1:
			line := w[0] + " " + w[1]
			for i, c := range columns {
				if c == "ra" || slices.Contains(arch.names, c) {
					line += " " + strings.ReplaceAll(w[2+i], "s", "u")
				}
			}
			want = append(want, line)
		}
	}
	finish(current, want)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d functions, %d rows, %d functions wrong", path, functions, rows, wrong)
	if functions == 0 {
		t.Errorf("%s: readelf lists no function", path)
	}
}

func TestReadelf(t *testing.T) {
	readelf := lookTool(t, "readelf", "binutils")
	for _, name := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/xz", "/usr/bin/sqlite3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/liblzma.so.5", "/usr/bin/python3"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			if _, err := os.Stat(name); err != nil {
				t.Skipf("needs %s", name)
			}
			compareReadelf(t, readelf, name, AMD64)
		})
	}
}

func TestReadelfARM64(t *testing.T) {
	readelf := lookTool(t, "aarch64-linux-gnu-readelf", "binutils-aarch64-linux-gnu")
	for _, name := range []string{"/usr/aarch64-linux-gnu/lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/libstdc++.so.6", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			if _, err := os.Stat(name); err != nil {
				t.Skipf("needs %s: apt-get install libc6-arm64-cross libstdc++6-arm64-cross", name)
			}
			compareReadelf(t, readelf, name, ARM64)
		})
	}
}

// Without .eh_frame_hdr, and where only .debug_frame is left, the entries are
// found all the same.
func TestReadelfSections(t *testing.T) {
	readelf := lookTool(t, "readelf", "binutils")
	gcc := lookTool(t, "gcc", "gcc")
	for name, flags := range map[string][]string{
		"no header":    {"-Wl,--no-eh-frame-hdr"},
		"debug_frame":  {"-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-nostdlib", "-Wl,--build-id=none"},
		"compressed":   {"-g", "-gz", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-nostdlib"},
		"static":       {"-static"},
		"stack arrays": {"-mavx2", "-O3"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := filepath.Join(t.TempDir(), "chain")
			args := append([]string{"-O2", "-fomit-frame-pointer", "-o", bin, "testdata/frames.c"}, flags...)
			if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
				t.Fatalf("compile: %v: %s", err, out)
			}
			compareReadelf(t, readelf, bin, AMD64)
		})
	}
}
