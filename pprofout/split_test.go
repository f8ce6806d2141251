// Needs: gcc, clang, dwp, llvm-dwp, dwz, strip and objcopy; what is missing is skipped. Names that compilers and
// packagers put into other files.
package pprofout

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// oneFunction has all its code in one section, so that ranges count from the unit's own base.
const oneFunction = `static volatile int sink;
static inline __attribute__((always_inline)) int innermost(const int *p, int i) {
	if (p[i] == 3)
		sink = 1;
	return p[i] * 3 + p[i + 1];
}
static inline __attribute__((always_inline)) int middle(const int *p, int n) {
	int s = 0;
	for (int i = 0; i + 1 < n; i++)
		s += innermost(p, i);
	return s;
}
int outer(const int *p, int n) { return middle(p, n) + 1; }
`

// Inlined calls and names in .dwo files and .dwp packages, against the same program that has all in one file.
func TestSymbolizeSplit(t *testing.T) {
	for _, c := range []struct{ name, compiler, pack string }{
		{"gcc", "gcc -g", ""}, {"gcc, DWARF 4", "gcc -gdwarf-4", ""}, {"clang", "clang -g", ""}, {"clang, DWARF 4", "clang -gdwarf-4", ""},
		{"gcc, DWARF 4, packed", "gcc -gdwarf-4", "dwp"}, {"clang, packed", "clang -g", "llvm-dwp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			words := strings.Fields(c.compiler)
			need(t, words[0])
			for _, text := range []string{inlinedC, oneFunction} {
				dir := t.TempDir()
				src, bin, whole := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog"), filepath.Join(dir, "whole")
				if err := os.WriteFile(src, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
				build := func(out string, more ...string) {
					args := append(append(slices.Clone(words[1:]), "-O2"), more...)
					if text == oneFunction {
						args = append(args, "-shared", "-fPIC")
					}
					// Objects of their own: they name the .dwo files.
					command(t, words[0], append(args, "-c", "-o", out+".o", src)...)
					command(t, words[0], append(args, "-Wl,--build-id=none", "-o", out, out+".o")...)
				}
				build(whole)
				build(bin, "-gsplit-dwarf")
				dwos, err := filepath.Glob(filepath.Join(dir, "*.dwo"))
				if err != nil || len(dwos) == 0 {
					t.Fatalf("no .dwo was made: %v", err)
				}
				if c.pack != "" {
					command(t, c.pack, append(slices.Clone(dwos), "-o", bin+".dwp")...)
					for _, d := range dwos {
						os.Remove(d)
					}
				}
				pcs := functions(t, bin, isMine)
				if !slices.Equal(pcs, functions(t, whole, isMine)) {
					t.Fatal("split and whole program are laid out in different ways: nothing to compare")
				}
				// Not addr2line: 2.40 misreads clang's ranges. Whole programs are held against it elsewhere.
				const base = 0x555555554000
				at := func(path string) ([]*model.Location, Stats) {
					_, ms := mapped(t, path, base)
					return symbolizeAt(t, symbolizer{host: debugBelow("/nowhere")}, ms, base, pcs)
				}
				want, _ := at(whole)
				got, stats := at(bin)
				deepest := 0
				for i := range pcs {
					deepest = max(deepest, len(got[i].Lines))
					if !slices.Equal(got[i].Lines, want[i].Lines) {
						t.Fatalf("%#x\n got %q\nwant %q", pcs[i], frames(got[i]), frames(want[i]))
					}
				}
				if deepest < 2 || len(stats.Problems) > 0 {
					t.Errorf("%d frames at most, problems %v", deepest, stats.Problems)
				}
			}
		})
	}
}

// Without the .dwo file functions and lines are there, and it is said that inlined calls are not. Nor is a file
// of another compilation taken.
func TestSymbolizeSplitMissing(t *testing.T) {
	for what, dwo := range map[string]string{"gone": "", "of another compilation": "other"} {
		bin := compile(t, source(t, "prog.c", inlinedC), "gcc", "-g", "-O2", "-gsplit-dwarf")
		dwos, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), "*.dwo"))
		if len(dwos) != 1 {
			t.Fatalf("%d .dwo files", len(dwos))
		}
		os.Remove(dwos[0])
		if dwo != "" {
			other := compile(t, source(t, "prog.c", oneFunction), "gcc", "-g", "-O2", "-gsplit-dwarf", "-shared", "-fPIC")
			theirs, _ := filepath.Glob(filepath.Join(filepath.Dir(other), "*.dwo"))
			command(t, "cp", theirs[0], dwos[0])
		}
		pcs := functions(t, bin, func(n string) bool { return n == "outer" })
		const base = 0x555555554000
		_, ms := mapped(t, bin, base)
		locs, stats := symbolizeAt(t, symbolizer{host: debugBelow("/nowhere")}, ms, base, pcs)
		if l := locs[len(locs)/2].Lines; len(l) != 1 || l[0].Function != "outer" {
			t.Errorf("%s: %+v", what, l)
		}
		if len(stats.Problems) != 1 || !strings.Contains(stats.Problems[0].Error(), "inlined calls are missing of 1 compile units") {
			t.Errorf("%s: %v", what, stats.Problems)
		}
	}
}

