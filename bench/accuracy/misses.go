package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// What users read is judged here: miss ratios at three cache sizes by default flags, whether the band holds the exact
// one, and how far off what is quoted is. The exact ratio is that of the steady state: of so many times the work
// more than of less.

//go:embed kernels/kernels.c
var kernelSource []byte

// cacheSizes are those whose miss ratios are judged.
var (
	cacheNames = []string{"32k", "1m", "32m"}
	cacheBytes = []string{"32768", "1048576", "33554432"}
)

// kernelNames are the plain kernels of kernels.c.
var kernelNames = []string{"set28k", "set36k", "set900k", "set1200k", "set24000k", "set40000k", "phases10us", "phases1000us", "phases30000us",
	"sweep", "stencil", "records", "structures", "list", "column", "pages", "multiply", "blocked", "counters", "copy", "repcopy", "fill", "chains",
	"tree", "sort", "gather", "turns", "ring", "never"}

// forever is so many times the work that nobody waits for its end.
const forever = 1_000_000_000

// kernels are built in dir.
func kernels(dir string) ([]program, error) {
	source, binary := filepath.Join(dir, "kernels.c"), filepath.Join(dir, "kernels")
	if err := os.WriteFile(source, kernelSource, 0o644); err != nil {
		return nil, err
	}
	if out, err := exec.Command("gcc", "-O1", "-g", "-o", binary, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build kernels: %w: %s", err, out)
	}
	var ps []program
	for _, name := range kernelNames {
		ps = append(ps, program{name: name, argv: func(n int) []string { return []string{binary, name, strconv.Itoa(n)} }, exact: 4, live: forever})
	}
	return ps, nil
}

// ratio is a miss ratio as rdx says it.
type ratio struct {
	exact, said, low, high float64 // said is NaN where only bounds are given
	why                    string
}

func (r *ratio) held() bool   { return r.low <= r.exact && r.exact <= r.high }
func (r *ratio) quoted() bool { return !math.IsNaN(r.said) }

func (r *ratio) String() string {
	said := "-"
	if r.quoted() {
		said = fmt.Sprintf("%.3g", 100*r.said)
	}
	return fmt.Sprintf("%.3g / %s [%.2g, %.2g]%s", 100*r.exact, said, 100*r.low, 100*r.high, out(!r.held()))
}

// out marks a band that does not hold the truth.
func out(is bool) string {
	if is {
		return " **out**"
	}
	return ""
}

// judged is a session of a program.
type judged struct {
	program   string
	ratios    [3]ratio
	holds     int64
	rate      float64 // accesses per ns of CPU time
	exactRate float64
	low       float64
	high      float64
	source    string
}

