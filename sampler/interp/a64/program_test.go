// Needs: qemu-user, network or a cache for arm64 programs from Debian (testdata/programs.sh).
package a64

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/sampler/interp"
)

// walk is the comparison of one program with the interpreter.
type walk struct {
	*stub
	t testing.TB
	m *Machine

	compared, stores, disagreed int
	syscalls, exclusives        int
	stalls                      int // steps that a signal ended before the instruction
	stretched, pages            int
	signal                      string // to be delivered
	unsupported                 map[string]int
	native                      Regs
}

// step is what is expected of one.
type step struct {
	before, after Regs
	word          word32
	vectors       []uint8 // that changed, or may have
	stores        []interp.Access
	bytes         [][]byte // stored
}

// batch is how many instructions are interpreted before QEMU is to make as many
// steps: what is sent at once must be small enough to arrive as a whole.
const batch = 40

// window compares about n instructions. It returns false if the program has ended.
func (w *walk) window(n int) bool {
	if !w.all(&w.native) {
		return false
	}
	restart := true
	for done := 0; done < n && w.disagreed < 10; {
		if restart {
			r := w.native
			r.DCZID = 4 // 64 bytes, as all of QEMU's CPUs have
			w.m.Start(&r, w.stub)
			restart = false
		}
		steps, end, atExclusive := w.interpret(min(batch, n-done))
		done += max(len(steps), 1)
		same := w.compare(steps)
		if w.dead {
			return false
		}
		if w.signal != "" {
			return true
		}
		switch {
		case !same:
			restart = true
			if !w.all(&w.native) {
				return false
			}
			continue
		case atExclusive:
			if !w.exclusive() {
				restart = true
			}
			if w.dead {
				return false
			}
			if w.signal != "" {
				return true
			}
			continue
		case end.Cause == interp.InstructionLimit:
			continue
		case end.Cause == interp.Syscall:
			w.syscalls++
		case end.Cause == interp.Unsupported:
			w.unsupported[end.Op]++
		default:
			w.unsupported[end.Cause.String()+" "+end.Op]++
		}
		restart = true
		if w.signalled(w.ask("s")) {
			return true
		}
		if w.dead || !w.all(&w.native) {
			return false
		}
	}
	return true
}

// wordAt is the instruction at pc, 0 if it can't be read.
func (w *walk) wordAt(pc uint64) (word word32) {
	defer func() { _ = recover() }()
	return word32(w.m.mem.Peek(pc, 4))
}

// interpret makes n steps, or fewer if the interpreter ends before, or is at a
// load-exclusive.
func (w *walk) interpret(n int) (steps []step, end interp.End, atExclusive bool) {
	var r Regs
	w.m.Regs(&r)
	for len(steps) < n {
		s := step{before: r, word: w.wordAt(r.PC)}
		if isExclusive(s.word) {
			return steps, end, true
		}
		end = w.m.Run(interp.Limit{Accesses: 1 << 30, Instructions: 1})
		if end.Cause != interp.InstructionLimit {
			return steps, end, false
		}
		w.m.Regs(&r)
		s.after = r
		for i := range uint8(32) {
			if r.Vector.V[i] != s.before.Vector.V[i] || s.word.is(26) && s.word.rd() == i {
				s.vectors = append(s.vectors, i)
			}
		}
		for _, a := range w.m.Accesses() {
			if a.Store {
				b := make([]byte, a.Size)
				w.m.mem.Read(a.Addr, b)
				s.stores, s.bytes = append(s.stores, a), append(s.bytes, b)
			}
		}
		steps = append(steps, s)
	}
	return steps, end, false
}

func isExclusive(w word32) bool {
	return w.bits(29, 24) == 0b001000 && !w.is(23) && w.is(22) && (!w.is(21) || w.is(31))
}

