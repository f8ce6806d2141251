// Command suite runs go test on the packages named, shows how it goes, and closes with counts,
// skips with their reasons, and the time that each part took.
//
// Packages that measure time or need watchpoints, of which a processor has four, run one after the
// other. The rest runs beside them at the lowest priority, on half of the processors, and on all of them when they are through.
// Then come those that mostly wait, and what holds threads but times nothing, beside each other and what is left of the rest.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const module = "github.com/rdx-profiler/rdx/"

// timed are the packages, with those below them, whose tests hold threads or measure time.
var timed = []string{"sampler", "collector", "cmd/rdx", "agent", "fleet"}

// pure are those below timed that do neither.
var pure = []string{"sampler/interp", "sampler/operand", "sampler/unwind", "sampler/objfile", "sampler/memrecord", "sampler/safeopen", "collector/estimate", "collector/record"}

// long are those that -short leaves out, with those below them.
var long = []string{"gpu", "vm"}

// mostlyWait are those that take two minutes, and a third of a processor.
var mostlyWait = []string{"bench/fleet"}

// slow are the packages that take longest with -short, the slowest first: they begin first, so that none runs alone at the end.
var slow = []string{"web", "trace", "exact", "pprofout", "cmd/rdx"}

// alone are those of the rest that take longest, likewise: each is a call of go test of its own, for whoever has a processor.
var alone = [...]string{"bench/coverage", "trace", "web", "model", "pprofout", "sampler/interp", "gpu/device", "exact", "sampler/interp/a64"}

// slowFirst puts them before the others.
func slowFirst(packages []string) []string {
	rank := func(pkg string) int {
		if i := slices.Index(slow, strings.TrimPrefix(pkg, module)); i >= 0 {
			return i
		}
		return len(slow)
	}
	out := slices.Clone(packages)
	slices.SortStableFunc(out, func(a, b string) int { return rank(a) - rank(b) })
	return out
}

// commands is the package of which only some tests need watchpoints: the others, whose names begin
// so, run beside them.
const (
	commands     = "cmd/rdx"
	commandsPure = "^Test(Exact|Trace([^d]|$)|Compare|Fleet|Phases|Compose|Group|Partition|Gen|Diff|Mrc|Hist|Top)"
)

// untimed are the files of its tests that want no quiet machine: whatever the time, a target is unharmed, a name is right.
var untimed = []string{"safety_*", "rights", "names", "cli", "heap", "web"}

// untimedTests are the names of the tests in such files in a folder, but for those that need nothing.
func untimedTests(folder string) (names []string, err error) {
	for _, pattern := range untimed {
		files, err := filepath.Glob(filepath.Join(folder, pattern+"_test.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for _, found := range testName.FindAllSubmatch(text, -1) {
				if name := string(found[1]); !pureName.MatchString(name) {
					names = append(names, name)
				}
			}
		}
	}
	return names, nil
}

var (
	testName = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	pureName = regexp.MustCompile(commandsPure)
)

// dealt is the names as so many patterns for go test, dealt out like cards: what takes long mostly stands in a row.
func dealt(names []string, hands int) (patterns []string) {
	of := make([][]string, hands)
	for i, n := range names {
		of[i%hands] = append(of[i%hands], n)
	}
	for _, names := range of {
		if len(names) > 0 {
			patterns = append(patterns, "^("+strings.Join(names, "|")+")$")
		}
	}
	return patterns
}

