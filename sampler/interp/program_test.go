// Needs ptrace, amd64, Linux and the programs it runs.

//go:build linux && amd64

package interp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// walk is the comparison of one program with the interpreter.
type walk struct {
	*child
	t   testing.TB
	m   *Machine
	rnd *rand.Rand

	compared, stores, disagreed int
	syscalls                    int
	unsupported                 map[string]int
	native                      Regs
}

// one steps an instruction natively, delivering sig if there is one, and sets
// it if a signal stopped the step. It returns false if the program has ended.
func (w *walk) one(sig *syscall.Signal) bool {
	deliver := *sig
	*sig = 0
	s, ok := w.step(deliver)
	if !ok {
		return false
	}
	if s != 0 {
		*sig = s
	}
	w.regs(&w.native)
	return true
}

// runTo runs natively to the instruction at rip, for string instructions that
// would take a step an iteration.
func (w *walk) runTo(rip uint64, sig *syscall.Signal) bool {
	var old [1]byte
	w.read(rip, old[:])
	w.write(rip, []byte{0xcc})
	if err := syscall.PtraceCont(w.pid, 0); err != nil {
		w.t.Fatal(err)
	}
	s, ok := w.wait()
	if !ok {
		return false
	}
	*sig = s
	w.write(rip, old[:])
	w.regs(&w.native)
	if s == 0 {
		w.native.RIP = rip
		w.setRegs(&w.native)
	}
	return true
}

// window steps n instructions natively and interpreted. It returns false if
// the program has ended.
func (w *walk) window(n int) bool {
	var mine, before Regs
	var sig syscall.Signal
	restart := true
	w.regs(&w.native)
	for i := 0; i < n; i++ {
		if restart {
			r := w.native
			r.LoadVector = func(v *Vector) error { w.vector(v); return nil }
			w.m.Start(&r, w.child)
			restart = false
		}
		before = w.native
		end := w.m.Run(Limit{Accesses: 1 << 30, Instructions: 1})
		var code [15]byte
		unix.Pread(int(w.mem.Fd()), code[:], int64(before.RIP))
		if end.Cause != InstructionLimit {
			switch end.Cause {
			case Syscall:
				w.syscalls++
			case Unsupported:
				w.unsupported[end.Op]++
			default:
				w.unsupported[end.Cause.String()+" "+end.Op]++
			}
			restart = true
			w.compareMemory()
			if !w.one(&sig) {
				return false
			}
			for sig != 0 {
				if !w.one(&sig) {
					return false
				}
			}
			continue
		}
		repeats := isString(mnemonic(code[:])) && w.m.fetch(before.RIP)[0].rep != 0
		if repeats && before.GPR[RCX] > 32 {
			if !w.runTo(w.m.fetch(before.RIP)[0].next, &sig) {
				return false
			}
		} else if !w.one(&sig) {
			return false
		}
		for repeats && w.native.RIP == before.RIP && sig == 0 {
			if !w.one(&sig) {
				return false
			}
		}
		if sig != 0 { // a signal came instead: go on in its handler
			for sig != 0 {
				if !w.one(&sig) {
					return false
				}
			}
			restart = true
			w.forget()
			continue
		}
		w.compared++
		undefined := undefinedFlags(code[:], before.GPR[RCX]&0xff)
		in := &w.m.fetch(before.RIP)[0]
		w.m.Regs(&mine)
		if w.m.vecOK && (in.flags&usesVector != 0 || i%64 == 0) {
			w.vector(&w.native.Vector)
		} else {
			w.native.Vector = mine.Vector
		}
		diff := compare(&mine, &w.native, undefined)
		if !w.m.exLost && mine.Vector.MXCSR != w.native.Vector.MXCSR {
			diff += fmt.Sprintf(" mxcsr %#x, CPU %#x;", mine.Vector.MXCSR, w.native.Vector.MXCSR)
		}
		if strings.HasPrefix(mnemonic(code[:]), "xsave") { // how much it stores is the CPU's choice
			area := w.m.acc[0].Addr - xsaveHeader
			// Total counts all parts that the CPU has: the area may be shorter, and end the stack.
			b := make([]byte, w.layout.Total)
			n, err := w.mem.ReadAt(b, int64(area))
			if n < xsaveExtended {
				w.t.Fatalf("read xsave area %#x: %v", area, err)
			}
			w.m.Store(area, b[:n])
		} else if len(w.m.acc) < 1000 {
			for _, a := range w.m.acc {
				if a.Store {
					diff += w.compareStore(a)
				}
			}
		}
		w.m.flags = w.m.flags&^undefined | w.native.Flags&undefined
		if diff != "" {
			if w.disagreed++; w.disagreed <= 3 {
				w.t.Errorf("%s % x at %#x: %s\nbefore: %s", mnemonic(code[:]), code, before.RIP, diff, describe(&before, in))
			}
			restart = true
			w.forget()
		}
	}
	w.compareMemory()
	return true
}

