// Needs: gcc, g++ and clang; what is missing is skipped.

package pprofout

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

const membersC = `
typedef unsigned long number;
struct inner { int low, high; };
struct stats { number hits; struct inner of[3]; const volatile long *at; union { long as_long; double as_double; }; };
typedef struct { long lock; char name[8]; } named;
struct stats st;
static struct stats many[1000];
named one;
long sum[4];
static long table[4096];
int grid[4][3];
struct node { struct node *next; int a, b; };
struct node *first;
long use(long n) {
	static struct inner kept;
	__asm__ volatile("" : : "r"(&kept) : "memory");
	kept.high += n;
	many[n].hits = kept.high;
	table[n & 4095]++;
	sum[n & 3]++;
	grid[n & 3][n % 3]++;
	return many[n & 7].hits + table[n] + sum[n & 1];
}
void through(struct stats *s) { s->hits = 1; }
void deep(long n, struct stats *s) { s->of[2].high = n; }
void global(long n) { first->b = n; }
int main(int argc, char **argv) { (void)argv; st.hits = use(argc); through(&st); deep(argc, &st); one.lock++; first = (struct node *)&st; global(argc); return 0; }
`

// What an instruction touches is named by the variable's type, or by the pointer that it goes by, whatever compiled it.
func TestMembers(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "members.c")
	if err := os.WriteFile(source, []byte(membersC), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, compiler := range []string{"gcc", "clang"} {
		for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"-O2", "-gdwarf-4"}, {"-O0", "-gsplit-dwarf"}, {"-O2", "-gsplit-dwarf"}} {
			t.Run(compiler+" "+strings.Join(flags, " "), func(t *testing.T) {
				need(t, compiler)
				bin := filepath.Join(dir, "members")
				cmd := exec.Command(compiler, append(flags, "-g", "-fno-inline", "-fno-omit-frame-pointer", "-o", bin, source)...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				checkMembers(t, bin)
			})
		}
	}
}

func checkMembers(t *testing.T, bin string) {
	img := imageOf(t, bin)
	symbols, err := img.elf.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) (addr, size uint64) {
		is := func(alike func(s string) bool) bool {
			i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return alike(s.Name) })
			if i >= 0 {
				addr, size = symbols[i].Value, symbols[i].Size
			}
			return i >= 0
		}
		if !is(func(s string) bool { return s == name }) && !is(func(s string) bool { return strings.HasPrefix(s, name+".") || s == "use."+name }) {
			t.Fatalf("no symbol %s", name)
		}
		return addr, size
	}
	use, _ := at("use")
	for _, c := range []struct {
		variable string
		offset   uint64
		want     string
	}{
		{"st", 0, "hits of struct stats"}, {"st", 12, "of[0].high of struct stats"}, {"st", 24, "of[2].low of struct stats"}, {"st", 32, "at of struct stats"},
		{"st", 40, ""}, {"many", 48*7 + 32, "at of struct stats"}, {"one", 0, "lock of named"}, {"one", 9, "name[1] of named"},
		{"sum", 24, "sum[3]"}, {"table", 80, "table[]"}, {"grid", 20, "grid[1][2]"}, {"kept", 4, "high of struct inner"},
	} {
		v, _ := at(c.variable)
		if got := img.member(use+4, v+c.offset); got != c.want {
			t.Errorf("%s+%d: %q, want %q", c.variable, c.offset, got, c.want)
		}
	}
	for function, want := range map[string]string{"through": "hits of struct stats", "deep": "of[2].high of struct stats", "global": "b of struct node"} {
		from, size := at(function)
		var found []string
		for code := img.code(from, int(size)); len(code) > 0; {
			i, err := x86asm.Decode(code, 64)
			if err != nil {
				t.Fatal(err)
			}
			if name := img.member(from, 0); name != "" {
				found = append(found, name)
			}
			from += uint64(i.Len)
			code = code[i.Len:]
		}
		if !slices.Equal(found, []string{want}) {
			t.Errorf("%s: %q, want %q alone", function, found, want)
		}
	}
}