func below(pkg string, of []string) bool {
	pkg = strings.TrimPrefix(pkg, module)
	return slices.ContainsFunc(of, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

// event is a line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Elapsed    float64
	Output     string
}

type name struct{ pkg, test string }

// result is how a test or a package ended.
type result struct {
	name
	seconds float64
	text    string
}

// suite collects what the groups say.
type suite struct {
	mu       sync.Mutex
	out      io.Writer
	start    time.Time
	packages int
	ended    int
	passed   int
	last     time.Time // something was printed
	running  map[name]time.Time
	text     map[name]*strings.Builder
	failed   []result
	skipped  []result
	tests    []result // that took a while
	parts    []result
	tally    map[string][2]int // of a package: tests, skips
}

func main() {
	short := flag.Bool("short", false, "only what takes seconds and needs no root")
	limit := flag.Duration("timeout", 30*time.Minute, "of a package's tests")
	flag.Parse()
	if err := run(flag.Args(), *short, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
}

func run(args []string, short bool, limit time.Duration) error {
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		var e *exec.ExitError
		if errors.As(err, &e) {
			err = fmt.Errorf("go list: %s", e.Stderr)
		}
		return err
	}
	packages := strings.Fields(string(out))
	if short {
		packages = slices.DeleteFunc(packages, func(p string) bool { return below(p, long) })
		fmt.Printf("-short: without what takes a while or needs root, and without %s\n", strings.Join(long, ", "))
	}
	var groups [2][]string // timed, and the rest
	for _, p := range packages {
		if g := &groups[0]; !short && below(p, timed) && !below(p, pure) {
			*g = append(*g, p)
		} else {
			groups[1] = append(groups[1], p)
		}
	}
	s := &suite{out: os.Stdout, start: time.Now(), packages: len(packages), running: map[name]time.Time{}, text: map[name]*strings.Builder{}, tally: map[string][2]int{}}
	s.last = s.start
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM) // go test ends by it, too; what is known is still said
	done := make(chan struct{})
	go s.tick(done)
	var all sync.WaitGroup
	var quick []string
	if slices.Contains(groups[0], module+commands) {
		if quick, err = untimedTests(commands); err != nil {
			return err
		}
		s.packages += 1 + min(len(quick), streams) // cmd/rdx ends so many times more
	}
	jobs := jobsOf(groups, quick, short, limit)
	var mutex sync.Mutex
	var failed error
	work := func(argvs <-chan []string) {
		for argv := range argvs {
			if err := s.group(argv); err != nil {
				mutex.Lock()
				failed = errors.Join(failed, err)
				mutex.Unlock()
			}
		}
	}
	queues := make([]chan []string, len(jobs))
	for i, jobs := range jobs {
		queues[i] = make(chan []string, len(jobs))
		for _, argv := range jobs {
			queues[i] <- argv
		}
		close(queues[i])
	}
	half := max(1, runtime.NumCPU()/2)
	for range half {
		all.Go(func() { work(queues[rest]) })
	}
	all.Go(func() {
		work(queues[first])
		all.Go(func() { work(queues[waiting]) })
		for range streams {
			all.Go(func() { work(queues[streamed]) })
		}
		for range runtime.NumCPU() - half {
			all.Go(func() { work(queues[rest]) })
		}
	})
	all.Wait()
	close(done)
	s.close()
	if len(s.failed) > 0 {
		return fmt.Errorf("%d failed", len(s.failed))
	}
	return failed
}

// What jobsOf makes.
const (
	first    = iota // one after the other
	rest            // in this order, beside them and each other
	waiting         // mostly; after the first, for each has dozens of processes at work now and then
	streamed        // beside each other, after the first
	numJobs
)

// streams are how many run side by side of those that hold threads: as many as a small machine has processors.
const streams = 2

// jobsOf are the calls of go test. quick are the tests of the commands that time nothing.
func jobsOf(groups [2][]string, quick []string, short bool, limit time.Duration) (jobs [numJobs][][]string) {
	argv := []string{"go", "test", "-json", "-count=1", "-timeout", limit.String()}
	if short {
		jobs[rest] = append(jobs[rest], slices.Concat(argv, []string{"-short"}, slowFirst(groups[1])))
		return jobs
	}
	if len(groups[0]) == 0 {
		jobs[rest] = append(jobs[rest], slices.Concat(argv, groups[1]))
		return jobs
	}
	others := slices.Concat([]string{"nice", "-n", "19"}, argv, []string{"-p", "1"})
	var apart [len(alone)][]string
	var few, waits []string
	for _, p := range groups[1] {
		switch i := slices.Index(alone[:], strings.TrimPrefix(p, module)); {
		case i >= 0:
			apart[i] = slices.Concat(others, []string{p})
		case below(p, mostlyWait):
			waits = append(waits, p)
		default:
			few = append(few, p)
		}
	}
	for _, argv := range apart {
		if argv != nil {
			jobs[rest] = append(jobs[rest], argv)
		}
	}
	timed := slices.DeleteFunc(slices.Clone(groups[0]), func(p string) bool { return p == module+commands })
	if len(timed) > 0 {
		jobs[first] = append(jobs[first], slices.Concat(argv, []string{"-p", "1"}, timed))
	}
	if len(timed) < len(groups[0]) {
		skip := commandsPure
		for _, pattern := range dealt(quick, streams) {
			jobs[streamed] = append(jobs[streamed], slices.Concat(argv, []string{"-run", pattern, module + commands}))
			skip += "|" + pattern
		}
		jobs[first] = append(jobs[first], slices.Concat(argv, []string{"-skip", skip, module + commands}))
		jobs[rest] = append(jobs[rest], slices.Concat(others, []string{"-run", commandsPure, module + commands}))
	}
	if len(few) > 0 {
		jobs[rest] = append(jobs[rest], slices.Concat(others, few))
	}
	if len(waits) > 0 {
		jobs[waiting] = append(jobs[waiting], slices.Concat(others, waits))
	}
	return jobs
}

// group runs one go test and reads what it says.
func (s *suite) group(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

func (s *suite) line(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(s.out, "%s", line)
		return
	}
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "run":
		s.running[n] = time.Now()
	case "output":
		if strings.HasPrefix(e.Output, "=== ") || strings.HasPrefix(strings.TrimSpace(e.Output), "--- ") {
			return
		}
		b := s.text[n]
		if b == nil {
			b = &strings.Builder{}
			s.text[n] = b
		}
		if b.Len() < 1<<16 {
			b.WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		s.end(n, e)
	}
}

