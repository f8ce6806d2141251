// Command overhead measures what rdx costs the programs it profiles: wall time
// with and without it, in interleaved pairs, on CPU-bound programs.
//
// Needs root, bpf, watchpoints, xz, sqlite3, gzip and gcc. It prints the medians of
// the pairs' ratios: of the time that the program itself took from its start to
// its end, with the spread, beside that of a second run without rdx, which is
// what the machine's own unrest makes of nothing; of the wall time of the whole command, in which rdx
// starts up before and finds symbols after; and of the CPU time of both. And the
// profile's own account: how long threads were held, how long attaching and
// detaching took, the share it cost, and the profiler's memory.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

func main() {
	rdx := flag.String("rdx", "./rdx", "rdx to measure")
	pairs := flag.Int("pairs", 0, "interleaved runs of each kind a program: bare, with rdx, bare again; 6 if left out, with -threads 3")
	stacks := flag.String("stacks", "own,both", "with -threads, each --stack to measure, separated by commas")
	seconds := flag.Int("seconds", 6, "with -threads, how long a program is to run on two fast processors, about: below 4 they differ too much")
	extra := flag.String("flags", "", "more flags for rdx run, separated by spaces")
	only := flag.String("only", "", "only the program of this name")
	threads := flag.Bool("threads", false, "measure programs of two threads instead, with each --stack; with -windows with --stack both")
	windows := flag.Int("windows", 0, "measure within one run of each program that tells its progress, in so many windows of two seconds with rdx attached")
	flag.Parse()
	if *pairs == 0 {
		*pairs = 6
		if *threads {
			*pairs = 3
		}
	}
	if *pairs < 1 || *seconds < 1 {
		fmt.Fprintln(os.Stderr, "overhead: -pairs and -seconds are at least 1")
		os.Exit(2)
	}
	m := measurement{rdx: *rdx, pairs: *pairs, windows: *windows, threads: *threads, seconds: *seconds, stacks: strings.Split(*stacks, ","), extra: strings.Fields(*extra), only: *only}
	if err := m.run(); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// measurement is what the flags ask for.
type measurement struct {
	rdx            string
	pairs, windows int
	threads        bool
	seconds        int      // of a program of two threads
	stacks         []string // of those
	extra          []string // flags
	only           string
}

type program struct {
	name  string
	argv  []string
	flags []string // of rdx's, for it
}

// programs prepares some that run about ten seconds and more.
func programs(dir string) ([]program, error) {
	// Data of a fixed kind: text that compresses like text does.
	data := filepath.Join(dir, "data")
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 5000)
	for i := range words {
		b := make([]byte, 2+r.IntN(9))
		for j := range b {
			b[j] = byte('a' + r.IntN(26))
		}
		words[i] = string(b)
	}
	var text bytes.Buffer
	for text.Len() < 15<<20 {
		text.WriteString(words[int(float64(len(words))*r.Float64()*r.Float64())])
		text.WriteByte(' ')
	}
	if err := os.WriteFile(data, text.Bytes(), 0o644); err != nil {
		return nil, err
	}
	matmul := filepath.Join(dir, "matmul")
	if out, err := exec.Command("gcc", "-O1", "-fno-omit-frame-pointer", "-o", matmul, "demo/matmul.c").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile matmul: %w: %s", err, out)
	}
	const query = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1500000)
		SELECT count(*), sum(h) FROM (SELECT (i * 2654435761) % 1000003 AS h, count(*) FROM n GROUP BY h ORDER BY h);`
	return []program{
		{name: "xz -6", argv: []string{"xz", "-6", "-T1", "-k", "-c", data}},
		{name: "sqlite3", argv: []string{"sqlite3", ":memory:", strings.Repeat(query, 16)}},
		{name: "matmul", argv: []string{matmul, "good", "40"}},
		{name: "gzip -6", argv: append([]string{"gzip", "-6", "-c"}, slices.Repeat([]string{data}, 32)...)},
	}, nil
}

// threaded are programs of two threads at work for so many seconds, about, once for each --stack.
func threaded(dir string, seconds int, stacks []string) ([]program, error) {
	small, lines := filepath.Join(dir, "small"), filepath.Join(dir, "lines")
	text, err := os.ReadFile(filepath.Join(dir, "data"))
	if err == nil {
		err = os.WriteFile(small, text[:4<<20], 0o644) // a second of xz's time
	}
	if err == nil {
		err = os.WriteFile(lines, bytes.Repeat(bytes.ReplaceAll(text, []byte(" "), []byte("\n")), seconds), 0o644)
	}
	if err != nil {
		return nil, err
	}
	var out []program
	for _, p := range []program{
		// Its workers block all signals.
		{"xz -T2", append([]string{"xz", "-3", "-T2", "--block-size=2MiB", "-k", "-c"}, slices.Repeat([]string{small}, seconds)...), []string{"--interrupt"}},
		{"sort", []string{"env", "LC_ALL=C", "sort", "--parallel=2", "-S", "3G", "-o", "/dev/null", lines}, nil},
	} {
		for _, stack := range stacks {
			out = append(out, program{p.name + " " + stack, p.argv, append([]string{"--stack", stack}, p.flags...)})
		}
	}
	return out, nil
}

// longThreaded are programs of two threads at work that do the same again and again, all with --stack
// both, and with input as that of bench/sharing.
func longThreaded(dir string) ([]program, error) {
	const data = "small" // in the folder that it runs in: it is named very often
	text, err := os.ReadFile(filepath.Join(dir, "data"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, data), text[:4<<20], 0o644)
	}
	if err != nil {
		return nil, err
	}
	again := func(words string, files int) []string {
		return append(strings.Fields(words), slices.Repeat([]string{data}, files)...)
	}
	flags := []string{"--stack", "both"}
	return []program{
		{"zstd -T2", again("zstd -T2 -B512KB -q -c", 20_000), flags},
		{"pigz -p 2", again("pigz -p 2 -c", 10_000), flags},
		{"xz -T2", again("xz -0 -T2 --block-size=2MiB -k -c", 4_000), append(flags, "--interrupt")},
	}, nil
}

// long programs run for many minutes and tell their progress by what they read
// and write.
func long(dir string) ([]program, error) {
	data := filepath.Join(dir, "data")
	const query = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000)
		SELECT count(*), sum(h) FROM (SELECT (i * 2654435761) % 1000003 AS h, count(*) FROM n GROUP BY h ORDER BY h);`
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, bytes.Repeat([]byte(strings.ReplaceAll(query, "\n", " ")+"\n"), 50_000), 0o644); err != nil {
		return nil, err
	}
	return []program{
		// One stream, longer than xz looks back, goes on at one pace.
		{name: "xz -6", argv: []string{"bash", "-c", `exec xz -6 -T1 -c < <(while cat "$0"; do :; done)`, data}},
		{name: "sqlite3", argv: []string{"sh", "-c", "exec sqlite3 :memory: <" + script}},
		{name: "gzip -6", argv: []string{"sh", "-c", "exec gzip -6 -c " + strings.Repeat(data+" ", 1000)}},
	}, nil
}

