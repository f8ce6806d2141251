// Command accuracy scores live profiles without a PMU against the exact answer
// on real programs from Debian, and prints the table of docs/explanation/accuracy.md.
//
// Needs root, bpf, watchpoints, the instrumentation engine (make engine) and
// the programs. Each program does the same work again and again in one
// process: a few times under the exact engine, for a minute live. The
// exact answer by lines is also taken for half as many times: how much the two
// differ bounds what the lengths of the runs have to do with the score. Exact profiles
// are kept in the work directory, by what made them.
package main

import (
	"crypto/sha256"
	"encoding/json"
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
	b := bench{}
	flag.StringVar(&b.rdx, "rdx", "bin/rdx", "rdx to measure")
	flag.StringVar(&b.dir, "dir", "", "work directory, kept; exact profiles are used again (default: a temporary one)")
	flag.IntVar(&b.pairs, "pairs", 1, "profiled runs a program, each between two bare ones of half its work; 0: a profiled one alone")
	flag.Float64Var(&b.length, "length", 1, "factor on the length of the live runs, about a minute")
	extra := flag.String("flags", "", "more flags for rdx run, separated by spaces")
	only := flag.String("only", "", "only the programs whose names begin with one of these, separated by commas")
	blocks := flag.String("blocks", "word,line", "granularities")
	flag.StringVar(&b.caches, "caches", "16k,32k,256k,1m", "whose misses are compared by place")
	judge := flag.String("judge", "kernels,programs", "whose miss ratios are judged: kernels, programs; scores: the whole distributions' scores, as well; coverage: how often bands hold, by simulation (-judge coverage,kernels,programs)")
	flag.IntVar(&b.sim.repetitions, "repetitions", 1000, "simulated sessions of each stream and setting")
	flag.IntVar(&b.sim.skip, "skip", 40_000_000, "touches of lines that are left out before a stream")
	flag.IntVar(&b.sim.long, "touches", 20_000_000, "touches of lines in a stream")
	settings := flag.String("settings", "", "only these simulated settings, by their names, separated by semicolons")
	sessions := flag.Int("sessions", 1, "sessions of each program whose miss ratios are judged")
	wall := flag.Duration("wall", 60*time.Second, "how long each lasts")
	steps := flag.String("steps", "exact,live", "what to do: exact, live")
	flag.Parse()
	b.extra, b.only = strings.Fields(*extra), strings.Split(*only, ",")
	for _, c := range simulated {
		if *settings == "" || slices.Contains(strings.Split(*settings, ";"), c.String()) {
			b.sim.settings = append(b.sim.settings, c)
		}
	}
	err := b.prepare()
	if err == nil {
		err = b.judge(*judge, *sessions, *wall)
	}
	if err == nil && strings.Contains(*judge, "scores") {
		err = b.run(strings.Split(*blocks, ","), *steps)
	}
	if b.made {
		os.RemoveAll(b.dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

type bench struct {
	rdx, dir    string
	made        bool // dir is temporary
	pairs       int
	length      float64
	extra, only []string
	caches      string
	sim         simulation
}

// A result is a row of the table.
type result struct {
	program, block string
	scores         comparison
	drift          float64   // l2 between the exact answers of two lengths
	overhead       []float64 // ratios of times with and without
	lasted, cpu    time.Duration
	holds          int64
	said           string // overhead by rdx's own account
}

// comparison is of rdx compare --format json.
type comparison struct {
	Scores scores `json:"scores"`
	Rate   struct {
		Live   float64 `json:"live"`
		True   float64 `json:"true"`
		Error  float64 `json:"error"`
		AtTrue scores  `json:"scores_at_true_rate"`
	} `json:"access_rate"`
	Pairs struct {
		Match float64 `json:"weight_matched"`
	} `json:"pairs"`
	Live struct {
		Observations int64 `json:"observations"`
	} `json:"live"`
	PlaceScores []placeScores `json:"places"`
	NotReused   [2]float64    `json:"never_reused"`
	Cut         float64       `json:"live_cut_off"`
	Lost        float64       `json:"live_lost"`
}

// placeScores are as of rdx compare: for a cache and a share of its misses.
type placeScores struct {
	Cache     int64   `json:"cache_bytes"`
	Ratio     float64 `json:"miss_ratio"`
	Cover     float64 `json:"cover"`
	NumPlaces int     `json:"places"`
	All       int     `json:"places_in_all"`
	Match     float64 `json:"weight_matched"`
	Chance    float64 `json:"chance"`
}

type scores struct {
	TimeL2   float64 `json:"reuse_time_l2"`
	StackL2  float64 `json:"stack_distance_l2"`
	StackL10 float64 `json:"stack_distance_l10"`
	MissMean float64 `json:"miss_ratio_error_mean"`
	MissMax  float64 `json:"miss_ratio_error_max"`
}

// judge prints the table of miss ratios.
func (b *bench) judge(whose string, sessions int, wall time.Duration) error {
	for _, kind := range []struct {
		name string
		of   func(dir string) ([]program, error)
	}{{"kernels", kernels}, {"programs", programs}} {
		if !strings.Contains(whose, kind.name) {
			continue
		}
		ps, err := kind.of(b.dir)
		if err != nil {
			return err
		}
		if strings.Contains(whose, "coverage") {
			if err := b.cover(ps); err != nil {
				return err
			}
			continue
		}
		printMissHead()
		if err := b.misses(ps, sessions, wall); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the work directory.
func (b *bench) prepare() error {
	var err error
	if b.rdx, err = filepath.Abs(b.rdx); err != nil {
		return err
	}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "accuracy"); err != nil {
			return err
		}
		b.made = true
	}
	b.dir, err = filepath.Abs(b.dir)
	return err
}

func (b *bench) run(blocks []string, steps string) error {
	ps, err := programs(b.dir)
	if err != nil {
		return err
	}
	live := strings.Contains(steps, "live")
	if live {
		printHead()
	}
	var all []result
	for _, p := range ps {
		if !slices.ContainsFunc(b.only, func(s string) bool { return strings.HasPrefix(p.name, s) }) {
			continue
		}
		for _, block := range blocks {
			if p.stack != "" && block != "word" {
				continue // watching other threads takes the slots that a line would
			}
			r, err := b.program(p, block, live)
			if err != nil {
				return fmt.Errorf("%s by %s: %w", p.name, block, err)
			}
			if live {
				r.print()
				all = append(all, r)
			}
		}
	}
	printMeans(all, blocks)
	printPlaces(all)
	return nil
}

func (b *bench) program(p program, block string, live bool) (r result, err error) {
	whole, err := b.exact(p, "line", p.exact)
	if err != nil {
		return r, err
	}
	half, err := b.exact(p, "line", p.exact/2)
	if err != nil {
		return r, err
	}
	exact := whole
	if block != "line" { // by words the exact run takes longer, and half of it does
		if exact, err = b.exact(p, block, p.exact/2); err != nil {
			return r, err
		}
	}
	if !live {
		return r, nil
	}
	r.program, r.block = p.name, block
	if r.drift, err = between(half, whole); err != nil {
		return r, err
	}
	accesses, err := count(whole)
	if err != nil {
		return r, err
	}
	less, err := count(half)
	if err != nil {
		return r, err
	}
	n := max(int(float64(p.live)*b.length), 1)
	profile := filepath.Join(b.dir, fmt.Sprintf("live-%s-%s.pb.gz", strings.Fields(p.name)[0], block))
	env, err := b.padded(p.argv(n), b.bareStack)
	if err != nil {
		return r, err
	}
	with := slices.Concat([]string{b.rdx, "run", "-q", "-o", profile, "--granularity", block, "--source", "clock", "--clock", "cpu-time"}, p.flags(), b.extra, []string{"--"}, p.argv(n))
	if b.pairs == 0 {
		if _, err := b.timed(with, env); err != nil {
			return r, err
		}
		if err := r.account(profile); err != nil {
			return r, err
		}
	}
	for range b.pairs {
		// Bare runs before and after, so that a machine that gets slower does not count.
		var bare [2]time.Duration
		if bare[0], err = b.timed(p.argv(n/2), env); err != nil {
			return r, err
		}
		if _, err = b.timed(with, env); err != nil {
			return r, err
		}
		if bare[1], err = b.timed(p.argv(n-n/2), env); err != nil {
			return r, err
		}
		if err := r.account(profile); err != nil {
			return r, err
		}
		r.overhead = append(r.overhead, r.lasted.Seconds()/(bare[0]+bare[1]).Seconds())
	}
	// Start and end are done once: the work of n times, as accesses.
	perTime := float64(accesses-less) / float64(p.exact-p.exact/2)
	all := float64(accesses) + perTime*float64(n-p.exact)
	compared, err := count(exact)
	if err != nil {
		return r, err
	}
	out, err := exec.Command(b.rdx, "compare", "--format", "json", "--cache", b.caches, "--work", fmt.Sprint(all/float64(compared)), profile, exact).Output()
	if err != nil {
		return r, said(err)
	}
	return r, json.Unmarshal(out, &r.scores)
}

// exact is the file of the exact profile of n times the work.
func (b *bench) exact(p program, block string, n int) (string, error) {
	argv := p.argv(n)
	key := sha256.Sum256([]byte(strings.Join(slices.Concat(argv, pinned, []string{"padded"}, p.flags()), "\x00")))
	file := filepath.Join(b.dir, fmt.Sprintf("exact-%s-%d-%s-%x.pb.gz", strings.Fields(p.name)[0], n, block, key[:4]))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	env, err := b.padded(argv, b.engineStack)
	if err != nil {
		return "", err
	}
	start := time.Now()
	if _, err := b.timed(slices.Concat([]string{b.rdx, "exact", "-o", file, "--block", block}, p.flags(), []string{"--"}, argv), env); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "%s by %s, %d times: exact in %.0fs\n", p.name, block, n, time.Since(start).Seconds())
	return file, nil
}

// timed runs a command, its output thrown away, and says how long it took.
func (b *bench) timed(argv, env []string) (time.Duration, error) {
	c := exec.Command("setarch", append([]string{"-R"}, argv...)...)
	c.Dir, c.Env = b.dir, env
	var stderr strings.Builder
	c.Stderr = &stderr
	start := time.Now()
	if err := c.Run(); err != nil {
		return 0, fmt.Errorf("%.200s: %w: %.500s", strings.Join(argv, " "), err, stderr.String())
	}
	return time.Since(start), nil
}

func said(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

// count is how many accesses an exact profile's program made.
func count(file string) (int64, error) {
	p, err := pprofout.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for _, c := range p.Counts {
		if c.Name == model.ExactAccesses {
			return c.N, nil
		}
	}
	return 0, fmt.Errorf("%s does not say how many accesses there were", file)
}

// between is the l2 accuracy of one exact profile's stack distances against
// another's.
func between(a, b string) (float64, error) {
	var h [2]*model.Hist
	for i, file := range []string{a, b} {
		p, err := pprofout.ReadFile(file)
		if err != nil {
			return 0, err
		}
		if h[i], err = p.Stacks(model.LogBins(1)); err != nil {
			return 0, err
		}
	}
	return model.Accuracy(h[0], h[1])
}

// account reads how long the program of a live profile took, and what rdx says
// that it cost.
func (r *result) account(file string) error {
	p, err := pprofout.ReadFile(file)
	if err != nil {
		return err
	}
	r.lasted, r.cpu, r.holds = p.Duration, time.Duration(p.CountOf(model.CPUTarget)), p.CountOf(model.Holds)
	for _, c := range p.Comments {
		if rest, ok := strings.CutPrefix(c, model.Overhead); ok {
			r.said, _, _ = strings.Cut(rest, " of the target's CPU time")
		}
	}
	return nil
}
