// Needs: gcc and clang, dwp; what is missing is skipped.

package pprofout

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/model"
)

// A program that says of itself what lies where: a line has what is wanted, the kind of data, where the code is, the datum, and the stack pointer before the call
// of the function that has it and there.
const partsC = `
#include <stdio.h>
struct pair { int a, b; };
struct node { struct node *next; long value; struct pair of[2]; };
struct node st;
static struct node many[100];
static long table[4096];
static struct { char name[12]; int n; } unnamed;
static union { long as_long; double as_double; } either;
struct hole { char c; long l; } holed;
#define KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")
#define PC ({ void *pc; __asm__ volatile("lea 0(%%rip), %0" : "=r"(pc)); pc; })
#define SP ({ void *sp; __asm__ volatile("mov %%rsp, %0" : "=r"(sp)); sp; })
#define CFA __builtin_dwarf_cfa()
__attribute__((noinline)) static void show(const char *want, int kind, void *pc, void *at, void *cfa, void *sp) {
	printf("%s|%d|%p|%p|%p|%p\n", want, kind, pc, at, cfa, sp);
}
#define STACK(want, at) show(want, 0, PC, at, CFA, SP)
#define STATIC(want, at) show(want, 2, PC, at, 0, 0)
__attribute__((noinline)) static void callee(struct node *at, void *cfa) {
	void *sp = CFA;
	show("box: node.next, offset 0 of 32", 1, __builtin_return_address(0), at, cfa, sp);
	KEEP(at);
}
static inline __attribute__((always_inline)) void inlined(void) {
	char text[40];
	KEEP(text);
	STACK("text", text + 5);
}
__attribute__((noinline)) long work(long n) {
	long sums[8], alone = n;
	struct node box;
	int grid[3][4];
	KEEP(sums); KEEP(&box); KEEP(grid); KEEP(&alone);
	STACK("sums", &sums[0]);
	STACK("sums", &sums[7]);
	STACK("alone", &alone);
	STACK("box: node.value, offset 8 of 32", &box.value);
	STACK("box: node.of[1].b, offset 28 of 32", &box.of[1].b);
	STACK("grid", &grid[2][3]);
	STACK("", (char *)CFA - 8);
	inlined();
	callee(&box, CFA);
	{
		struct pair inner[20];
		KEEP(inner);
		STACK("inner: pair.b, offset 4 of 8", &inner[7].b);
	}
	KEEP(sums); KEEP(&box); KEEP(grid); KEEP(&alone);
	return sums[n & 7] + box.value + alone;
}
int main(int argc, char **argv) {
	static struct node kept[3];
	(void)argv;
	KEEP(&st); KEEP(many); KEEP(table); KEEP(&unnamed); KEEP(&either); KEEP(&holed); KEEP(kept);
	STATIC("node.value, offset 8 of 32", &st.value);
	STATIC("node.of[0].b, offset 20 of 32", &many[77].of[0].b);
	STATIC("", &table[5]);
	STATIC("unnamed.n, offset 12 of 16", &unnamed.n);
	STATIC("", &either);
	STATIC("hole.l, offset 8 of 16", &holed.l);
	STATIC("", (char *)&holed + 4);
	STATIC("node.next, offset 0 of 32", &kept[2].next);
	return work(argc) == 12345;
}
`

// The records of static data say which member they touch and those of stacks which variable, whatever compiled the program, also where its debug
// information is split off; and nothing where that doesn't tell.
func TestParts(t *testing.T) {
	for _, c := range []struct{ name, compile, pack string }{
		{"gcc -O0", "gcc -g -O0", ""}, {"gcc -O2", "gcc -g -O2", ""}, {"clang -O0", "clang -g -O0", ""}, {"clang -O2", "clang -g -O2", ""},
		{"gcc -O2, DWARF 4", "gcc -gdwarf-4 -O2", ""},
		{"gcc -O0, split", "gcc -g -O0 -gsplit-dwarf", ""}, {"gcc -O2, split", "gcc -g -O2 -gsplit-dwarf", ""}, {"clang -O2, split", "clang -g -O2 -gsplit-dwarf", ""},
		{"gcc -O2, split, DWARF 4", "gcc -gdwarf-4 -O2 -gsplit-dwarf", ""}, {"gcc -O2, DWARF 4, packed", "gcc -gdwarf-4 -O2 -gsplit-dwarf", "dwp"},
		{"clang -O2, packed", "clang -g -O2 -gsplit-dwarf", "llvm-dwp"}, {"gcc -O2, compressed", "gcc -g -O2 -gz", ""},
		{"gcc, without", "gcc -O2 -g0", ""}, {"gcc, no symbols", "gcc -O2 -g -s", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			words := strings.Fields(c.compile)
			need(t, words[0])
			dir := t.TempDir()
			src, bin := filepath.Join(dir, "parts.c"), filepath.Join(dir, "parts")
			if err := os.WriteFile(src, []byte(partsC), 0o600); err != nil {
				t.Fatal(err)
			}
			command(t, words[0], append(words[1:], "-c", "-o", bin+".o", src)...)
			command(t, words[0], append(words[1:], "-no-pie", "-o", bin, bin+".o")...)
			if c.pack != "" {
				dwos, _ := filepath.Glob(filepath.Join(dir, "*.dwo"))
				need(t, c.pack)
				command(t, c.pack, append([]string{"-o", bin + ".dwp"}, dwos...)...)
				for _, d := range dwos {
					os.Remove(d)
				}
			}
			checkParts(t, bin, strings.Contains(c.compile, "-g0") || strings.HasSuffix(c.compile, "-s"))
		})
	}
}

