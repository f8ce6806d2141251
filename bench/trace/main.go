// Command trace measures the instrumented engine: slowdown against the bare
// program, accesses per second, bytes per access, with every way of storing,
// and lackey beside it.
//
// The variants run in turn, round after round, so that a busy moment of the
// machine does not fall on one of them alone; medians are printed.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rdx-profiler/rdx/trace"
)

func main() {
	rdx := flag.String("rdx", "bin/rdx", "the rdx to measure")
	rounds := flag.Int("rounds", 5, "runs of each variant")
	size := flag.Int("size", 4_000_000, "bytes of input to the first program")
	before := flag.String("before", "", "another rdx, to be measured in the same rounds")
	beforeEngine := flag.String("before-engine", "", "folder of its valgrind tool")
	only := flag.Bool("ratios", false, "only recording by the engine alone, and rdx exact by the program, in pairs")
	profiled := flag.Bool("profiles", false, "only rdx exact -o by rdx exact, in pairs")
	flag.Parse()
	if err := run(*rdx, recorder{*before, *beforeEngine}, *rounds, *size, *only, *profiled); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// cost of one run.
type cost struct{ wall, cpu time.Duration }

// variant is one way to run the program.
type variant struct {
	name  string
	args  func(program []string) []string
	costs []cost
}

func measure(args []string, launcher string) (cost, error) {
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), "VALGRIND_LAUNCHER="+launcher)
	var errout strings.Builder
	c.Stderr = &errout
	start := time.Now()
	if err := c.Run(); err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, errout.String())
	}
	return cost{time.Since(start), c.ProcessState.UserTime() + c.ProcessState.SystemTime()}, nil
}

func median(cs []cost, f func(cost) time.Duration) float64 {
	ds := make([]float64, len(cs))
	for i, c := range cs {
		ds[i] = f(c).Seconds()
	}
	slices.Sort(ds)
	return ds[len(ds)/2]
}

func least(cs []cost, f func(cost) time.Duration) float64 {
	return f(slices.MinFunc(cs, func(a, b cost) int { return cmp.Compare(f(a), f(b)) })).Seconds()
}

func wall(c cost) time.Duration { return c.wall }
func cpu(c cost) time.Duration  { return c.cpu }

// text is compressible, and the same every time.
func text(w io.Writer, n int) error {
	rng := rand.New(rand.NewSource(1))
	words := make([]string, 3000)
	for i := range words {
		b := make([]byte, 2+rng.Intn(9))
		for j := range b {
			b[j] = byte('a' + rng.Intn(26))
		}
		words[i] = string(b)
	}
	for n > 0 {
		z := int(rng.ExpFloat64() * 300)
		k, err := fmt.Fprintf(w, "%s %d%c", words[z%len(words)], rng.Intn(1000), " \n"[z%7/6])
		if err != nil {
			return err
		}
		n -= k
	}
	return nil
}

