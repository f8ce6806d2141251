// Needs valgrind and the programs named in realPrograms; run with RDX_LONG=1. Traces are kept in $RDX_CACHE, or rdx in the user's cache folder: 600 MB, and minutes to make.

package model_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
)

// realProgram is a run of a Debian program on a small input, made so that its
// trace has a few million to a few ten million accesses.
type realProgram struct {
	name string
	argv []string // @IN is the input file, @OUT a file that does not exist
	in   func() []byte
}

var realPrograms = []realProgram{
	{"gzip", []string{"gzip", "-6", "-c", "@IN"}, realSource},
	{"bzip2", []string{"bzip2", "-9", "-c", "@IN"}, func() []byte { return realText(60_000) }},
	{"xz", []string{"xz", "-6", "-T1", "-c", "@IN"}, func() []byte { return realText(60_000) }},
	{"sort", []string{"sort", "--parallel=1", "@IN"}, func() []byte { return realText(300_000) }},
	{"sqlite3", []string{"sqlite3", ":memory:", ".read @IN"}, realSQL},
	{"python3", []string{"/usr/bin/python3", "-I", "-S", "@IN"}, func() []byte { return []byte(realPython) }},
	{"cc1", []string{"cc1", "-quiet", "-O1", "-o", "@OUT", "@IN"}, realC},
	{"gzip-text", []string{"gzip", "-6", "-c", "@IN"}, func() []byte { return realText(160_000) }},
	{"sort-words", []string{"sort", "--parallel=1", "@IN"}, func() []byte { return bytes.ReplaceAll(realText(200_000), []byte(" "), []byte("\n")) }},
	{"perl", []string{"perl", "-ne", `$h{lc $_}++ for /\w+/g; END { print "$_ $h{$_}\n" for sort { $h{$b} <=> $h{$a} } keys %h }`, "@IN"}, func() []byte { return realText(60_000) }},
	{"mawk", []string{"mawk", `{ for (i = 1; i <= NF; i++) n[tolower($i)]++ } END { for (w in n) print n[w], w }`, "@IN"}, func() []byte { return realText(150_000) }},
	{"openssl", []string{"openssl", "dgst", "-sha3-256", "@IN"}, func() []byte { return realText(300_000) }},
	{"zstd", []string{"zstd", "-q", "-6", "--single-thread", "-c", "@IN"}, func() []byte { return realText(200_000) }},
	{"grep", []string{"grep", "-E", "-c", "(the|of) [a-z]+(ing|ed)", "@IN"}, func() []byte { return realText(300_000) }},
}

// realSource is C source text.
func realSource() []byte {
	data, err := os.ReadFile("/usr/include/elf.h")
	if err != nil {
		return nil
	}
	return data[:min(len(data), 160_000)]
}

// realText is n bytes of English: the licences that every Debian has, over
// again if they are too short.
func realText(n int) []byte {
	var out bytes.Buffer
	for out.Len() < n {
		before := out.Len()
		for _, name := range []string{"GPL-2", "Artistic", "Apache-2.0", "LGPL-2.1", "GPL-3", "GPL-1", "LGPL-2", "LGPL-3", "BSD"} {
			data, err := os.ReadFile("/usr/share/common-licenses/" + name)
			if err == nil {
				out.Write(data)
			}
		}
		if out.Len() == before {
			return nil
		}
	}
	return out.Bytes()[:n]
}

func realSQL() []byte {
	rng := rand.New(rand.NewPCG(13, 14))
	var b bytes.Buffer
	b.WriteString("create table t(a integer primary key, b text, c real); begin;\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "insert into t values(%d,'row %d of many',%d.5);\n", i, rng.IntN(100000), rng.IntN(1000))
	}
	b.WriteString("commit; create index i on t(c); select count(*), sum(c), max(b) from t where c > 300;\n")
	b.WriteString("select b, count(*) from t group by b order by 2 desc, 1 limit 5; select x.a from t x join t y on x.c = y.c where x.a < y.a limit 2000;\n")
	return b.Bytes()
}

