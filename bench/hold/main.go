// Command hold prints what a hold takes: for a few programs how long threads are held, where that time goes, and how many
// holds 1 % of a CPU minute pays for, by the profiles' own accounts; with -before beside another rdx, by turns. With -redis
// it prints what requests to a redis server take, by turns with rdx and without. With -late it prints what it costs a
// profiler to learn of a sampled access late (late.go).
//
// Needs root, BPF, watchpoints, and the programs: xz, gzip, sqlite3, python3, redis-server.
package main

import (
	"errors"
	"flag"
	"fmt"
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
	n := flag.Int("n", 4_000_000, "with -late: accesses of each stream")
	samples := flag.Int("samples", 20_000, "with -late: of each stream")
	seed := flag.Uint64("seed", 1, "with -late: of all random choices")
	isLate := flag.Bool("late", false, "what it costs to learn of a sample late, simulated")
	latency := flag.Bool("redis", false, "what requests to redis take with rdx and without")
	b := bench{}
	flag.StringVar(&b.rdx, "rdx", "bin/rdx", "rdx to measure")
	flag.StringVar(&b.before, "before", "", "another rdx to measure beside it, by turns")
	flag.DurationVar(&b.lasts, "lasts", 3*time.Second, "each session, or with -redis each window")
	flag.IntVar(&b.rounds, "rounds", 3, "sessions of each rdx with each program, or with -redis windows")
	flag.StringVar(&b.overhead, "overhead", "10", "percent; that many holds are seen sooner")
	only := flag.String("only", "", "only these programs, separated by commas")
	flag.Parse()
	if *isLate && (*n < 2 || *samples < 1) || b.rounds < 1 || b.lasts <= 0 {
		fmt.Fprintln(os.Stderr, "hold: want at least 2 accesses, 1 sample, 1 round and a duration above 0")
		os.Exit(2)
	}
	if *isLate {
		late(*n, *samples, *seed)
		return
	}
	what := func() error { return b.table(strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })) }
	if *latency {
		what = b.redis
	}
	if err := what(); err != nil {
		fmt.Fprintln(os.Stderr, "hold:", err)
		os.Exit(1)
	}
}

type bench struct {
	rdx, before, overhead string
	lasts                 time.Duration
	rounds                int
	dir                   string
}

// program runs for minutes if it is let.
type program struct {
	name string
	args []string
}

func (b *bench) programs() ([]program, error) {
	in := filepath.Join(b.dir, "in")
	self, err := os.ReadFile(b.rdx) // something that is neither text nor random
	if err == nil {
		err = os.WriteFile(in, slices.Concat(self, self, self), 0o600)
	}
	sql := "with recursive n(i) as (select 1 union all select i+1 from n where i < 200000000) select count(distinct i*7919%100003), sum(i) from n"
	python := "d = {}\nfor i in range(10**9):\n    d[i*7919%200003] = d.get(i%50000, 0) + i\n"
	return []program{
		{"xz", []string{"xz", "-6", "-k", "-c", in}},
		{"gzip", []string{"gzip", "-9", "-c", in, in, in, in}},
		{"sqlite3", []string{"sqlite3", ":memory:", sql}},
		{"python3", []string{"python3", "-c", python}},
	}, err
}

// stages are the profile's, in its order.
type seen struct {
	held, held99, longest time.Duration
	perMinute             float64 // holds that 1 % of a CPU minute pays for
	stages                []string
}

func (b *bench) table(only []string) error {
	var err error
	if b.dir, err = os.MkdirTemp("", "rdx-hold"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	all, err := b.programs()
	if err != nil {
		return err
	}
	fmt.Println("| program | rdx | held p50 / p99 / longest, µs | holds a CPU minute at 1 % | of a hold, µs at the median / p99 |")
	fmt.Println("|---|---|---|---|---|")
	for _, p := range all {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		var of [2][]seen
		for range b.rounds {
			for i, rdx := range []string{b.rdx, b.before} {
				if rdx == "" {
					continue
				}
				s, err := b.session(rdx, p)
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				of[i] = append(of[i], s)
			}
		}
		for i, name := range []string{"this", "before"} {
			if len(of[i]) > 0 {
				row(p.name, name, of[i])
			}
		}
	}
	return nil
}

// row prints the medians of sessions, and the stages of the one whose holds were in the middle.
func row(name, rdx string, all []seen) {
	slices.SortFunc(all, func(a, b seen) int { return int(a.held - b.held) })
	mid := all[len(all)/2]
	longest := time.Duration(0)
	for _, s := range all {
		longest = max(longest, s.longest)
	}
	us := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/1e3) }
	fmt.Printf("| %s | %s | %s / %s / %s | %.0f | %s |\n", name, rdx, us(mid.held), us(mid.held99), us(longest), mid.perMinute, strings.Join(mid.stages, ", "))
}

// session has a program profiled, and reads the account.
func (b *bench) session(rdx string, p program) (seen, error) {
	cmd := exec.Command(p.args[0], p.args[1:]...)
	if err := cmd.Start(); err != nil {
		return seen{}, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	time.Sleep(300 * time.Millisecond) // it has begun
	out := filepath.Join(b.dir, "p.pb.gz")
	if said, err := exec.Command(rdx, "attach", fmt.Sprint(cmd.Process.Pid), "-q", "-d", b.lasts.String(), "--overhead", b.overhead, "-o", out).CombinedOutput(); err != nil {
		return seen{}, fmt.Errorf("%w: %s", err, said)
	}
	profile, err := pprofout.ReadFile(out)
	if err != nil {
		return seen{}, err
	}
	return account(profile.Comments, float64(profile.CountOf(model.Holds)), float64(profile.CountOf(model.CPUTarget)))
}

// account reads what a profile says of its holds.
func account(comments []string, holds, cpu float64) (s seen, err error) {
	spent := 0.0
	for _, c := range comments {
		if rest, ok := strings.CutPrefix(c, model.HeldFor); ok {
			for _, part := range strings.Split(rest, ", ") {
				what, value, _ := strings.Cut(part, " ")
				d, err := time.ParseDuration(value)
				if err != nil {
					return s, fmt.Errorf("%q: %w", c, err)
				}
				switch what {
				case "p50":
					s.held = d
				case "p99":
					s.held99 = d
				case "longest":
					s.longest = d
				}
			}
		}
		if rest, ok := strings.CutPrefix(c, model.Overhead); ok {
			if _, err := fmt.Sscanf(rest, "%f%%", &spent); err != nil {
				return s, fmt.Errorf("%q: %w", c, err)
			}
		}
		if rest, ok := strings.CutPrefix(c, "of a hold, µs at the median/p99: "); ok {
			s.stages = strings.Split(strings.ReplaceAll(rest, ";", ","), ", ")
		}
	}
	if s.held == 0 || spent == 0 || cpu == 0 {
		return s, errors.New("no hold in the account: a longer session (-lasts) or a larger budget (-overhead) is needed")
	}
	s.perMinute = holds / (cpu / 60e9) / spent
	return s, nil
}