func (w *walk) compareStore(a Access) string {
	w.stores++
	have, want := make([]byte, a.Size), make([]byte, a.Size)
	w.m.Read(a.Addr, have)
	w.read(a.Addr, want)
	if bytes.Equal(have, want) {
		return ""
	}
	return fmt.Sprintf(" store to %#x: % x, CPU % x;", a.Addr, have, want)
}

// compareMemory compares every page that the interpreter wrote, and forgets
// them: the thread goes on without the interpreter.
//
// With several threads the others may have written too; then only the stores
// themselves are compared.
func (w *walk) compareMemory() {
	if tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", w.pid)); len(tasks) > 1 {
		w.forget()
		return
	}
	for _, p := range w.m.pages {
		var want [pageSize]byte
		if !p.dirty || w.ReadPage(p.num*pageSize, &want) != nil || want == p.data {
			continue
		}
		i := 0
		for want[i] == p.data[i] {
			i++
		}
		w.disagreed++
		w.t.Errorf("page %#x differs at %#x: % x, CPU % x", p.num*pageSize, i,
			p.data[i:min(i+16, pageSize)], want[i:min(i+16, pageSize)])
	}
	w.forget()
}

func (w *walk) forget() {
	clear(w.m.pages)
	w.m.used = 0
}

// away lets the program run natively for d.
func (w *walk) away(d time.Duration) bool {
	if err := syscall.PtraceCont(w.pid, 0); err != nil {
		w.t.Fatal(err)
	}
	timer := time.AfterFunc(d, func() { unix.Tgkill(w.pid, w.pid, syscall.SIGSTOP) })
	defer timer.Stop()
	for {
		sig, ok := w.wait()
		if !ok {
			return false
		}
		if sig == syscall.SIGSTOP {
			return true
		}
		if err := syscall.PtraceCont(w.pid, int(sig)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func input(t testing.TB, rnd *rand.Rand) string {
	t.Helper()
	words := make([]string, 3000)
	for i := range words {
		b := make([]byte, 2+rnd.IntN(9))
		for j := range b {
			b[j] = byte('a' + rnd.IntN(26))
		}
		words[i] = string(b)
	}
	var text bytes.Buffer
	for text.Len() < 8<<20 {
		for range 10 {
			text.WriteString(words[int(rnd.ExpFloat64()*300)%len(words)])
			text.WriteByte(' ')
		}
		fmt.Fprintf(&text, "%d\n", rnd.IntN(1e6))
	}
	name := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

const pythonWork = `
import json, re, hashlib, math, random, zlib
random.seed(1)
d = {}
for n in range(10**7):
    s = "%d %x %f" % (n, n * 7919, math.sin(n) * n)
    d[s[:5]] = d.get(s[:5], 0) + len(re.findall(r"[0-9]+", s))
    if n % 50 == 0:
        json.loads(json.dumps({"a": s, "b": [n, n / 3, str(n)]}))
        hashlib.sha256(s.encode()).hexdigest(); zlib.compress(s.encode() * 20)
        sorted(random.random() for _ in range(100)); 3 ** (n % 200) // 7
`

const luaWork = `
local t = {}
for round = 1, 1e9 do
  local f = loadstring("return function(a, n) local s = 0 for i = 1, n do s = s + a * i % " .. (round % 97 + 2) .. " end return s end")()
  for k = 1, 50 do t[k] = f(k, 400) + math.sin(k) end
  local s = table.concat(t, ",")
  if #s:gsub("%d", "x") == round then print(s) end
end
`

const sqlWork = `
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into t select i, printf('%x-%d', i * 7919 % 10007, i), i / 3.0 from n;
create index tb on t(b);
select count(*), avg(c), max(length(b)) from t where b like '%a%' group by a % 17 order by 2 desc;
select x.b, y.b from t x join t y on x.a = y.a * 3 where x.c > y.c order by x.b limit 10;
update t set c = c * 1.5 where a % 3 = 0;
select sum(c), group_concat(substr(b, 1, 2)) from (select * from t order by b desc limit 50000);
`

const cWork = `
#define F(n) static double f##n(double *a, int *b, int k) { double s = 0; for (int i = 0; i < k; i++) { \
  if (b[i] %% (n + 2)) s += a[i] * b[(i + n) %% k]; else switch (b[i] & 7) { case 0: s -= 1; break; case 1: s *= 2; break; \
  case 2: s /= a[i]; break; default: b[i] ^= n; } } return s; }
`

func programs(t testing.TB, rnd *rand.Rand) map[string][]string {
	text := input(t, rnd)
	dir := t.TempDir()
	write := func(name, s string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	c := strings.ReplaceAll(cWork, "%%", "%")
	sum := "double g(double *a, int *b, int k) { return 0"
	for i := range 600 {
		c += fmt.Sprintf("F(%d)\n", i)
		sum += fmt.Sprintf(" + f%d(a, b, k)", i)
	}
	cfile := write("f.c", c+sum+"; }\n")
	p := map[string][]string{
		"xz":      {"/usr/bin/xz", "-T1", "-c", text},
		"bzip2":   {"/usr/bin/bzip2", "-c", text},
		"gzip":    {"/usr/bin/gzip", "-c", text},
		"sort":    {"/usr/bin/sort", "--parallel=1", text},
		"seq":     {"/usr/bin/seq", "0", "0.001", "1e9"}, // long double, on the x87
		"python3": {"/usr/bin/python3", "-c", pythonWork},
		"sqlite3": {"/usr/bin/sqlite3", ":memory:", sqlWork},
		"openssl": {"/usr/bin/openssl", "speed", "-seconds", "1", "sha256", "aes-128-cbc", "rsa2048", "ecdsap256", "md5", "sha512", "ghash"},
		"perl":    {"/usr/bin/perl", "-e", "for $i (1..1e8) { $h{$i % 1000} .= chr($i % 256); $h{$i % 1000} =~ s/a+/b/ if $i % 10 == 0; $s += sqrt($i) * sin($i) }"},
		"luajit":  {"/usr/bin/luajit", "-e", luaWork}, // compiles as it runs
	}
	if cc1, _ := filepath.Glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1"); len(cc1) > 0 {
		p["cc1"] = []string{cc1[0], "-quiet", "-O2", cfile, "-o", filepath.Join(dir, "f.s")}
	} else {
		p["cc1"] = []string{"cc1"}
	}
	return p
}

// report logs what was compared and returns the percentage of instructions
// that the interpreter supports.
func (w *walk) report(windows int) float64 {
	total := w.compared
	ops := make([]string, 0, len(w.unsupported))
	for op, n := range w.unsupported {
		total += n
		ops = append(ops, op)
	}
	sort.Slice(ops, func(i, j int) bool { return w.unsupported[ops[i]] > w.unsupported[ops[j]] })
	for i, op := range ops {
		ops[i] = fmt.Sprintf("%s %d", op, w.unsupported[op])
	}
	share := 100 * float64(w.compared) / float64(max(total, 1))
	w.t.Logf("%d instructions and %d stores in %d windows compared, %d disagree; %.4f %% supported, not: %v; %d system calls",
		w.compared, w.stores, windows, w.disagreed, share, ops[:min(len(ops), 12)], w.syscalls)
	return share
}

// TestPrograms runs real programs natively and interpreted, an instruction at
// a time, in windows spread over the run, and compares registers, flags, the
// vector state and what every store left in memory.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rnd := seeded(t)
	each, length := 2*time.Second, 1500
	if long() {
		each, length = 2*time.Minute, 5000
	}
	if s := os.Getenv("RDX_PROGRAM_TIME"); s != "" {
		each, _ = time.ParseDuration(s)
	}
	all := programs(t, rnd)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	m := New()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(all[name][0]); err != nil {
				t.Skipf("needs %s: %v", name, err)
			}
			w := &walk{t: t, m: m, rnd: rnd, unsupported: map[string]int{}}
			deadline := time.Now().Add(each)
			// Some windows at least, however busy the machine is.
			windows, starts := 0, 0
			more := func() bool {
				return w.disagreed < 10 && (time.Now().Before(deadline) || windows < 6 && starts < 10)
			}
			for ; more(); starts++ {
				w.child = start(t, nil, all[name]...)
				pid := w.pid
				watchdog := time.AfterFunc(max(time.Until(deadline), 0)+time.Minute, func() {
					t.Errorf("%s is stuck", name)
					syscall.Kill(pid, syscall.SIGKILL)
				})
				var set unix.CPUSet // the kernel writes the CPU's number to the thread's rseq area
				set.Set(rnd.IntN(2))
				unix.SchedSetaffinity(w.pid, &set)
				pause := 20 * time.Millisecond
				for more() && w.window(length) {
					windows++
					if !w.away(time.Duration(rnd.Int64N(int64(pause)))) {
						break
					}
				}
				watchdog.Stop()
				w.kill()
				w.exited, w.mem = true, nil
			}
			share := w.report(windows)
			if share < 97 {
				t.Errorf("%.2f %% of the instructions are supported", share)
			}
			if w.compared == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// TestBursts reads ahead from where programs happen to be and logs how far it
// gets, what ends it and what it costs.
func TestBursts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rnd := seeded(t)
	stops := 15
	if long() {
		stops = 400
	}
	const want = 10000
	all := programs(t, rnd)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(all[name][0]); err != nil {
				t.Skipf("needs %s: %v", name, err)
			}
			m := New()
			var lengths []int
			ends := map[string]int{}
			var spent time.Duration
			var instructions, ended int
			for len(lengths) < stops && ended < 20 {
				w := &walk{t: t, child: start(t, nil, all[name]...)}
				for len(lengths) < stops && w.away(2*time.Millisecond+time.Duration(rnd.Int64N(int64(15*time.Millisecond)))) {
					var r Regs
					w.regs(&r)
					r.LoadVector = func(v *Vector) error { w.vector(v); return nil }
					begin := time.Now()
					m.Start(&r, w.child)
					end := m.Run(Limit{Accesses: want, Instructions: 20 * want})
					spent += time.Since(begin)
					instructions += end.Instructions
					lengths = append(lengths, len(m.Accesses()))
					ends[strings.TrimSpace(end.Cause.String()+" "+end.Op)]++
				}
				ended++
				w.kill()
				w.exited, w.mem = true, nil
			}
			if len(lengths) == 0 {
				t.Fatal("no burst")
			}
			sort.Ints(lengths)
			at := func(q float64) int { return lengths[int(q*float64(len(lengths)-1))] }
			t.Logf("%d bursts: accesses p10 %d, median %d; %.1f ns an instruction with reading memory; ends %v",
				len(lengths), at(0.1), at(0.5), float64(spent.Nanoseconds())/float64(max(instructions, 1)), ends)
			if at(1) < want/10 {
				t.Errorf("no burst got further than %d accesses", at(1))
			}
		})
	}
}