// compare has QEMU make the steps, and compares after each.
func (w *walk) compare(steps []step) (same bool) {
	if len(steps) == 0 {
		return true
	}
	groups := [][]string{{"s"}}
	for i, s := range steps {
		g := []string{"g"}
		for _, v := range s.vectors {
			g = append(g, fmt.Sprintf("p%x", stubV+v))
		}
		for _, a := range s.stores {
			g = append(g, fmt.Sprintf("m%x,%x", a.Addr, a.Size))
		}
		if i < len(steps)-1 {
			g = append(g, "s")
		}
		groups = append(groups, g)
	}
	a := w.askAll(groups...)
	if a == nil {
		return false
	}
	if w.signalled(a[0]) {
		return false
	}
	a = a[1:]
	for i, s := range steps {
		last := i == len(steps)-1
		diff := ""
		if !parseGeneral(a[0], &w.native) {
			w.t.Fatalf("registers from QEMU: %q", a[0])
		}
		a = a[1:]
		diff += compareGeneral(&s.after, &w.native)
		for _, v := range s.vectors {
			if have := parseVec(a[0]); have != s.after.Vector.V[v] {
				diff += fmt.Sprintf(" v%d %x, QEMU %x;", v, s.after.Vector.V[v], have)
			}
			a = a[1:]
		}
		for j := range s.stores {
			w.stores++
			if have, _ := hex.DecodeString(a[0]); !bytes.Equal(have, s.bytes[j]) {
				diff += fmt.Sprintf(" store to %#x: % x, QEMU % x;", s.stores[j].Addr, s.bytes[j], have)
			}
			a = a[1:]
		}
		if diff != "" && compareGeneral(&s.before, &w.native) == "" {
			// A signal that comes just before the instruction ends QEMU's step there. It
			// reports the step first, and the signal only when asked for the next.
			if last && w.signalled(w.ask("s")) || !last && w.signalled(a[0]) {
				w.stalls++
				return false
			}
		}
		if diff != "" {
			w.disagree(&s, diff)
			return false
		}
		w.compared++
		if !last {
			if w.signalled(a[0]) {
				return false
			}
			a = a[1:]
		}
	}
	// What else the steps may have changed.
	last := &steps[len(steps)-1]
	if !w.all(&w.native) {
		return false
	}
	if diff := w.compareAll(&last.after); diff != "" {
		w.disagree(last, "in the steps to here: "+diff)
		return false
	}
	return true
}

func (w *walk) disagree(s *step, diff string) {
	if w.disagreed++; w.disagreed <= 5 {
		rd, rn, rm, ra := s.word.rd(), s.word.rn(), s.word.rm(), s.word.ra()
		v := &s.before.Vector.V
		w.t.Errorf("%s %08x at %#x:%s\nbefore: nzcv %x, x%d %#x, x%d %#x; v%d %x, v%d %x, v%d %x, v%d %x", mnemonic(s.word), uint32(s.word), s.before.PC, diff,
			s.before.NZCV>>flagShift, rn, general(&s.before, rn), rm, general(&s.before, rm), rd, v[rd], rn, v[rn], rm, v[rm], ra, v[ra])
	}
}

func general(r *Regs, n uint8) uint64 {
	if n == 31 {
		return r.SP
	}
	return r.X[n]
}

func compareGeneral(mine, native *Regs) (diff string) {
	for i, x := range mine.X {
		if native.X[i] != x {
			diff += fmt.Sprintf(" x%d %#x, QEMU %#x;", i, x, native.X[i])
		}
	}
	if mine.SP != native.SP {
		diff += fmt.Sprintf(" sp %#x, QEMU %#x;", mine.SP, native.SP)
	}
	if mine.PC != native.PC {
		diff += fmt.Sprintf(" pc %#x, QEMU %#x;", mine.PC, native.PC)
	}
	if mine.NZCV != native.NZCV {
		diff += fmt.Sprintf(" nzcv %x, QEMU %x;", mine.NZCV>>flagShift, native.NZCV>>flagShift)
	}
	return diff
}

// compareAll compares the state that the interpreter is in with native.
func (w *walk) compareAll(mine *Regs) string {
	diff := compareGeneral(mine, &w.native)
	for i, v := range mine.Vector.V {
		if w.native.Vector.V[i] != v {
			diff += fmt.Sprintf(" v%d %x, QEMU %x;", i, v, w.native.Vector.V[i])
		}
	}
	if mine.Vector.FPCR != w.native.Vector.FPCR {
		diff += fmt.Sprintf(" fpcr %#x, QEMU %#x;", mine.Vector.FPCR, w.native.Vector.FPCR)
	}
	if !w.m.exLost && mine.Vector.FPSR != w.native.Vector.FPSR {
		diff += fmt.Sprintf(" fpsr %#x, QEMU %#x;", mine.Vector.FPSR, w.native.Vector.FPSR)
	}
	if w.tpidr != 0 && mine.TPIDR != w.native.TPIDR {
		diff += fmt.Sprintf(" tpidr %#x, QEMU %#x;", mine.TPIDR, w.native.TPIDR)
	}
	return diff
}