func (m *measurement) run() error {
	dir, err := os.MkdirTemp("", "overhead")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ps, err := programs(dir)
	if err != nil {
		return err
	}
	if m.threads {
		if ps, err = threaded(dir, m.seconds, m.stacks); err != nil {
			return err
		}
	}
	if m.windows > 0 {
		prepare := long
		if m.threads {
			prepare = longThreaded
		}
		ps, err := prepare(dir)
		if err != nil {
			return err
		}
		for _, p := range ps {
			if m.only == "" || m.only == p.name {
				if err := within(m.rdx, p, m.windows, 2*time.Second, m.extra, dir); err != nil {
					return err
				}
			}
		}
		return nil
	}
	profile := filepath.Join(dir, "p.pb.gz")
	fmt.Printf("%-14s %6s %9s %19s %9s %19s %9s %9s %7s %6s  %s\n", "program", "bare", "program", "spread", "bare", "spread", "command", "CPU", "pairs", "lost", "by its own account")
	for _, p := range ps {
		if m.only != "" && p.name != m.only {
			continue
		}
		var bare, control, alone, wall, cpu []float64
		var n int64
		var lost float64
		var said string
		for i := range m.pairs {
			var a, b, again sample
			with := append(append([]string{m.rdx, "run", "-q", "-o", profile}, slices.Concat(m.extra, p.flags)...), append([]string{"--"}, p.argv...)...)
			// Each comes first, second and third as often.
			order := []func() error{
				func() (err error) { a, err = timed(p.argv); return },
				func() (err error) { b, err = timed(with); return },
				func() (err error) { again, err = timed(p.argv); return },
			}
			order = slices.Concat(order[i%3:], order[:i%3])
			for _, f := range order {
				if err := f(); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
			bare = append(bare, a.wall)
			control = append(control, again.wall/a.wall)
			wall = append(wall, b.wall/a.wall)
			cpu = append(cpu, b.cpu/a.cpu)
			var lasted float64
			if lasted, n, lost, said, err = read(profile); err != nil {
				return err
			}
			alone = append(alone, lasted/a.wall)
			fmt.Fprintf(os.Stderr, "%s, %d of %d: %.1f s bare, %.1f with rdx, %.1f bare again\n", p.name, i+1, m.pairs, a.wall, lasted, again.wall)
		}
		fmt.Printf("%-14s %5.1fs %9.4f  [%.4f, %.4f] %9.4f  [%.4f, %.4f] %9.4f %9.4f %7d %5.2f%%  %s\n", p.name, median(bare), median(alone), slices.Min(alone), slices.Max(alone),
			median(control), slices.Min(control), slices.Max(control), median(wall), median(cpu), n, lost, said)
	}
	return nil
}

// sample of one run, in seconds.
type sample struct{ wall, cpu float64 }

func timed(argv []string) (sample, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("%s: %w", argv[0], err)
	}
	wall := time.Since(start).Seconds()
	return sample{wall, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}, nil
}

func read(path string) (seconds float64, pairs int64, lost float64, said string, err error) {
	p, err := pprofout.ReadFile(path)
	if err != nil {
		return 0, 0, 0, "", err
	}
	var all, gone int64
	for _, r := range p.Records {
		all += r.Observations
		if len(r.Reuse) > 0 {
			pairs += r.Observations
		}
	}
	for _, c := range p.Counts {
		if model.LostBecause.Has(c.Name) {
			gone += c.N
		}
	}
	var words []string
	for _, c := range p.Comments {
		for _, start := range []string{"thread held per sample: ", "attached to ", "overhead by the profiler's own account: ", "the profiler's own memory: "} {
			if rest, ok := strings.CutPrefix(c, start); ok {
				words = append(words, rest)
			}
		}
	}
	return p.Duration.Seconds(), pairs, 100 * float64(gone) / float64(max(all+gone, 1)), strings.Join(words, "; "), nil
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}