func run(rdx string, before recorder, rounds, size int, only, profiled bool) error {
	engine, err := trace.FindEngine()
	if err != nil {
		return err
	}
	launcher, err := exec.LookPath("valgrind.bin")
	if err != nil {
		if launcher, err = exec.LookPath("valgrind"); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	input := func(name string, n int) string {
		p := filepath.Join(dir, name)
		f, ferr := os.Create(p)
		if ferr != nil {
			err = ferr
			return p
		}
		defer f.Close()
		if terr := text(f, n); terr != nil {
			err = terr
		}
		return p
	}
	big, mid, small := input("big", size), input("mid", size/4), input("small", 50_000)
	if err != nil {
		return err
	}
	rdt := filepath.Join(dir, "t.rdt")
	this := recorder{rdx, engine}
	allRegisters := []string{"--px-default=allregs-at-each-insn", "--px-file-backed=allregs-at-each-insn"}
	if profiled {
		return profiles(this, before, launcher, big, mid, filepath.Join(dir, "p.pb.gz"), rounds)
	}
	if only {
		return ratios(this, before, launcher, big, mid, rdt, append(allRegisters, "--rdx-store="+string(trace.StoreGuarded)), rounds)
	}
	bare := variant{name: "bare", args: func(p []string) []string { return p }}
	none := variant{name: "valgrind --tool=none", args: func(p []string) []string {
		return append([]string{filepath.Join(engine, "none-amd64-linux"), "-q", "--tool=none", "--vgdb=no", "--log-file=/dev/null"}, p...)
	}}
	vs := []*variant{&bare, &none}
	for _, s := range []trace.Store{trace.StoreCheckEach, trace.StoreCheck, trace.StoreGuarded} {
		vs = append(vs, &variant{name: "engine, fast, store " + string(s), args: this.alone("--rdx-store=" + string(s))})
	}
	for _, s := range []trace.Store{trace.StoreCheckEach, trace.StoreCheck, trace.StoreGuarded} {
		vs = append(vs, &variant{name: "engine, store " + string(s), args: this.alone(append(allRegisters, "--rdx-store="+string(s))...)})
	}
	alone := vs[len(vs)-1]
	recorded := &variant{name: "rdx trace record", args: this.record(rdt)}
	vs = append(vs, &variant{name: "rdx trace record --fast", args: this.record(rdt, "--fast")})
	if before.rdx != "" {
		vs = append(vs, &variant{name: "engine before", args: before.alone(append(allRegisters, "--rdx-store="+string(trace.StoreGuarded))...)},
			&variant{name: "rdx trace record before", args: before.record(rdt)})
	}
	vs = append(vs, recorded) // the last, whose recording is looked at

	fmt.Printf("%d processors, %d rounds\n\n", runtime.NumCPU(), rounds)
	gzip := []string{"/bin/gzip", "-6", "-c", big}
	for range rounds {
		for _, v := range vs {
			c, err := measure(v.args(gzip), launcher)
			if err != nil {
				return err
			}
			v.costs = append(v.costs, c)
		}
	}
	n, _, err := sizeOf(rdt)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "gzip -6, %d bytes, %d accesses\twall s\tleast\tslowdown\tCPU s\tslowdown\tM accesses/s\t\n", size, n)
	for _, v := range vs {
		w, c := median(v.costs, wall), median(v.costs, cpu)
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.2f\t%.3f\t%.2f\t%.0f\t\n", v.name, w, least(v.costs, wall), w/median(bare.costs, wall), c, c/median(bare.costs, cpu), float64(n)/w/1e6)
	}
	t.Flush()
	fmt.Printf("recording over the engine alone: %+.0f %% wall\n\n", 100*(median(recorded.costs, wall)/median(alone.costs, wall)-1))

	if err := live(this, before, launcher, mid, rounds); err != nil {
		return err
	}
	if err := lackey(engine, launcher, this.record(rdt), rdt, small, rounds); err != nil {
		return err
	}
	return programs(t, this, launcher, big, mid, small, rdt, rounds)
}

// programs is how much recording slows programs down, and how large their recordings are.
func programs(t *tabwriter.Writer, this recorder, launcher, big, mid, small, rdt string, rounds int) error {
	fmt.Fprintf(t, "recorded\taccesses\tbytes per access\tbare s\trecorded s\tslowdown\tM accesses/s\t\n")
	for _, p := range [][]string{
		{"/bin/gzip", "-6", "-c", mid},
		{"/bin/bzip2", "-c", small},
		{"/usr/bin/xz", "-3", "-T1", "-c", mid},
		{"/usr/bin/sort", "--parallel=1", mid},
		{"/bin/sed", "s/a/b/g", mid},
		{"/usr/bin/awk", "{ n[$1]++ } END { for (k in n) print k, n[k] }", mid},
		{"/usr/bin/md5sum", big},
		{"/usr/bin/perl", "-ne", "$h{$_}++ for split; END { print scalar keys %h }", mid},
		{"/usr/bin/python3", "-c", "print(sum(i * i % 7 for i in range(200000)))"},
	} {
		if _, err := os.Stat(p[0]); err != nil {
			fmt.Fprintf(t, "%s: not installed\t\t\t\t\t\t\t\n", p[0])
			continue
		}
		var plain, rec []cost
		for range (rounds + 1) / 2 {
			c, err := measure(p, launcher)
			if err != nil {
				return err
			}
			plain = append(plain, c)
			if c, err = measure(this.record(rdt)(p), launcher); err != nil {
				return err
			}
			rec = append(rec, c)
		}
		n, bytes, err := sizeOf(rdt)
		if err != nil {
			return err
		}
		b, w := median(plain, wall), median(rec, wall)
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.3f\t%.3f\t%.1f\t%.0f\t\n", filepath.Base(p[0]), n, float64(bytes)/float64(n), b, w, w/b, float64(n)/w/1e6)
	}
	return t.Flush()
}