// exclusive runs from a load-exclusive to behind the store: by steps the store would
// never be made, as each stop clears the monitor. It returns false where QEMU and
// the interpreter part.
func (w *walk) exclusive() bool {
	var r, before Regs
	w.m.Regs(&before)
	s := step{before: before, word: w.wordAt(before.PC)}
	n := 0
	for n == 0 || n < 64 && w.m.exclusiveSize != 0 {
		if end := w.m.Run(interp.Limit{Accesses: 1 << 30, Instructions: 1}); end.Cause != interp.InstructionLimit {
			w.signalled(w.ask("s"))
			w.all(&w.native)
			return false
		}
		for _, a := range w.m.Accesses() {
			if a.Store {
				b := make([]byte, a.Size)
				w.m.mem.Read(a.Addr, b)
				s.stores, s.bytes = append(s.stores, a), append(s.bytes, b)
			}
		}
		n++
	}
	w.m.Regs(&r)
	point := fmt.Sprintf("0,%x,4", r.PC)
	a := w.askAll([]string{"Z" + point, "c"}, []string{"z" + point})
	if a == nil || w.signalled(a[1]) || !w.all(&w.native) {
		return false
	}
	diff := w.compareAll(&r)
	for i, b := range s.bytes {
		have, _ := hex.DecodeString(w.ask(fmt.Sprintf("m%x,%x", s.stores[i].Addr, len(b))))
		if !bytes.Equal(have, b) {
			diff += fmt.Sprintf(" store to %#x: % x, QEMU % x;", s.stores[i].Addr, b, have)
		}
	}
	if diff != "" {
		w.disagree(&s, diff)
		return false
	}
	w.compared += n
	w.stores += len(s.bytes)
	w.exclusives++
	return true
}

// stretch runs about n instructions at once and compares all registers and all
// memory that was written at the end. It returns false if the program has ended.
func (w *walk) stretch(n int) bool {
	if !w.all(&w.native) {
		return false
	}
	r := w.native
	r.DCZID = 4
	w.m.Start(&r, w.stub)
	visited, written := map[uint64]bool{}, map[uint64]bool{}
	done := 0
	for ; ; done++ {
		// QEMU is to stop where the program has not been before.
		seen := visited[w.m.next]
		if done >= n && !seen {
			break
		}
		visited[w.m.next] = true
		end := w.m.Run(interp.Limit{Accesses: 1 << 30, Instructions: 1})
		if end.Cause != interp.InstructionLimit && !seen {
			break
		}
		if end.Cause != interp.InstructionLimit || done > 2*n {
			return true
		}
		for _, a := range w.m.Accesses() {
			if a.Store {
				written[a.Addr/pageSize] = true
				written[(a.Addr+uint64(a.Size)-1)/pageSize] = true
			}
		}
	}
	if done == 0 {
		return true
	}
	start := r.PC
	w.m.Regs(&r)
	point := fmt.Sprintf("0,%x,4", r.PC)
	a := w.askAll([]string{"Z" + point, "c"}, []string{"z" + point})
	if a == nil || !w.all(&w.native) {
		return false
	}
	if w.signalled(a[1]) {
		return true
	}
	diff := w.compareAll(&r)
	for num := range written {
		var have, want [pageSize]byte
		if err := w.ReadPage(num*pageSize, &want); err != nil {
			diff += err.Error()
		}
		have = want
		if w.m.Overlay(num*pageSize, have[:]); have != want {
			diff += fmt.Sprintf(" page %#x differs;", num*pageSize)
		}
	}
	if diff != "" {
		w.disagreed++
		w.t.Errorf("%d instructions from %#x on:%s", done, start, diff)
		return true
	}
	w.stretched += done
	w.pages += len(written)
	return true
}