// dwz moves what several files have in common into another one.
func TestSymbolizeDWZ(t *testing.T) {
	need(t, "dwz", "gcc")
	// Enough that dwz finds it worth sharing: a header of inline functions.
	var header strings.Builder
	header.WriteString("static volatile int sink;\n")
	for i := range 40 {
		f := string(rune('a'+i%26)) + string(rune('a'+i/26))
		header.WriteString("struct long_name_of_" + f + " { int first_member, second_member; struct long_name_of_" + f + " *next_member; };\n")
		header.WriteString("static inline __attribute__((always_inline)) int inlined_function_" + f + "(struct long_name_of_" + f + " *argument_of_it) { sink = argument_of_it->first_member; return argument_of_it->second_member * 3; }\n")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shared.h"), []byte(header.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	var bins []string
	for _, n := range []string{"one", "two"} {
		text := "#include \"shared.h\"\n"
		for i := range 40 {
			f := string(rune('a'+i%26)) + string(rune('a'+i/26))
			text += "__attribute__((noinline)) int outer_" + f + "(struct long_name_of_" + f + " *p) { return inlined_function_" + f + "(p) + 1; }\n"
		}
		text += "int main(void) { return outer_aa(0) + " + map[string]string{"one": "1", "two": "2"}[n] + "; }\n"
		src := filepath.Join(dir, n+".c")
		if err := os.WriteFile(src, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		bins = append(bins, compile(t, src, "gcc", "-g", "-gdwarf-4", "-O1", "-Wl,--build-id"))
	}
	pcs := functions(t, bins[0], func(n string) bool { return strings.HasPrefix(n, "outer_") })
	whole := filepath.Join(dir, "whole")
	command(t, "cp", bins[0], whole)
	command(t, "dwz", "-m", filepath.Join(dir, "common.debug"), "-M", filepath.Join(dir, "common.debug"), bins[0], bins[1])
	if out := command(t, "readelf", "-S", "-W", bins[0]); !strings.Contains(out, "gnu_debugaltlink") {
		t.Fatal("dwz shares nothing: nothing tested")
	}
	compare(t, symbolizer{host: debugBelow("/nowhere")}, bins[0], whole, pcs, 2)
	if err := os.Remove(filepath.Join(dir, "common.debug")); err != nil {
		t.Fatal(err)
	}
	const base = 0x555555554000
	_, ms := mapped(t, bins[0], base)
	_, stats := symbolizeAt(t, symbolizer{host: debugBelow("/nowhere")}, ms, base, pcs)
	if len(stats.Problems) != 1 || !strings.Contains(stats.Problems[0].Error(), "inlined calls without a name") || !strings.Contains(stats.Problems[0].Error(), "common.debug, is not there") {
		t.Errorf("without the shared file: %v", stats.Problems)
	}
}

// fromMemory has one file, by all names with an ending.
type fromMemory struct {
	ending string
	data   []byte
}

func (m fromMemory) Open(name string) (io.ReaderAt, error) {
	if !strings.HasSuffix(name, m.ending) {
		return nil, os.ErrNotExist
	}
	return bytes.NewReader(m.data), nil
}

// FuzzSplit: whatever a .dwo, a .dwp or a shared file holds, a look-up ends soon and says what is wrong.
func FuzzSplit(f *testing.F) {
	type program struct {
		image  []byte
		ending string
		pcs    []uint64
		ms     []*model.Mapping
	}
	var programs []program
	for _, flags := range []string{"-g", "-gdwarf-4"} {
		bin := compile(f, source(f, "p.c", oneFunction), "gcc", flags, "-O2", "-gsplit-dwarf", "-shared", "-fPIC", "-nostdlib")
		image, err := os.ReadFile(bin)
		if err != nil {
			f.Fatal(err)
		}
		_, ms := mapped(f, bin, 0x10000)
		dwos, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), "*.dwo"))
		for _, ending := range []string{".dwo", ".dwp"} {
			if ending == ".dwp" {
				if flags == "-g" {
					continue // GNU's packer does not know DWARF 5
				}
				if _, err := exec.LookPath("dwp"); err != nil {
					continue
				}
				command(f, "dwp", dwos[0], "-o", bin+".dwp")
				dwos[0] = bin + ".dwp"
			}
			b, err := os.ReadFile(dwos[0])
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b, byte(len(programs)))
			programs = append(programs, program{image, ending, functions(f, bin, isMine), ms})
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		p := programs[int(which)%len(programs)]
		profile := &model.Profile{BinsPerOctave: 8}
		for _, pc := range p.pcs {
			profile.Records = append(profile.Records, model.Record{Kind: model.Cold, Use: []*model.Location{{Address: 0x10000 + pc, Mapping: p.ms[0]}}, Weight: model.Weight{Observations: 1}})
		}
		bounded(t, len(data), func() {
			s := symbolizer{host: fromMemory{p.ending, data}}
			if _, err := s.run(profile, vdsoBinaries{image: memory{io.NewSectionReader(bytes.NewReader(p.image), 0, int64(len(p.image)))}}); err != nil {
				t.Error(err)
			}
		})
	})
}