const realPython = `
words = {}
x = 12345
for i in range(9000):
    x = (x * 1103515245 + 12345) & 0x7fffffff
    words.setdefault(x % 3001, []).append(str(x))
total = 0
for k in sorted(words):
    total += sum(len(w) for w in words[k])
rows = [[(i * j) % 17 for j in range(40)] for i in range(40)]
cols = [list(c) for c in zip(*rows)]
print(total, sum(a * b for r in rows[:25] for a, b in zip(r, cols[3])))
`

func realC() []byte {
	var b bytes.Buffer
	b.WriteString("typedef struct { int a[8]; double x; } T;\n")
	for i := range 3 {
		fmt.Fprintf(&b, `int f%d(T *t, int n) { int s = %d; for (int i = 0; i < n; i++) { t[i].a[i & 7] += s; if (t[i].x > s) s ^= t[i].a[%d]; else s += n %% (i + 1); } return s; }
`, i, i, i%8)
	}
	return b.Bytes()
}

// realAccess is the block numbers of a trace at word granularity, renumbered
// from 0 in the order of first use so that they fit 32 bits, and for each the
// number of its line.
type realTrace struct {
	word []uint32
	line []uint32 // per word number
}

func (r *realTrace) blocks(line bool) []uint32 {
	if !line {
		return r.word
	}
	out := make([]uint32, len(r.word))
	for i, w := range r.word {
		out[i] = r.line[w]
	}
	return out
}

func realCacheDir(t testing.TB) string {
	dir := os.Getenv("RDX_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("no folder to cache traces in: %v", err)
		}
		dir = filepath.Join(base, "rdx")
	}
	dir = filepath.Join(dir, "lackey-3")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Skipf("no folder to cache traces in: %v", err)
	}
	return dir
}

