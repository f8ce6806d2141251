package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A program does n times the same work in one process: the exact run does it
// a few times, the live one for a minute. Short of start and end, where
// what is kept from one time to the next is touched first and last, both have
// the same histogram.
type program struct {
	name  string
	argv  func(n int) []string
	exact int    // times the exact run by lines does the work: some 2e8 accesses
	live  int    // times for about a minute
	stack string // of rdx's --stack, of programs with several threads
}

// flags are those of both runs of the program.
func (p program) flags() []string {
	if p.stack == "" {
		return nil
	}
	return []string{"--stack", p.stack}
}

// pinned is the environment of all runs: what would move a comparison between
// the exact engine and the bare machine is fixed (docs/reference/access-model.md).
var pinned = []string{
	"PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=/nonexistent", "PYTHONHASHSEED=0", "PERL_HASH_SEED=0", "PYTHONDONTWRITEBYTECODE=1",
	"GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000:glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD",
}

const pythonScript = `
import sys
class Node:
    def __init__(self, key, value):
        self.key, self.value, self.next = key, value, None
def work(seed):
    counts, words, x = {}, [], seed
    for i in range(20000):
        x = (x * 1103515245 + 12345) & 0x7fffffff
        w = "w%d" % (x % 5000)
        words.append(w)
        counts[w] = counts.get(w, 0) + 1
    head = None
    for k in sorted(counts, key=lambda k: (-counts[k], k)):
        n = Node(k, counts[k]); n.next, head = head, n
    total, n = 0, head
    while n is not None:
        total += n.value * len(n.key); n = n.next
    return total + len(" ".join(words).split("1"))
print(sum(work(i + 1) for i in range(int(sys.argv[1]))))
`

const perlScript = `while (<>) { for my $w (split) { $n{$w}++; $s{substr($w, 0, 2)} .= "x" if $w =~ /^[aeiou].*(?:in|er)/; } $s{$_} = "" for keys %s; }
print scalar(keys %n), "\n";`

const awkScript = `{ for (i = 1; i <= NF; i++) { n[$i]++; l += length($i) } gsub(/e[a-m]/, "x"); m += length($0) } END { print l, m }`

// query is one of a few analytical ones over a table that is made first.
const (
	sqlSetUp = `CREATE TABLE t(id INTEGER PRIMARY KEY, k INT, v TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, (i * 7919) % 5003, 'value ' || (i * 31 % 977) FROM n;
CREATE INDEX tk ON t(k);
`
	sqlQuery = `SELECT count(*), sum(length(v)) FROM (SELECT k, count(*) c, max(v) v FROM t GROUP BY k ORDER BY c, k);
SELECT count(*) FROM t a JOIN t b ON b.k = a.id % 5003 WHERE a.id < 4000 AND b.v LIKE '%7%';
UPDATE t SET v = 'value ' || ((id * 37 + k) % 977) WHERE id % 7 = 3;
`
)

// text is of a fixed kind: words of which some are frequent.
func text(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 5000)
	for i := range words {
		b := make([]byte, 2+r.IntN(9))
		for j := range b {
			b[j] = byte('a' + r.IntN(26))
		}
		words[i] = string(b)
	}
	var out bytes.Buffer
	for out.Len() < size {
		out.WriteString(words[int(float64(len(words))*r.Float64()*r.Float64())])
		if r.IntN(10) == 0 {
			out.WriteByte('\n')
		} else {
			out.WriteByte(' ')
		}
	}
	return append(out.Bytes()[:size-1], '\n')
}

