// Compiles small programs with gcc, g++, rustc, go and needs objcopy, strip
// and addr2line; what is missing is skipped.
package pprofout

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// files is a target whose mappings are files of this machine.
type files struct{ perfMap string }

func (files) Open(m *model.Mapping) (io.ReaderAt, error) { return os.Open(m.File) }

func (f files) Generated() ([]Generated, func(*model.Mapping) int) {
	return []Generated{{Process: 1, Maps: []io.ReaderAt{strings.NewReader(f.perfMap)}}}, func(m *model.Mapping) int {
		if m == nil {
			return -1
		}
		return 0
	}
}

// debugBelow has debug files in a directory, and beside the files.
type debugBelow string

func (d debugBelow) Open(name string) (io.ReaderAt, error) {
	if rest, ok := strings.CutPrefix(name, debugDir); ok {
		name = string(d) + rest
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

const inlinedC = `#include <stdio.h>
#include <stdlib.h>
static volatile int sink;
static inline __attribute__((always_inline)) int innermost(const int *p, int i) {
	return p[i] * 3 +
	       p[i + 1];
}
static inline __attribute__((always_inline)) int middle(const int *p, int n) {
	int s = 0;
	for (int i = 0; i + 1 < n; i++)
		s += innermost(p, i);
	return s;
}
__attribute__((noinline)) int outer(const int *p, int n) {
	return middle(p, n) + 1;
}
static __attribute__((noinline)) int hidden(int n) { sink = n; return sink * 2; }
int main(int argc, char **argv) {
	int n = 100 + argc;
	int *p = calloc(n, sizeof *p);
	printf("%d %d\n", outer(p, n), hidden(n));
	return 0;
}
`

const inlinedCpp = `#include <vector>
#include <cstdio>
namespace grid {
template <typename T> struct Cell {
	T v;
	inline __attribute__((always_inline)) T twice(int k) const { return v + v * k; }
};
struct Walker {
	int total = 0;
	__attribute__((noinline)) int walk(const std::vector<Cell<int>> &cells) {
		for (const auto &c : cells)
			total += c.twice(total);
		return total;
	}
};
__attribute__((noinline)) int walk(int a) { return a * 7 + (int)*(volatile int *)&a; }
}
int main(int argc, char **) {
	std::vector<grid::Cell<int>> cells(50 + argc);
	grid::Walker w;
	printf("%d %d\n", w.walk(cells), grid::walk(argc));
}
`

const inlinedRust = `
mod grid {
    pub struct Walker { pub total: u64 }
    impl Walker {
        #[inline(always)]
        fn step(&mut self, v: u64) { self.total = self.total.wrapping_mul(3) ^ v; }
        #[inline(never)]
        pub fn walk(&mut self, v: &[u64]) -> u64 {
            for x in v { self.step(*x); }
            self.total
        }
    }
}
fn main() {
    let v: Vec<u64> = std::env::args().map(|a| a.len() as u64).collect();
    let mut w = grid::Walker { total: 1 };
    println!("{}", w.walk(&v));
}
`

const goProgram = `package main

import (
	"fmt"
	"os"
	"runtime"
)

type walker struct{ total int }

func (w *walker) step(v int) { w.total = w.total*3 ^ v }

//go:noinline
func (w *walker) walk(vs []int) int {
	for _, v := range vs {
		w.step(v)
	}
	report()
	return w.total
}

func report() {
	pcs := make([]uintptr, 20)
	for _, pc := range pcs[:runtime.Callers(1, pcs)] {
		f := runtime.FuncForPC(pc - 1)
		file, line := f.FileLine(pc - 1)
		fmt.Printf("%x %s %s %d\n", pc, f.Name(), file, line)
	}
}

func main() {
	w := &walker{}
	w.walk(make([]int, len(os.Args)+10))
	maps, _ := os.ReadFile("/proc/self/maps")
	fmt.Printf("maps\n%s", maps)
}
`

// need skips a test without one of the commands.
func need(t testing.TB, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := exec.LookPath(c); err != nil {
			t.Skipf("no %s on this machine", c)
		}
	}
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	need(t, name)
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func source(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile compiles a source and returns the path of the program.
func compile(t testing.TB, src, compiler string, args ...string) string {
	t.Helper()
	bin := strings.TrimSuffix(src, filepath.Ext(src))
	command(t, compiler, append(args, "-o", bin, src)...)
	return bin
}

// mapped is the code of an ELF file as the kernel would map it at a base
// address: whole pages.
func mapped(t testing.TB, path string, base uint64) (*elf.File, []*model.Mapping) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if f.Type == elf.ET_EXEC {
		base = 0
	}
	var ms []*model.Mapping
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			ms = append(ms, &model.Mapping{Start: base + p.Vaddr&^0xfff, Limit: base + (p.Vaddr+p.Filesz+0xfff)&^0xfff, Offset: p.Off &^ 0xfff, File: path})
		}
	}
	return f, ms
}