// load makes the program's trace, or takes it from the cache. It skips the
// test if a tool is missing.
func (p realProgram) load(t testing.TB) *realTrace {
	t.Helper()
	if os.Getenv("RDX_LONG") == "" {
		t.Skip("traces of real programs take minutes; set RDX_LONG=1")
	}
	path := filepath.Join(realCacheDir(t), p.name)
	if _, err := os.Stat(path); err != nil {
		p.record(t, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &realTrace{}
	number, lines := map[uint64]uint32{}, map[uint64]uint32{}
	var at int64
	for len(data) > 0 {
		d, n := binary.Varint(data)
		if n <= 0 {
			t.Fatalf("%s: broken trace, remove it", path)
		}
		data = data[n:]
		at += d
		id, ok := number[uint64(at)]
		if !ok {
			id = uint32(len(number))
			number[uint64(at)] = id
			l, ok := lines[uint64(at)/8]
			if !ok {
				l = uint32(len(lines))
				lines[uint64(at)/8] = l
			}
			r.line = append(r.line, l)
		}
		r.word = append(r.word, id)
	}
	return r
}

// record runs the program under valgrind's lackey and writes the word
// addresses of its loads and stores as differences; an access that spans
// words is one to each, a modify is a load and a store.
func (p realProgram) record(t testing.TB, path string) {
	t.Helper()
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		t.Skip("valgrind is not installed (apt install valgrind)")
	}
	argv0 := p.argv[0]
	if argv0 == "cc1" {
		out, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
		if err != nil {
			t.Skip("gcc is not installed (apt install gcc)")
		}
		argv0 = strings.TrimSpace(string(out))
	}
	program, err := exec.LookPath(argv0)
	if err != nil {
		t.Skipf("%s is not installed", argv0)
	}
	dir := t.TempDir()
	in := filepath.Join(dir, "in.c")
	input := p.in()
	if len(input) == 0 {
		t.Skip("the file to make an input from is missing (Debian: base-files, libc6-dev)")
	}
	if err := os.WriteFile(in, input, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--tool=lackey", "--trace-mem=yes", "--log-fd=3", program}
	for _, a := range p.argv[1:] {
		args = append(args, strings.NewReplacer("@IN", in, "@OUT", filepath.Join(dir, "out")).Replace(a))
	}
	rd, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	cmd := exec.Command(valgrind, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "PYTHONHASHSEED=0",
		"GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000"}
	cmd.ExtraFiles = []*os.File{wr}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wr.Close()

	tmp := path + ".tmp"
	f, err := os.Create(tmp)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	var last int64
	var buf [binary.MaxVarintLen64]byte
	accesses := 0
	lines := bufio.NewScanner(rd)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		s := lines.Bytes()
		if len(s) < 5 || s[0] != ' ' || s[2] != ' ' || (s[1] != 'L' && s[1] != 'S' && s[1] != 'M') {
			continue // instruction fetches and valgrind's own words
		}
		address, size, ok := bytes.Cut(s[3:], []byte(","))
		a, err1 := strconv.ParseUint(string(address), 16, 64)
		n, err2 := strconv.ParseUint(string(size), 10, 16)
		if !ok || err1 != nil || err2 != nil || n == 0 {
			t.Fatalf("lackey wrote %q", s)
		}
		times := 1
		if s[1] == 'M' {
			times = 2
		}
		for range times {
			for w := int64(a / 8); w <= int64((a+n-1)/8); w++ {
				out.Write(buf[:binary.PutVarint(buf[:], w-last)])
				last = w
				accesses++
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s under valgrind: %v: %s", p.name, err, stderr.Bytes())
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if accesses < 500_000 {
		t.Fatalf("%s: a trace of only %d accesses", p.name, accesses)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
}

// realHists are what the tests need of a trace; one run makes them once.
type realHists struct {
	name   string
	times  *model.Hist // on LogBins(100), to be rebinned
	dists  *model.Hist
	blocks int
}

var realOnce struct {
	sync.Mutex
	hists map[string]*realHists
	name  string // of the trace read last, which is wanted twice in a row
	trace *realTrace
}

func (p realProgram) hists(t testing.TB, line bool) *realHists {
	key := fmt.Sprint(p.name, line)
	realOnce.Lock()
	defer realOnce.Unlock()
	if h := realOnce.hists[key]; h != nil {
		return h
	}
	if realOnce.name != p.name {
		realOnce.name, realOnce.trace = p.name, p.load(t)
	}
	if realOnce.hists == nil {
		realOnce.hists = map[string]*realHists{}
	}
	for _, line := range []bool{false, true} {
		realOnce.hists[fmt.Sprint(p.name, line)] = exactHists(t, p.name, realOnce.trace.blocks(line))
	}
	return realOnce.hists[key]
}

// exactHists is by Olken, which other tests hold against the definition.
func exactHists(t testing.TB, name string, trace []uint32) *realHists {
	h := &realHists{name: name, times: model.NewHist(model.LogBins(100)), dists: model.NewHist(model.LogBins(100))}
	o := exact.NewOlken()
	var blocks, dist, time [4096]uint64
	for len(trace) > 0 {
		n := min(len(trace), len(blocks))
		for i, b := range trace[:n] {
			blocks[i] = uint64(b)
		}
		if err := o.Touch(blocks[:n], dist[:n], time[:n]); err != nil {
			t.Fatal(err)
		}
		for i, d := range dist[:n] {
			if d == model.Infinite {
				h.times.AddKind(model.Cold, 0, 1)
				h.dists.AddKind(model.Cold, 0, 1)
			} else {
				h.times.Add(time[i], 1)
				h.dists.Add(d, 1)
			}
		}
		trace = trace[n:]
	}
	h.blocks = int(o.Blocks())
	return h
}

func TestRealTraceSizes(t *testing.T) {
	for _, p := range realPrograms {
		t.Run(p.name, func(t *testing.T) {
			h := p.hists(t, false)
			t.Logf("%d accesses to %d words", h.times.N, h.blocks)
		})
	}
}