// end counts a test or a package that has ended.
func (s *suite) end(n name, e event) {
	r := result{name: n, seconds: e.Elapsed}
	if b := s.text[n]; b != nil {
		r.text = b.String()
	}
	delete(s.text, n)
	delete(s.running, n)
	if n.test == "" {
		s.endPackage(r, e.Action)
		return
	}
	t := s.tally[n.pkg]
	switch e.Action {
	case "pass":
		s.passed++
		t[0]++
	case "skip":
		s.skipped = append(s.skipped, r)
		t[1]++
	case "fail":
		s.failed = append(s.failed, r)
		t[0]++
		s.say("FAIL %s %s (%.1fs)\n%s", strings.TrimPrefix(n.pkg, module), n.test, r.seconds, r.text)
	}
	s.tally[n.pkg] = t
	if r.seconds >= 1 && !strings.Contains(n.test, "/") {
		s.tests = append(s.tests, r)
	}
}

func (s *suite) endPackage(r result, action string) {
	s.ended++
	t := s.tally[r.pkg]
	delete(s.tally, r.pkg)
	if t == [2]int{} && action != "fail" {
		return // no tests
	}
	s.parts = append(s.parts, r)
	says := "ok"
	if action == "fail" {
		says = "FAIL"
		if !slices.ContainsFunc(s.failed, func(f result) bool { return f.pkg == r.pkg }) {
			s.failed = append(s.failed, r) // it did not build, or ended at once
		}
		for n, b := range s.text { // of a panic: what ran
			if n.pkg == r.pkg && n.test != "" {
				r.text += b.String()
			}
		}
	}
	s.say("%-4s %-24s %6.1fs %4d tests %3d skipped\n", says, strings.TrimPrefix(r.pkg, module), r.seconds, t[0], t[1])
	if action == "fail" {
		fmt.Fprint(s.out, r.text)
	}
}

// say prints a line behind how far it is.
func (s *suite) say(format string, args ...any) {
	s.last = time.Now()
	fmt.Fprintf(s.out, "[%2d/%d %3dm%02ds] ", s.ended, s.packages, int(time.Since(s.start).Minutes()), int(time.Since(s.start).Seconds())%60)
	fmt.Fprintf(s.out, format, args...)
}

// tick says what runs where nothing ends for a while.
func (s *suite) tick(done <-chan struct{}) {
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
		}
		s.mu.Lock()
		if time.Since(s.last) >= 30*time.Second {
			var now []string
			for n, since := range s.running {
				if n.test != "" && !strings.Contains(n.test, "/") && time.Since(since) > time.Second {
					now = append(now, fmt.Sprintf("%s %s (%.0fs)", strings.TrimPrefix(n.pkg, module), n.test, time.Since(since).Seconds()))
				}
			}
			slices.Sort(now)
			s.say("at %s\n", strings.Join(now, ", "))
		}
		s.mu.Unlock()
	}
}

// byPackage adds up the times of a package that ended several times.
func byPackage(parts []result) (out []result) {
	for _, p := range parts {
		if i := slices.IndexFunc(out, func(o result) bool { return o.pkg == p.pkg }); i >= 0 {
			out[i].seconds += p.seconds
		} else {
			out = append(out, p)
		}
	}
	return out
}

func (s *suite) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	slower := func(a, b result) int { return int(1000 * (b.seconds - a.seconds)) }
	s.parts = byPackage(s.parts)
	slices.SortFunc(s.parts, slower)
	slices.SortFunc(s.tests, slower)
	fmt.Fprintln(s.out, "\ntime by package:")
	for _, r := range s.parts {
		if r.seconds >= 1 {
			fmt.Fprintf(s.out, "  %7.1fs %s\n", r.seconds, strings.TrimPrefix(r.pkg, module))
		}
	}
	fmt.Fprintln(s.out, "slowest tests:")
	for _, r := range s.tests[:min(15, len(s.tests))] {
		fmt.Fprintf(s.out, "  %7.1fs %s %s\n", r.seconds, strings.TrimPrefix(r.pkg, module), r.test)
	}
	for _, r := range s.skipped {
		fmt.Fprintf(s.out, "skipped %s %s: %s\n", strings.TrimPrefix(r.pkg, module), r.test, strings.Join(strings.Fields(r.text), " "))
	}
	for _, r := range s.failed {
		fmt.Fprintf(s.out, "--- FAIL: %s %s\n%s", strings.TrimPrefix(r.pkg, module), r.test, r.text)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped in %s\n", s.passed, len(s.failed), len(s.skipped), time.Since(s.start).Round(time.Second))
}