// away lets the program run for d. It returns false if it has ended.
func (w *walk) away(d time.Duration) bool {
	timer := time.AfterFunc(d, func() { _ = w.cmd.Process.Signal(syscall.SIGUSR1) })
	defer timer.Stop()
	for {
		resume := "c"
		if w.signal != "" {
			resume = "C" + w.signal
		}
		w.signal = ""
		if a := w.ask(resume); w.dead || !w.signalled(a) {
			return !w.dead
		}
		if w.signal == ours {
			w.signal = ""
			return true
		}
	}
}

// Signals by GDB's numbers.
const (
	ours  = "1e" // SIGUSR1
	alarm = "0e"
)

// signalled says whether it was a signal from outside that stopped the program, which
// away delivers.
func (w *walk) signalled(stop string) bool {
	if len(stop) < 3 || stop[1:3] != ours && stop[1:3] != alarm {
		return false
	}
	w.signal = stop[1:3]
	return true
}

const pythonWork = `
import json, re, math, random, zlib
random.seed(1)
d = {}
for n in range(10**7):
    s = "%d %x %f" % (n, n * 7919, math.sin(n) * n)
    d[s[:5]] = d.get(s[:5], 0) + len(re.findall(r"[0-9]+", s))
    if n % 50 == 0:
        json.loads(json.dumps({"a": s, "b": [n, n / 3, str(n)]})); zlib.crc32(s.encode() * 20)
        sorted(random.random() for _ in range(100)); 3 ** (n % 200) // 7; round(n / 7, 3); float(s.split()[0] + "e-5")
`

const sqlWork = `
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, printf('%x-%d', i * 7919 % 10007, i), i / 3.0 from n;
create index tb on t(b);
select count(*), avg(c), max(length(b)) from t where b like '%a%' group by a % 17 order by 2 desc;
select x.b, y.b from t x join t y on x.a = y.a * 3 where x.c > y.c order by x.b limit 10;
update t set c = c * 1.5 where a % 3 = 0;
select sum(c), group_concat(substr(b, 1, 2)) from (select * from t order by b desc limit 50000);
`

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
	for text.Len() < 1<<20 {
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

// programs are command lines under root, by name.
func programs(t testing.TB, root string, rnd *rand.Rand) map[string][]string {
	text := input(t, rnd)
	return map[string][]string{
		"xz":      {root + "/usr/bin/xz", "-T1", "-c", text},
		"gzip":    {root + "/bin/gzip", "-c", text},
		"bzip2":   {root + "/bin/bzip2", "-c", text},
		"zstd":    {root + "/usr/bin/zstd", "--single-thread", "--no-asyncio", "-c", text},
		"mawk":    {root + "/usr/bin/mawk", `{ for (i = 1; i <= NF; i++) n[$i]++; s += sin(NR) * sqrt(NR); gsub(/a+/, "b"); x = x substr($0, 1, 3) } END { for (w in n) printf "%s %d %.3f\n", w, n[w], s }`, text},
		"perl":    {root + "/usr/bin/perl", "-e", "for $i (1..1e8) { $h{$i % 1000} .= chr($i % 256); $h{$i % 1000} =~ s/a+/b/ if $i % 10 == 0; $s += sqrt($i) * sin($i); $t .= sprintf('%.5g', $s) }"},
		"python3": {root + "/usr/bin/python3.11", "-S", "-c", pythonWork},
		"sqlite3": {root + "/usr/bin/sqlite3", ":memory:", sqlWork},
		"openssl": {root + "/usr/bin/openssl", "speed", "-seconds", "1", "sha256", "aes-128-cbc", "ghash", "sha1", "rsa2048", "ecdsap256", "md5"},
	}
}

// testCPU is the CPU for QEMU to emulate.
func testCPU() string {
	if s := os.Getenv("RDX_CPU"); s != "" {
		return s
	}
	return "neoverse-n1" // no SVE
}

// long says whether tests are to take minutes.
func long() bool { return os.Getenv("RDX_LONG") != "" }

// debian is where the programs are, which testdata/programs.sh fetches once.
func debian(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("testdata/programs.sh").Output()
	if err != nil {
		why := ""
		if e, ok := err.(*exec.ExitError); ok {
			why = string(e.Stderr)
		}
		t.Skipf("needs arm64 programs of Debian: %v %s", err, why)
	}
	return strings.TrimSpace(string(out))
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestPrograms has QEMU's emulator run real programs a step at a time, in windows spread
// over the run, and compares all registers and what every store left in memory with
// the interpreter; and between the windows stretches of some thousand instructions,
// which are compared at their ends. RDX_LONG=1 takes RDX_PROGRAM_TIME for each program, a minute if
// that is not set; RDX_CPU is another CPU for QEMU.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	rnd := seeded(t)
	each, length := 1500*time.Millisecond, 800
	if long() {
		each, length = time.Minute, 4000
		if s := os.Getenv("RDX_PROGRAM_TIME"); s != "" {
			each, _ = time.ParseDuration(s)
		}
	}
	cpu := testCPU()
	root := debian(t)
	all := programs(t, root, rnd)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	m := New()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			w := &walk{t: t, m: m, unsupported: map[string]int{}}
			// Some windows at least, however busy the machine is.
			windows, starts := 0, 0
			deadline := time.Now().Add(each)
			more := func() bool {
				return w.disagreed < 10 && (time.Now().Before(deadline) || windows < 6 && starts < 10)
			}
			for ; more(); starts++ {
				w.stub = startStub(t, cpu, root, all[name]...)
				for more() && w.window(length) {
					windows++
					if !w.away(time.Duration(rnd.Int64N(int64(40*time.Millisecond)))) || !w.stretch(rnd.IntN(5*length)) {
						break
					}
					if !w.away(time.Duration(rnd.Int64N(int64(40 * time.Millisecond)))) {
						break
					}
				}
				w.kill()
			}
			total := w.compared
			var ops []string
			for op, n := range w.unsupported {
				total += n
				ops = append(ops, op)
			}
			sort.Slice(ops, func(i, j int) bool { return w.unsupported[ops[i]] > w.unsupported[ops[j]] })
			for i, op := range ops {
				ops[i] = fmt.Sprintf("%s %d", op, w.unsupported[op])
			}
			share := 100 * float64(w.compared) / float64(max(total, 1))
			t.Logf("%d instructions and %d stores in %d windows compared, %d more and %d pages at the ends of stretches, %d disagree; %.4f %% supported, not: %v; %d system calls, %d pairs of exclusives",
				w.compared, w.stores, windows, w.stretched, w.pages, w.disagreed, share, ops[:min(len(ops), 12)], w.syscalls, w.exclusives)
			if share < 99 {
				t.Errorf("%.2f %% of the instructions are supported", share)
			}
			if w.compared < 1000 {
				t.Errorf("%d instructions were compared", w.compared)
			}
		})
	}
}