// source is a C file of n groups of functions, for the compiler.
func source(n int) string {
	var b strings.Builder
	b.WriteString("typedef unsigned long u; struct s { u a, b; struct s *next; u v[8]; };\n")
	for i := range n {
		fmt.Fprintf(&b, `
static u f%[1]d(const u *p, u n) { u s = %[1]d; for (u i = 0; i < n; i++) { if (p[i] & 1) s += p[i] * %[2]d; else s ^= p[i] >> 3; } return s; }
u g%[1]d(struct s *x, u k) { u r = 0; while (x) { switch (k & 7) { case 0: r += x->a; break; case 1: r -= x->b; break; case 2: r ^= f%[1]d(x->v, 8); break;
 case 3: x->v[k & 7] = r; break; case 4: r = r << 5 | r >> 59; break; default: r *= x->a | 1; } k = k * 6364136223846793005ul + 1; x = x->next; } return r; }
void h%[1]d(double *a, const double *b, int n) { for (int i = 1; i + 1 < n; i++) a[i] = (b[i - 1] + b[i] * %[2]d.0 + b[i + 1]) / %[3]d.0; }
`, i, 2*i+3, i+4)
	}
	return b.String()
}

func repeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

// programs prepares the inputs in dir.
func programs(dir string) ([]program, error) {
	cc1, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
	if err != nil {
		return nil, fmt.Errorf("find gcc's cc1: %w", err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, content []byte) string {
		if _, e := os.Stat(in(name)); e != nil && err == nil { // the time of a file need not change
			err = os.WriteFile(in(name), content, 0o644)
		}
		return name // all run in dir
	}
	body := text(2 << 20)
	one, two, half, quarter := write("text1m", body[:1<<20]), write("text2m", body), write("text500k", body[:500<<10]), write("text250k", body[:250<<10])
	script := write("work.py", []byte(pythonScript))
	ps := []program{
		{"xz -6", func(n int) []string { return append([]string{"xz", "-6", "-T1", "-k", "-c"}, repeat(quarter, n)...) }, 6, 1050, ""},
		{"gzip -6", func(n int) []string { return append([]string{"gzip", "-6", "-c"}, repeat(two, n)...) }, 2, 1250, ""},
		{"bzip2 -9", func(n int) []string { return append([]string{"bzip2", "-9", "-c"}, repeat(one, n)...) }, 2, 1020, ""},
		{"sqlite3", func(n int) []string {
			file := write(fmt.Sprintf("query%d.sql", n), []byte(sqlSetUp+strings.Repeat(sqlQuery, n)))
			return []string{"sqlite3", ":memory:", ".read " + file}
		}, 4, 4000, ""},
		{"python3", func(n int) []string { return []string{"python3", "-S", script, strconv.Itoa(n)} }, 10, 7000, ""},
		{"openssl sha3", func(n int) []string { return append([]string{"openssl", "dgst", "-sha3-512"}, repeat(two, n)...) }, 10, 7600, ""},
		{"cc1 -O2", func(n int) []string {
			return []string{strings.TrimSpace(string(cc1)), "-quiet", "-O2", "-o", "/dev/null", write(fmt.Sprintf("gen%d.c", n), []byte(source(n)))}
		}, 8, 1200, ""},
		{"mawk", func(n int) []string { return append([]string{"mawk", awkScript}, repeat(half, n)...) }, 4, 6000, ""},
		{"perl", func(n int) []string { return append([]string{"perl", "-e", perlScript}, repeat(half, n)...) }, 4, 3000, ""},
		{"sort", func(n int) []string {
			return append([]string{"sort", "-S", "4M", "--parallel=1", "-u", "-k2", "-T", "."}, repeat(half, n)...)
		}, 16, 4000, ""},
		// Of these each process lives for all of its files.
		{"zstd -T2", func(n int) []string { return append([]string{"zstd", "-T2", "-B512KB", "-q", "-c"}, repeat(two, n)...) }, 6, 2400, "private"},
		{"pigz -p 2", func(n int) []string { return append([]string{"pigz", "-p", "2", "-c"}, repeat(two, n)...) }, 2, 800, "private"},
	}
	for _, p := range ps {
		p.argv(p.exact)
		p.argv(p.live)
	}
	return ps, err
}