// functions is the code of the named functions, from their symbols.
func functions(t testing.TB, path string, match func(name string) bool) []uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var pcs []uint64
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && match(s.Name) {
			for pc := s.Value; pc < s.Value+s.Size; pc++ {
				pcs = append(pcs, pc)
			}
		}
	}
	if len(pcs) == 0 {
		t.Fatalf("%s: none of the functions looked for", path)
	}
	slices.Sort(pcs)
	return slices.Compact(pcs) // a function can have several names
}

// addr2line is binutils' answer, innermost first, as "function file:line".
func addr2line(t testing.TB, path string, pcs []uint64) map[uint64][]string {
	t.Helper()
	need(t, "addr2line")
	var in bytes.Buffer
	for _, pc := range pcs {
		fmt.Fprintf(&in, "%x\n", pc)
	}
	cmd := exec.Command("addr2line", "-a", "-f", "-i", "-e", path)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint64][]string{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	var pc uint64
	for lines.Scan() {
		l := lines.Text()
		if strings.HasPrefix(l, "0x") {
			pc, _ = strconv.ParseUint(l[2:], 16, 64)
			continue
		}
		lines.Scan()
		at, _, _ := strings.Cut(lines.Text(), " (discriminator")
		at = strings.ReplaceAll(strings.ReplaceAll(at, ":?", ":0"), "??:", ":")
		all[pc] = append(all[pc], l+" "+at)
	}
	return all
}

func frames(l *model.Location) []string {
	var out []string
	for _, ln := range l.Lines {
		out = append(out, fmt.Sprintf("%s %s:%d", ln.SystemName, ln.File, ln.Line))
	}
	return out
}