// misses runs the sessions, prints their table, and the totals of kernels and of programs.
func (b *bench) misses(ps []program, sessions int, wall time.Duration) error {
	var all []judged
	for _, p := range ps {
		if p.stack != "" || !slices.ContainsFunc(b.only, func(s string) bool { return strings.HasPrefix(p.name, s) }) {
			continue
		}
		exact, touches, err := b.steady(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		exactRate, err := b.bareRate(p, touches)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for range sessions {
			j, err := b.session(p, exact, wall)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			j.exactRate = exactRate
			fmt.Printf("| %s | %v | %v | %v | %d | %.3g / %.3g [%.2g, %.2g]%s %s |\n", j.program, &j.ratios[0], &j.ratios[1], &j.ratios[2], j.holds,
				j.exactRate, j.rate, j.low, j.high, out(j.exactRate < j.low || j.exactRate > j.high), j.source)
			all = append(all, j)
		}
	}
	printTotals(all)
	return nil
}

func printMissHead() {
	fmt.Println("| program | 32 KiB: exact / said [band], % | 1 MiB | 32 MiB | holds | accesses per ns: exact / said [interval], by |\n|---|---|---|---|---|---|")
}

// printTotals are in how many sessions bands hold, and what is quoted and how well.
func printTotals(all []judged) {
	if len(all) == 0 {
		return
	}
	fmt.Println("\n| cache | sessions | band holds | exact 0.3 % or more: sessions | of these quoted | median error of what is quoted | mean signed error | smallest ratio quoted |\n|---|---|---|---|---|---|---|---|")
	for k, name := range cacheNames {
		held, large, quoted, signed := 0, 0, 0, 0.0
		least := math.Inf(1)
		var off []float64
		for i := range all {
			r := &all[i].ratios[k]
			if r.held() {
				held++
			}
			if r.quoted() && r.said > 0 {
				least = min(least, r.said)
			}
			if r.exact < .003 {
				continue
			}
			if large++; r.quoted() {
				quoted++
				off = append(off, math.Abs(r.said/r.exact-1))
				signed += r.said/r.exact - 1
			}
		}
		median, mean, smallest := "-", "-", "-"
		if slices.Sort(off); len(off) > 0 {
			median, mean = fmt.Sprintf("%.0f %%", 100*off[len(off)/2]), fmt.Sprintf("%+.0f %%", 100*signed/float64(len(off)))
		}
		if !math.IsInf(least, 1) {
			smallest = fmt.Sprintf("%.2g %%", 100*least)
		}
		fmt.Printf("| %s | %d | %d (%.0f %%) | %d | %d | %s | %s | %s |\n", name, len(all), held, 100*float64(held)/float64(len(all)), large, quoted, median, mean, smallest)
	}
	fmt.Println()
}

// steady is the exact miss ratios of what more work adds, and how many touches of lines that is.
func (b *bench) steady(p program) (out [3]float64, touches float64, err error) {
	less, few, err := b.exactMisses(p, p.exact/2)
	if err != nil {
		return out, 0, err
	}
	more, many, err := b.exactMisses(p, p.exact)
	if err != nil {
		return out, 0, err
	}
	for k := range out {
		if out[k] = (more[k]*many - less[k]*few) / (many - few); out[k] < 1e-9 { // rounded
			out[k] = 0
		}
	}
	return out, many - few, nil
}

// bareRate is how many accesses a nanosecond of CPU time makes that more work adds: half of the exact work has so many. It is the
// median of some runs without rdx, of so many times the work that what it adds takes far longer than starts differ.
func (b *bench) bareRate(p program, accesses float64) (float64, error) {
	const (
		runs   = 5
		enough = 300 * time.Millisecond
		most   = 1 << 10
	)
	added := func(times int) (d time.Duration, err error) {
		for _, n := range []int{p.exact / 2 * times, p.exact * times} {
			argv := p.argv(n)
			c := exec.Command("setarch", append([]string{"-R"}, argv...)...)
			c.Dir, c.Env = b.dir, pinned
			if err := c.Run(); err != nil {
				return 0, fmt.Errorf("run %s: %w", argv[0], err)
			}
			d = c.ProcessState.UserTime() + c.ProcessState.SystemTime() - d
		}
		return d, nil
	}
	times := 1
	for ; times < most; times *= 4 {
		if d, err := added(times); err != nil {
			return 0, err
		} else if d >= enough {
			break
		}
	}
	var elapsed []time.Duration
	for range runs {
		d, err := added(times)
		if err != nil {
			return 0, err
		}
		elapsed = append(elapsed, d)
	}
	slices.Sort(elapsed)
	return accesses * float64(times) / float64(max(elapsed[runs/2], 1)), nil
}

// exactMisses is of n times the work: miss ratios, and how many touches of lines there were.
func (b *bench) exactMisses(p program, n int) (ratios [3]float64, touches float64, err error) {
	argv := p.argv(n)
	key := sha256.Sum256([]byte(strings.Join(slices.Concat(argv, pinned, []string{string(kernelSource)}), "\x00")))
	file := filepath.Join(b.dir, fmt.Sprintf("misses-%s-%d-%x.csv", strings.Fields(p.name)[0], n, key[:4]))
	text, err := os.ReadFile(file)
	if err != nil {
		c := exec.Command("setarch", slices.Concat([]string{"-R", b.rdx, "exact", "-q", "--log2", "--sizes", strings.Join(cacheNames, ","), "--format", "csv", "--report", file, "--"}, argv)...)
		c.Dir, c.Env = b.dir, pinned
		if out, err := c.CombinedOutput(); err != nil {
			return ratios, 0, fmt.Errorf("exact: %w: %.500s", err, out)
		}
		if text, err = os.ReadFile(file); err != nil {
			return ratios, 0, err
		}
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return ratios, 0, fmt.Errorf("%s: %w", file, err)
	}
	found := 0
	for _, row := range rows {
		v, err := strconv.ParseFloat(row[len(row)-1], 64)
		switch {
		case err != nil: // the head
		case row[0] == "stack_distance":
			touches += v
		case row[0] == "miss_ratio":
			if k := slices.Index(cacheBytes, row[1]); k >= 0 {
				ratios[k] = v
				found++
			}
		}
	}
	if found != len(ratios) || touches == 0 {
		return ratios, 0, fmt.Errorf("%s is not what rdx exact --format csv prints", file)
	}
	return ratios, touches, nil
}

// setUp is the CPU time after which a program is taken to be in its steady state.
const setUp = 2 * time.Second

// ran waits until a process has had so much CPU time.
func ran(pid int, cpu time.Duration) error {
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return fmt.Errorf("wait for the steady state: %w", err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		var ticks int64
		for _, f := range fields[11:13] { // user and system, in hundredths of a second
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return fmt.Errorf("wait for the steady state: %w", err)
			}
			ticks += n
		}
		if time.Duration(ticks)*10*time.Millisecond >= cpu {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// session attaches to the program by default flags.
func (b *bench) session(p program, exact [3]float64, wall time.Duration) (j judged, err error) {
	argv := p.argv(p.live)
	c := exec.Command("setarch", append([]string{"-R"}, argv...)...)
	c.Dir, c.Env = b.dir, pinned
	if err := c.Start(); err != nil {
		return j, err
	}
	defer func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	}()
	if err := ran(c.Process.Pid, setUp); err != nil {
		return j, err
	}
	profile := filepath.Join(b.dir, "misses.pb.gz")
	attach := slices.Concat([]string{"attach", "-q", "-p", strconv.Itoa(c.Process.Pid), "-d", wall.String(), "-o", profile}, b.extra)
	if out, err := exec.Command(b.rdx, attach...).CombinedOutput(); err != nil {
		return j, fmt.Errorf("rdx attach: %w: %.500s", err, out)
	}
	j.program = p.name
	live, err := pprofout.ReadFile(profile)
	if err != nil {
		return j, err
	}
	j.holds, j.rate, j.low, j.high, j.source = live.CountOf(model.Holds), live.Clock.Rate, live.Clock.RateLow, live.Clock.RateHigh, live.Clock.RateSource
	csvText, err := exec.Command(b.rdx, "mrc", "--sizes", strings.Join(cacheNames, ","), "--format", "csv", profile).Output()
	if err != nil {
		return j, said(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(csvText)).ReadAll()
	if err != nil {
		return j, err
	}
	for _, row := range rows[1:] {
		k := slices.Index(cacheBytes, row[1])
		if k < 0 {
			continue
		}
		r := ratio{exact: exact[k], said: math.NaN(), why: row[7]}
		if row[3] != "" {
			if r.said, err = strconv.ParseFloat(row[3], 64); err != nil {
				return j, err
			}
		}
		if r.low, err = strconv.ParseFloat(row[4], 64); err == nil {
			r.high, err = strconv.ParseFloat(row[5], 64)
		}
		if err != nil {
			return j, err
		}
		j.ratios[k] = r
	}
	return j, nil
}