// live is the analysis of a program that runs.
func live(this, before recorder, launcher, input string, rounds int) error {
	gzip := []string{"/bin/gzip", "-6", "-c", input}
	vs := []*variant{
		{name: "bare", args: func(p []string) []string { return p }},
		{name: "rdx exact", args: this.exact()},
		{name: "rdx exact --log2", args: this.exact("--log2")},
		{name: "rdx exact --sampled 1e-4", args: this.exact("--sampled", "1e-4")},
		{name: "rdx exact --sampled 1e-6", args: this.exact("--sampled", "1e-6")},
	}
	if before.rdx != "" {
		vs = append(vs, &variant{name: "rdx exact before", args: before.exact()}, &variant{name: "rdx exact --log2 before", args: before.exact("--log2")})
	}
	for range rounds {
		for _, v := range vs {
			c, err := measure(v.args(gzip), launcher)
			if err != nil {
				return err
			}
			v.costs = append(v.costs, c)
		}
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "analysed while it runs\twall s\tleast\tslowdown\tCPU s\tslowdown\t\n")
	for _, v := range vs {
		w, c := median(v.costs, wall), median(v.costs, cpu)
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.1f\t%.3f\t%.1f\t\n", v.name, w, least(v.costs, wall), w/median(vs[0].costs, wall), c, c/median(vs[0].costs, cpu))
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// lackey runs on a small input: it writes 58 bytes of text per access.
func lackey(engine, launcher string, record func([]string) []string, rdt, input string, rounds int) error {
	p := []string{"/bin/gzip", "-6", "-c", input}
	var plain, rec, lack []cost
	for range rounds {
		for _, v := range []struct {
			to   *[]cost
			args []string
		}{
			{&plain, p}, {&rec, record(p)},
			{&lack, append([]string{filepath.Join(engine, "lackey-amd64-linux"), "--tool=lackey", "--trace-mem=yes", "--vgdb=no", "--log-file=/dev/null"}, p...)},
		} {
			c, err := measure(v.args, launcher)
			if err != nil {
				return err
			}
			*v.to = append(*v.to, c)
		}
	}
	n, _, err := sizeOf(rdt)
	if err != nil {
		return err
	}
	b, r, l := median(plain, wall), median(rec, wall), median(lack, wall)
	fmt.Printf("gzip -6 of a small file, %d accesses: bare %.4f s, rdx trace record %.3f s (start included), lackey --trace-mem into /dev/null %.2f s: %.1f M accesses/s, %.0fx\n\n",
		n, b, r, l, float64(n)/l/1e6, l/b)
	return nil
}

func sizeOf(rdt string) (accesses uint64, bytes int64, err error) {
	f, err := trace.OpenFile(rdt)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if p := f.Summary().Partial; len(p) > 0 {
		return 0, 0, fmt.Errorf("a recording is partial: %v", p)
	}
	st, err := os.Stat(rdt)
	if err != nil {
		return 0, 0, err
	}
	return f.Summary().Accesses, st.Size(), nil
}