// TestSignals has signals come at any instant of the comparison: what they end is not
// taken for a disagreement. One that comes while QEMU waits for a packet ends the
// connection, as QEMU takes EINTR for its end: then the program is started anew.
func TestSignals(t *testing.T) {
	rnd := seeded(t)
	root := debian(t)
	program := programs(t, root, rnd)["gzip"]
	w := &walk{t: t, m: New(), unsupported: map[string]int{}}
	sent, seen, starts := 0, 0, 0
	deadline := time.Now().Add(time.Minute)
	more := func() bool {
		return (seen < 600 || w.compared < 1000) && w.disagreed == 0 && time.Now().Before(deadline)
	}
	for ; more(); starts++ {
		w.stub = startStub(t, testCPU(), root, program...)
		stop := signalOften(w.cmd.Process, rnd)
		for more() && w.window(800) {
			if w.signal != "" {
				w.signal = ""
				seen++
			}
		}
		sent += stop()
		w.kill()
		w.signal = ""
	}
	t.Logf("%d instructions compared, %d signals sent, %d of them between steps, %d in a step; %d times started", w.compared, sent, seen-w.stalls, w.stalls, starts)
	if seen < 600 || w.compared < 1000 {
		t.Errorf("%d signals came in %d instructions", seen, w.compared)
	}
}

// signalOften sends a process a signal every 3 ms, on average, until it is told to stop,
// and says how many then.
func signalOften(p *os.Process, rnd *rand.Rand) (stop func() int) {
	done, stopped := make(chan struct{}), make(chan int)
	go func() {
		sent := 0
		for {
			select {
			case <-done:
				stopped <- sent
				return
			case <-time.After(time.Duration(rnd.Int64N(int64(6 * time.Millisecond)))):
				_ = p.Signal(syscall.SIGUSR1)
				sent++
			}
		}
	}()
	return func() int { close(done); return <-stopped }
}