// checkParts runs a program of partsC and holds what is named against what it says.
func checkParts(t *testing.T, bin string, without bool) {
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, ms := mapped(t, bin, 0)
	of := func(at uint64) *model.Mapping {
		for _, m := range ms {
			if m.Start <= at && at < m.Limit {
				return m
			}
		}
		return ms[0]
	}
	p := &model.Profile{BinsPerOctave: 10}
	var want []string
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		var n [6]uint64
		for i, s := range f {
			n[i], _ = strconv.ParseUint(s, 0, 64)
		}
		pc, at := n[2], n[3]
		code := &model.Location{Address: pc, Mapping: of(pc)}
		d := &model.Data{Kind: model.DataStack, Below: int64(n[4] - at), Above: int64(at - n[5])}
		use := []*model.Location{code}
		switch n[1] {
		case 1:
			d.Frame = 1
			use = []*model.Location{{Address: pc - 64, Mapping: of(pc)}, code}
		case 2:
			d = &model.Data{Kind: model.DataStatic, Mapping: ms[0], Address: at}
		}
		p.Records = append(p.Records, model.Record{Kind: model.Cold, Use: use, Data: d, Weight: model.Weight{Observations: 1, Accesses: 1}})
		if without {
			f[0] = ""
		}
		want = append(want, f[0])
	}
	s := &symbolizer{host: debugBelow("/")}
	if _, err := s.run(p, files{}); err != nil {
		t.Fatal(err)
	}
	if len(want) != 18 {
		t.Fatalf("%d lines", len(want))
	}
	for i, r := range p.Records {
		if r.Member() != want[i] {
			t.Errorf("%s: %q, want %q", r.Data.Name, r.Member(), want[i])
		}
	}
	var file bytes.Buffer
	if err := Write(&file, p); err != nil {
		t.Fatal(err)
	}
	read, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range read.Records {
		seen[r.Member()] = true
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("%q is not in the file", w)
		}
	}
}

// A million sites of allocations are named in little time: what is looked up of single ones is bounded, the others have their functions.
func TestManySites(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	need(t, "gcc")
	bin := compile(t, source(t, "prog.c", assignedC), "gcc", "-g", "-O2", "-no-pie", "-fno-optimize-sibling-calls")
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, ms := mapped(t, bin, 0)
	first, _, _ := strings.Cut(string(out), "\n")
	call, err := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	const sites = 1_000_000
	outer := make([]*model.Location, 1000)
	for i := range outer {
		outer[i] = &model.Location{Address: call + uint64(i)%7, Mapping: ms[0]}
	}
	p := &model.Profile{Touches: make([]model.Touch, sites)}
	data := make([]model.Data, sites)
	for i := range data {
		data[i] = model.Data{Kind: model.DataBlock, Site: []*model.Location{outer[i%1000], outer[i/1000/7*7]}} // the caller's address is that of the call
		p.Touches[i] = model.Touch{Use: outer[:1], Data: &data[i]}
	}
	start := processTime()
	if _, err := (&symbolizer{}).run(p, files{}); err != nil {
		t.Fatal(err)
	}
	if took := processTime() - start; took > time.Minute {
		t.Errorf("it took %v", took)
	}
	variables := 0
	for i := range data {
		switch data[i].Name {
		case "first, heap block of work prog.c:14":
			variables++
		case "heap block of work prog.c:14":
		default:
			t.Fatalf("site %d: %q", i, data[i].Name)
		}
	}
	if variables < 1000 || variables > 10_000 {
		t.Errorf("%d sites have a variable", variables)
	}
}