// symbolizeAt looks every address up as a leaf.
func symbolizeAt(t testing.TB, s symbolizer, ms []*model.Mapping, base uint64, pcs []uint64) ([]*model.Location, Stats) {
	t.Helper()
	p := &model.Profile{BinsPerOctave: 8}
	var locs []*model.Location
	for _, pc := range pcs {
		var in *model.Mapping
		for _, m := range ms {
			if base+pc >= m.Start && base+pc < m.Limit {
				in = m
			}
		}
		l := &model.Location{Address: base + pc, Mapping: in}
		locs = append(locs, l)
		p.Records = append(p.Records, model.Record{Kind: model.Cold, Use: []*model.Location{l}, Weight: model.Weight{Observations: 1}})
	}
	stats, err := s.run(p, files{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, p)
	return locs, stats
}

// compare checks every address against addr2line, and that the program has
// what the test is for: calls inlined two deep.
func compare(t *testing.T, s symbolizer, path, oracle string, pcs []uint64, depth int) {
	t.Helper()
	const base = 0x555555554000
	f, ms := mapped(t, path, base)
	at := uint64(base)
	if f.Type == elf.ET_EXEC {
		at = 0
	}
	locs, stats := symbolizeAt(t, s, ms, at, pcs)
	want := addr2line(t, oracle, pcs)
	deepest, wrong := 0, 0
	for i, pc := range pcs {
		got := frames(locs[i])
		if !slices.Equal(got, want[pc]) {
			if wrong++; wrong <= 5 {
				t.Errorf("%#x\n got %q\nwant %q", pc, got, want[pc])
			}
		}
		deepest = max(deepest, len(got))
	}
	if wrong > 0 {
		t.Errorf("%d of %d addresses differ from addr2line", wrong, len(pcs))
	}
	if deepest < depth {
		t.Errorf("deepest inlining is %d frames, the program has %d", deepest, depth)
	}
	if stats.Functions != len(pcs) || stats.Locations != len(pcs) || len(stats.Problems) > 0 {
		t.Errorf("stats %+v of %d addresses", stats, len(pcs))
	}
}

func isMine(name string) bool {
	return slices.Contains([]string{"outer", "hidden", "main"}, name) || strings.Contains(name, "grid")
}

func TestSymbolizeC(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	for name, args := range map[string][]string{
		"pie":        {"-g", "-O2", "-pie", "-fPIE"},
		"non-pie":    {"-g", "-O2", "-no-pie"},
		"static":     {"-g", "-O2", "-static"},
		"O0":         {"-g", "-O0"},
		"dwarf4":     {"-gdwarf-4", "-O2"},
		"dwarf3":     {"-gdwarf-3", "-gstrict-dwarf", "-O2"},
		"compressed": {"-g", "-O2", "-gz"},
		"moved text": {"-g", "-O2", "-pie", "-fPIE", "-Wl,--section-start=.text=0x123450"},
		"gc":         {"-g", "-O2", "-ffunction-sections", "-Wl,--gc-sections"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := compile(t, source(t, "prog.c", inlinedC), "gcc", args...)
			if name == "moved text" {
				f, _ := mapped(t, bin, 0)
				moved := false
				for _, p := range f.Progs {
					moved = moved || p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Off != p.Vaddr
				}
				if !moved {
					t.Error("the linker put the code where its offset is: nothing tested")
				}
			}
			compare(t, symbolizer{}, bin, bin, functions(t, bin, isMine), 3)
		})
	}
}

func TestSymbolizeClang(t *testing.T) {
	bin := compile(t, source(t, "prog.c", inlinedC), "clang", "-g", "-O1")
	compare(t, symbolizer{}, bin, bin, functions(t, bin, isMine), 3)
}

func TestSymbolizeCpp(t *testing.T) {
	bin := compile(t, source(t, "prog.cc", inlinedCpp), "g++", "-g", "-O2")
	pcs := functions(t, bin, isMine)
	compare(t, symbolizer{}, bin, bin, pcs, 3)

	const base = 0x7f0000000000
	_, ms := mapped(t, bin, base)
	locs, _ := symbolizeAt(t, symbolizer{}, ms, base, pcs)
	seen := map[string]bool{}
	for _, l := range locs {
		for _, ln := range l.Lines {
			seen[ln.Function] = true
		}
	}
	for _, want := range []string{"grid::Walker::walk", "grid::Cell<int>::twice", "grid::walk", "main"} {
		if !seen[want] {
			t.Errorf("no function %q among %v", want, seen)
		}
	}
}

// Three files compiled with one template: the linker keeps one copy of its
// code, which all three units claim. (An early version stopped when it had
// found as many addresses as it looked for, counting these three times.)
func TestSymbolizeSharedTemplate(t *testing.T) {
	need(t, "g++")
	dir := t.TempDir()
	header := `template <typename T> __attribute__((noinline)) T grid_sum(const T *p, int n) {
	T s = 0;
	for (int i = 0; i < n; i++)
		s += p[i] * 3;
	return s;
}
`
	var sources []string
	for i := range 4 {
		text := header + fmt.Sprintf("__attribute__((noinline)) int grid_part%d(const int *p) {\n\treturn grid_sum(p, %d) + %d;\n}\n", i, i+5, i)
		if i == 0 {
			text += "int grid_part1(const int *), grid_part2(const int *), grid_part3(const int *);\n" +
				"int main(int n, char **) { return grid_part0(&n) + grid_part1(&n) + grid_part2(&n) + grid_part3(&n); }\n"
		}
		path := filepath.Join(dir, fmt.Sprintf("part%d.cc", i))
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, path)
	}
	bin := filepath.Join(dir, "prog")
	command(t, "g++", append([]string{"-g", "-O2", "-o", bin}, sources...)...)
	pcs := functions(t, bin, isMine)
	compare(t, symbolizer{}, bin, bin, pcs, 1)
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src := debugSource{elf: f}
	if err := src.load(); err != nil {
		t.Fatal(err)
	}
	d, roots := src.data, src.roots
	claims := 0
	for _, root := range roots {
		r := d.Reader()
		r.Seek(root)
		cu, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		in, err := covered(d.Ranges, cu, pcs)
		if err != nil {
			t.Fatal(err)
		}
		claims += len(in)
	}
	if claims <= len(pcs) {
		t.Log("this linker lets one unit only claim the template: the bug could not show")
	}
}

