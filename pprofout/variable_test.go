// Needs: gcc, g++, clang and strip; what is missing is skipped. Runs what it compiles.

package pprofout

import (
	"debug/dwarf"
	"encoding/binary"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

const assignedC = `
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; };
struct holder { long n; struct node *member; } hold;
static struct node *table;
__attribute__((noinline)) void *get(size_t n) {
	printf("%p\n", __builtin_return_address(0));
	return malloc(n);
}
__attribute__((noinline)) struct node *make(void) { return get(48); }
__attribute__((noinline)) void keep(void *a, void *b, void *c, void *d) { __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d) : "memory"); }
__attribute__((noinline)) long work(long n) {
	struct node *first = get(n);
	struct node *second = make();
	table = get(2 * n);
	long *counts = get(8 * n);
	hold.member = get(n);
	get(n);
	keep(first, second, table, counts);
	first->value = n;
	return (long)first + (long)second + (long)counts;
}
int main(void) { return work(1000) == 1; }
`

const assignedCpp = `
#include <stdio.h>
#include <stdlib.h>
struct Node { Node *next; long value; Node(long v); };
__attribute__((noinline)) Node::Node(long v) { next = 0; value = v; }
__attribute__((noinline)) void *operator new(size_t n) {
	printf("%p\n", __builtin_return_address(0));
	return malloc(n);
}
void operator delete(void *) noexcept {}
void operator delete(void *, size_t) noexcept {}
__attribute__((noinline)) void keep(void *a, void *b) { __asm__ volatile("" : : "r"(a), "r"(b) : "memory"); }
namespace shapes { Node *root; }
__attribute__((noinline)) long work(long n) {
	Node *first = new Node(n);
	shapes::root = new Node(2 * n);
	keep(first, shapes::root);
	return first->value;
}
int main(int, char **) { return work(1000) == 1; }
`

// imageOf opens a program until the test ends.
func imageOf(t *testing.T, bin string) *image {
	t.Helper()
	f, err := os.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	img, err := openImage(f, &model.Mapping{File: bin}, []debugRoot{debugBelow("/nowhere")})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// assignedAt runs a program that prints where calls return to, and names what their results are assigned to, with
// what a node has there behind its first eight bytes.
func assignedAt(t *testing.T, bin string) (names []string) {
	t.Helper()
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	img := imageOf(t, bin)
	for line := range strings.Lines(string(out)) {
		pc, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(line), "0x"), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		name, to, returned := img.assigned(pc)
		if member, of, ok := strings.Cut(memberOf(to, "", 8), " of "); ok && strings.EqualFold(of, "struct node") {
			name += "." + member
		}
		if returned {
			name = "returned"
		}
		names = append(names, name)
	}
	return names
}

// What a call returns is assigned to a variable, which the code behind the call and the debug information tell.
func TestAssigned(t *testing.T) {
	all := "first.value returned table.value counts hold - "
	for _, c := range []struct{ name, source, compiler, flags, want string }{
		{"gcc -O0", assignedC, "gcc", "-g -O0", all},
		{"gcc -O2", assignedC, "gcc", "-g -O2", all},
		{"gcc -O2, DWARF 4", assignedC, "gcc", "-gdwarf-4 -O2", all},
		{"gcc -O0, DWARF 4", assignedC, "gcc", "-gdwarf-4 -O0", all},
		{"gcc, compressed", assignedC, "gcc", "-g -O2 -gz", all},
		{"gcc, without", assignedC, "gcc", "-g0 -O2", "- returned table - hold - "},
		{"gcc, split", assignedC, "gcc", "-g -O2 -gsplit-dwarf", all},
		{"clang -O0", assignedC, "clang", "-g -O0", all},
		{"clang -O2", assignedC, "clang", "-g -O2", all},
		{"clang -O2, DWARF 4", assignedC, "clang", "-gdwarf-4 -O2", all},
		{"g++ -O0", assignedCpp, "g++", "-g -O0", "first.value shapes::root.value "},
		{"g++ -O2", assignedCpp, "g++", "-g -O2", "first.value shapes::root.value "},
		{"clang++ -O2", assignedCpp, "clang++", "-g -O2", "first.value shapes::root.value "},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := "prog.c"
			if c.source == assignedCpp {
				file = "prog.cc"
			}
			need(t, c.compiler)
			bin := compile(t, source(t, file, c.source), c.compiler, append(strings.Fields(c.flags), "-no-pie", "-fno-optimize-sibling-calls")...)
			got := ""
			for _, n := range assignedAt(t, bin) {
				if n == "" {
					n = "-"
				}
				got += n + " "
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// A block's name has the variable that its allocation is assigned to, beyond a function that hands it on.
func TestBlockHasVariable(t *testing.T) {
	need(t, "gcc")
	bin := compile(t, source(t, "prog.c", assignedC), "gcc", "-g", "-O2", "-no-pie", "-fno-optimize-sibling-calls")
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, ms := mapped(t, bin, 0)
	var at []*model.Location
	for line := range strings.Lines(string(out)) {
		pc, _ := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(line), "0x"), 16, 64)
		at = append(at, &model.Location{Address: pc, Mapping: ms[0]})
	}
	leaf := &model.Location{Address: at[0].Address, Mapping: ms[0]}
	// The second is make's, which work calls; of where it returns to in work nothing was printed.
	callers := map[int]string{0: "first, heap block of work prog.c:14", 2: "table, heap block of work prog.c:16", 5: "heap block of work prog.c:19"}
	p := &model.Profile{}
	for i := range callers {
		p.Records = append(p.Records, model.Record{Use: []*model.Location{{Address: at[0].Address, Mapping: ms[0]}}, Data: &model.Data{Kind: model.DataBlock, Site: []*model.Location{leaf, at[i]}}})
	}
	if _, err := (&symbolizer{}).run(p, files{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Records {
		found := false
		for i, want := range callers {
			found = found || r.Data.Site[1] == at[i] && r.Data.Name == want
		}
		if !found {
			t.Errorf("%q", r.Data.Name)
		}
	}
}

// Damaged code and debug information name nothing, and end.
func FuzzAssigned(f *testing.F) {
	f.Add([]byte{0x48, 0x89, 0x45, 0xf8, 0xc3}, []byte{4, 1, 2, 1, 0x50, 0})
	f.Add([]byte{0xff, 0xe0}, []byte{9, 0, 0, 7})
	f.Fuzz(func(t *testing.T, code, list []byte) {
		resultOf(code, 0x1000)
		f := debugSource{order: binary.LittleEndian, sections: map[string][]byte{}}
		u := &unit{source: &f, cu: &dwarf.Entry{}}
		u.locationList(list, 0x1000)
		oldLocationList(list, binary.LittleEndian, 0x1000)
		(&cursor{b: list}).sleb()
	})
}