func TestSymbolizeRust(t *testing.T) {
	need(t, "rustc")
	bin := compile(t, source(t, "prog.rs", inlinedRust), "rustc", "-g", "-O")
	pcs := functions(t, bin, func(n string) bool { return strings.Contains(n, "grid") })
	compare(t, symbolizer{}, bin, bin, pcs, 2)
	const base = 0x7f0000000000
	_, ms := mapped(t, bin, base)
	locs, _ := symbolizeAt(t, symbolizer{}, ms, base, pcs)
	outer := locs[0].Lines[len(locs[0].Lines)-1]
	if outer.Function != "prog::grid::Walker::walk" {
		t.Errorf("function %q of symbol %q is not demangled", outer.Function, outer.SystemName)
	}
}

// A real library with its debug package: many units, assembly, DWARF shared
// between units (dwz).
func TestSymbolizeLibc(t *testing.T) {
	const libc = "/usr/lib/x86_64-linux-gnu/libc.so.6"
	f, err := elf.Open(libc)
	if err != nil {
		t.Skip("no Debian libc for amd64:", err)
	}
	defer f.Close()
	id, err := objfile.BuildID(f)
	if err != nil {
		t.Fatal(err)
	}
	debug := "/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug"
	if _, err := os.Stat(debug); err != nil {
		t.Skip("needs the package libc6-dbg:", err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	all := functions(t, debug, func(string) bool { return true })
	var pcs []uint64
	for range 3000 {
		pcs = append(pcs, all[rng.IntN(len(all))])
	}
	slices.Sort(pcs)
	pcs = slices.Compact(pcs)
	const base = 0x7f0000000000
	_, ms := mapped(t, libc, base)
	want := addr2line(t, debug, pcs)
	locs, stats := symbolizeAt(t, symbolizer{host: debugBelow(debugDir)}, ms, base, pcs)
	if len(stats.Problems) > 0 {
		t.Errorf("problems %v", stats.Problems)
	}
	differ := 0
	for i, pc := range pcs {
		// Not the file: addr2line 2.40 gives the unit's where a source file
		// includes another one that holds code.
		got, want := withoutFiles(frames(locs[i])), withoutFiles(want[pc])
		if !slices.Equal(got, want) {
			if differ++; differ <= 10 {
				t.Logf("%#x\n got %q\nwant %q", pc, got, want)
			}
		}
	}
	if differ > len(pcs)/100 {
		t.Errorf("%d of %d addresses differ from addr2line", differ, len(pcs))
	}
}

func withoutFiles(frames []string) []string {
	var out []string
	for _, f := range frames {
		function, at, _ := strings.Cut(f, " ")
		out = append(out, function+at[strings.LastIndexByte(at, ':'):])
	}
	return out
}

// Without debug information: names by the symbol table, no lines.
func TestSymbolizeSymtab(t *testing.T) {
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-O2")
	pcs := functions(t, bin, isMine)
	const base = 0x555555554000
	_, ms := mapped(t, bin, base)
	locs, stats := symbolizeAt(t, symbolizer{}, ms, base, pcs)
	want := addr2line(t, bin, pcs)
	for i, l := range locs {
		name, _, _ := strings.Cut(want[pcs[i]][0], " ")
		if len(l.Lines) != 1 || l.Lines[0].Function != name {
			t.Fatalf("%#x: got %+v, want %s", pcs[i], l.Lines, name)
		}
	}
	if stats.Functions != len(pcs) || stats.Lines != 0 || len(stats.Problems) != 0 {
		t.Errorf("stats %+v of %d addresses", stats, len(pcs))
	}
}

// A library's exported names outlive strip; what else it holds keeps its
// address and build ID.
func TestSymbolizeStripped(t *testing.T) {
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-O2", "-shared", "-fPIC", "-Wl,--build-id")
	exported := functions(t, bin, func(n string) bool { return n == "outer" })
	internal := functions(t, bin, func(n string) bool { return strings.HasPrefix(n, "hidden") })
	command(t, "strip", bin)
	const base = 0x7f1234567000
	_, ms := mapped(t, bin, base)
	for _, m := range ms {
		m.BuildID = command(t, "sh", "-c", "readelf -n "+bin+" | sed -n 's/.*Build ID: //p' | tr -d '\\n'")
	}
	locs, stats := symbolizeAt(t, symbolizer{}, ms, base, append(exported, internal...))
	for i, l := range locs {
		switch {
		case i < len(exported) && (len(l.Lines) != 1 || l.Lines[0].Function != "outer"):
			t.Fatalf("exported: %+v", l.Lines)
		case i >= len(exported) && len(l.Lines) != 0:
			t.Fatalf("a stripped function got the name %+v", l.Lines)
		}
	}
	if stats.Functions != len(exported) || stats.Lines != 0 || len(stats.Problems) != 1 || !strings.Contains(stats.Problems[0].Error(), "addresses without a name: no symbol covers them") {
		t.Errorf("stats %+v", stats)
	}
	p := &model.Profile{BinsPerOctave: 8, Records: []model.Record{{Kind: model.Cold, Use: locs, Weight: model.Weight{Observations: 1}}}}
	_, out := write(t, p)
	if m := out.Mapping[0]; m.HasFunctions || m.HasLineNumbers || m.BuildID == "" {
		t.Errorf("the mapping claims to be symbolized, or lacks its build ID: %+v", m)
	}
}

func TestSymbolizeSeparateDebug(t *testing.T) {
	need(t, "objcopy", "strip")
	for _, by := range []string{"build ID", "debuglink", "debuglink in .debug", "debuglink in the debug directory"} {
		t.Run(by, func(t *testing.T) {
			id := "-Wl,--build-id=sha1"
			if by != "build ID" {
				id = "-Wl,--build-id=none"
			}
			bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-g", "-O2", id)
			pcs := functions(t, bin, isMine)
			whole, debug := bin+".whole", bin+".debug"
			command(t, "cp", bin, whole)
			command(t, "objcopy", "--only-keep-debug", bin, debug)
			command(t, "strip", bin)
			root := t.TempDir()
			place := filepath.Dir(bin)
			switch by {
			case "build ID":
				f, err := elf.Open(bin)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				id, err := objfile.BuildID(f)
				if err != nil {
					t.Fatal(err)
				}
				place = filepath.Join(root, ".build-id", id[:2])
				if err := os.MkdirAll(place, 0o777); err != nil {
					t.Fatal(err)
				}
				command(t, "mv", debug, filepath.Join(place, id[2:]+".debug"))
			default:
				command(t, "objcopy", "--add-gnu-debuglink="+debug, bin)
				if by == "debuglink in .debug" {
					place = filepath.Join(place, ".debug")
				} else if by != "debuglink" {
					place = filepath.Join(root, place)
				}
				if err := os.MkdirAll(place, 0o777); err != nil {
					t.Fatal(err)
				}
				if to := filepath.Join(place, filepath.Base(debug)); to != debug {
					command(t, "mv", debug, to)
				}
			}
			compare(t, symbolizer{host: debugBelow(root)}, bin, whole, pcs, 3)
		})
	}
}

// A debug file of another build must not be used.
func TestSymbolizeWrongDebug(t *testing.T) {
	need(t, "objcopy", "strip")
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-g", "-O2", "-Wl,--build-id=none")
	pcs := functions(t, bin, isMine)
	debug := bin + ".debug"
	command(t, "objcopy", "--only-keep-debug", bin, debug)
	command(t, "strip", bin)
	command(t, "objcopy", "--add-gnu-debuglink="+debug, bin)
	f, err := os.OpenFile(debug, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("x") // another checksum
	f.Close()
	const base = 0x555555554000
	_, ms := mapped(t, bin, base)
	_, stats := symbolizeAt(t, symbolizer{}, ms, base, pcs)
	if stats.Functions != 0 {
		t.Errorf("%d names from a file that does not belong to the program", stats.Functions)
	}
}

// One address as leaf and as caller is two places in the source.
func TestSymbolizeCallers(t *testing.T) {
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-g", "-O2")
	all := functions(t, bin, isMine)
	want := addr2line(t, bin, all)
	var pcs []uint64
	for _, pc := range all {
		if len(want[pc-1]) > 0 { // not a function's first byte
			pcs = append(pcs, pc)
		}
	}
	const base = 0x555555554000
	_, ms := mapped(t, bin, base)
	p := &model.Profile{BinsPerOctave: 8}
	for _, pc := range pcs {
		l := &model.Location{Address: base + pc, Mapping: ms[0]}
		p.Records = append(p.Records, model.Record{Kind: model.Reuse, Use: []*model.Location{l, l}, Ending: model.Ending{Reuse: []*model.Location{l}}, Weight: model.Weight{Observations: 1}})
	}
	stats, err := Symbolize(p, files{})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Locations != 2*len(pcs) || stats.Functions != stats.Locations {
		t.Errorf("stats %+v, want %d locations, all named", stats, 2*len(pcs))
	}
	differ := 0
	for i, pc := range pcs {
		r := p.Records[i]
		for _, leaf := range []*model.Location{r.Use[0], r.Reuse[0]} {
			if got := frames(leaf); !slices.Equal(got, want[pc]) {
				t.Fatalf("leaf at %#x: got %q, want %q", pc, got, want[pc])
			}
		}
		if got := frames(r.Use[1]); !slices.Equal(got, want[pc-1]) {
			t.Fatalf("caller at %#x: got %q, want %q", pc, got, want[pc-1])
		}
		if !slices.Equal(want[pc], want[pc-1]) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("leaf and caller are the same place everywhere: nothing tested")
	}
	data, _ := write(t, p)
	diff(t, read(t, data), p)
}

// goFrames runs the program and returns its mappings and what its own runtime
// says of some return addresses.
func goFrames(t *testing.T, bin string) (ms []*model.Mapping, frames map[uint64]string) {
	t.Helper()
	frames = map[uint64]string{}
	said, maps, _ := strings.Cut(command(t, bin), "maps\n")
	for _, l := range strings.Split(strings.TrimSpace(said), "\n") {
		pc, rest, _ := strings.Cut(l, " ")
		n, err := strconv.ParseUint(pc, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		frames[n] = rest
	}
	for _, l := range strings.Split(maps, "\n") {
		f := strings.Fields(l)
		if len(f) < 6 || !strings.Contains(f[1], "x") || f[5] != bin {
			continue
		}
		m := &model.Mapping{File: bin}
		fmt.Sscanf(f[0], "%x-%x", &m.Start, &m.Limit)
		fmt.Sscanf(f[2], "%x", &m.Offset)
		ms = append(ms, m)
	}
	return ms, frames
}

// Against the Go runtime's own words, at the addresses of a real process.
func TestSymbolizeGo(t *testing.T) {
	need(t, "go")
	for name, args := range map[string][]string{
		"dwarf":        nil,
		"stripped":     {"-ldflags=-s -w"},
		"stripped pie": {"-ldflags=-s -w", "-buildmode=pie"},
		"pie":          {"-buildmode=pie"},
	} {
		t.Run(name, func(t *testing.T) {
			src := source(t, "prog.go", goProgram)
			bin := strings.TrimSuffix(src, ".go")
			cmd := exec.Command("go", append(append([]string{"build"}, args...), "-o", bin, src)...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			ms, want := goFrames(t, bin)
			if len(ms) == 0 || len(want) < 4 {
				t.Fatalf("the program told of %d mappings and %d frames", len(ms), len(want))
			}
			p := &model.Profile{BinsPerOctave: 8}
			leaf := &model.Location{Address: 1}
			stack := []*model.Location{leaf}
			for pc := range want {
				stack = append(stack, &model.Location{Address: pc, Mapping: ms[0]})
			}
			p.Records = []model.Record{{Kind: model.Cold, Use: stack, Weight: model.Weight{Observations: 1}}}
			stats, err := Symbolize(p, files{})
			if err != nil || len(stats.Problems) > 0 {
				t.Fatalf("%v, problems %v", err, stats.Problems)
			}
			for _, l := range stack[1:] {
				outer := model.Line{}
				if len(l.Lines) > 0 {
					outer = l.Lines[len(l.Lines)-1]
				}
				inner := l.Lines[0]
				if got := fmt.Sprintf("%s %s %d", outer.Function, inner.File, inner.Line); got != want[l.Address] && len(l.Lines) == 1 {
					t.Errorf("%#x: got %q, want %q", l.Address, got, want[l.Address])
				} else if len(l.Lines) > 1 && fmt.Sprintf("%s %s %d", inner.Function, inner.File, inner.Line) != want[l.Address] && got != want[l.Address] {
					t.Errorf("%#x: got %q inlined in %q, want %q", l.Address, inner.Function, outer.Function, want[l.Address])
				}
			}
		})
	}
}

func TestSymbolizePerfMap(t *testing.T) {
	anon := &model.Mapping{Start: 0x7f0000000000, Limit: 0x7f0000010000}
	at := func(addr uint64) *model.Location { return &model.Location{Address: addr, Mapping: anon} }
	use := []*model.Location{at(0x7f0000000100), at(0x7f0000000200), at(0x7f0000000300), at(0x7f0000000400), {Address: 0x10}}
	p := &model.Profile{BinsPerOctave: 8, Records: []model.Record{{Kind: model.Cold, Use: use, Weight: model.Weight{Observations: 1}}}}
	stats, err := Symbolize(p, files{"7f0000000100 80 old code\n7f0000000100 80 LazyCompile:*walk grid.js:10:3\n" +
		"broken\n\n7f0000000180 80 java.util.List::get\n0x7f0000000280 0x80 with prefix\n7f00000003ff zz x\n"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range use {
		name := ""
		if len(l.Lines) > 0 {
			name = l.Lines[0].Function
		}
		got = append(got, name)
	}
	// The callers' return addresses are just past the end of their functions.
	if want := []string{"LazyCompile:*walk grid.js:10:3", "java.util.List::get", "with prefix", "", ""}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	if stats.Functions != 3 || len(stats.Problems) != 2 || !strings.Contains(stats.Problems[0].Error(), "2 lines are not") || !strings.Contains(stats.Problems[0].Error(), "line 3") {
		t.Errorf("stats %+v", stats)
	}
}

type brokenBinaries struct{ files }

func (brokenBinaries) Open(m *model.Mapping) (io.ReaderAt, error) {
	if m.File == "gone" {
		return nil, fs.ErrNotExist
	}
	return os.Open("symbolize_test.go") // no ELF file
}

func TestSymbolizeProblems(t *testing.T) {
	at := func(file string) *model.Location {
		return &model.Location{Address: 0x1100, Mapping: &model.Mapping{Start: 0x1000, Limit: 0x2000, File: file}}
	}
	p := &model.Profile{BinsPerOctave: 8, Records: []model.Record{{Kind: model.Cold, Use: []*model.Location{at("gone"), at("text"), at("[stack]")}, Weight: model.Weight{Observations: 1}}}}
	stats, err := Symbolize(p, brokenBinaries{})
	if err != nil || stats.Locations != 3 || stats.Functions != 0 || len(stats.Problems) != 3 {
		t.Errorf("%v, stats %+v", err, stats)
	}
	p.Records[0].Use[1] = nil
	if _, err := Symbolize(p, brokenBinaries{}); err == nil {
		t.Error("no error on a nil frame")
	}
}

// A file that was rebuilt while the target ran gives no wrong names.
func TestSymbolizeReplaced(t *testing.T) {
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-g", "-O2", "-Wl,--build-id")
	pcs := functions(t, bin, isMine)
	const base = 0x555555554000
	_, ms := mapped(t, bin, base)
	for _, m := range ms {
		m.BuildID = "0123456789"
	}
	_, stats := symbolizeAt(t, symbolizer{}, ms, base, pcs)
	if stats.Functions != 0 || len(stats.Problems) != 1 || !strings.Contains(stats.Problems[0].Error(), "addresses without a name: build ID is") || !strings.Contains(stats.Problems[0].Error(), "replaced") {
		t.Errorf("stats %+v", stats)
	}
}

// memory is the vdso of this process.
type memory struct{ *io.SectionReader }

func (memory) Close() error { return nil }

type vdsoBinaries struct {
	files
	image memory
}

func (v vdsoBinaries) Open(*model.Mapping) (io.ReaderAt, error) { return v.image, nil }

func TestSymbolizeVDSO(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip("no /proc:", err)
	}
	m := &model.Mapping{File: "[vdso]"}
	for _, l := range strings.Split(string(maps), "\n") {
		if strings.HasSuffix(l, "[vdso]") {
			fmt.Sscanf(l, "%x-%x", &m.Start, &m.Limit)
		}
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil || m.Start == 0 {
		t.Skip("no vdso to read:", err)
	}
	defer mem.Close()
	image := memory{io.NewSectionReader(mem, int64(m.Start), int64(m.Limit-m.Start))}
	f, err := elf.NewFile(image)
	if err != nil {
		t.Fatal(err)
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var p model.Profile
	p.BinsPerOctave = 8
	var want []string
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && elf.ST_BIND(s.Info) == elf.STB_GLOBAL && s.Size > 0 {
			p.Records = append(p.Records, model.Record{Use: []*model.Location{{Address: m.Start + s.Value + s.Size/2, Mapping: m}}, Kind: model.Cold, Weight: model.Weight{Observations: 1}})
			want = append(want, s.Name)
		}
	}
	if len(want) == 0 {
		t.Fatal("the vdso has no functions")
	}
	if _, err := Symbolize(&p, vdsoBinaries{image: image}); err != nil {
		t.Fatal(err)
	}
	for i, r := range p.Records {
		if l := r.Use[0].Lines; len(l) != 1 || l[0].Function != want[i] {
			t.Errorf("got %+v, want %s", l, want[i])
		}
	}

	// Of what lies between them nobody has a debug package.
	q := model.Profile{BinsPerOctave: 8, Records: []model.Record{{Use: []*model.Location{{Address: m.Start + 1, Mapping: m}}, Kind: model.Cold, Weight: model.Weight{Observations: 1}}}}
	stats, err := Symbolize(&q, vdsoBinaries{image: image})
	if err != nil || len(stats.Problems) != 1 || !strings.Contains(stats.Problems[0].Error(), "no more than its entries") {
		t.Errorf("%v, %v", stats.Problems, err)
	}
}

// A damaged file gives a problem or wrong names, no panic and no endless loop.
func TestSymbolizeDamaged(t *testing.T) {
	bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-g", "-O2")
	pcs := functions(t, bin, isMine)
	whole, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	const base = 0x555555554000
	_, ms := mapped(t, bin, base)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			data := slices.Clone(whole)
			for range 1 + rng.IntN(50) {
				data[rng.IntN(len(data))] = byte(rng.Uint32())
			}
			if rng.IntN(10) == 0 {
				data = data[:rng.IntN(len(data))]
			}
			p := &model.Profile{BinsPerOctave: 8}
			for _, pc := range pcs {
				p.Records = append(p.Records, model.Record{Kind: model.Cold, Use: []*model.Location{{Address: base + pc, Mapping: ms[0]}}, Weight: model.Weight{Observations: 1}})
			}
			if _, err := Symbolize(p, vdsoBinaries{image: memory{io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))}}); err != nil {
				t.Error(err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("300 damaged files took more than a minute")
	}
}

func FuzzPerfMap(f *testing.F) {
	f.Add("7f0000000100 80 name\nx\nffffffffffffffff 2 y\n")
	f.Fuzz(func(t *testing.T, text string) {
		bounded(t, len(text), func() {
			names, err := readPerfMap(strings.NewReader(text), []uint64{1, 0x10, 0x7f0000000100, 1 << 63})
			if len(names) != 4 || err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, %v", names, err)
			}
		})
	})
}
