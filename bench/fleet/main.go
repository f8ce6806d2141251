// Command fleet runs agents against Grafana Pyroscope under load and faults, and prints what
// docs/how-to/fleet.md quotes. It needs root, BPF, watchpoints, gcc and make pyroscope.
//
//	go run ./bench/fleet -minutes 30 -processes 200 -kills 100
//	go run ./bench/fleet -sizes rdx.pb.gz
//	go run ./bench/fleet -cost 8 -period 60s
//
// Two agents, a and b, sample the services of one half of the machine each: checkout and
// search, the same on both, and cart, of which b runs another version with more misses. Beside them
// processes come and go. Agents and sessions are killed at random times, the server is killed and started
// again, and throttled by a proxy that answers garbage, slowly, or 429; one agent's disk is filled. At the
// end the curves are compared with the truth, and what the server has with what the agents say that they sent.
// Lines that begin with FAIL say what must not be: a service that was harmed, a window that nobody has counted,
// memory or descriptors that grow, a session, a map or a program of BPF that is left.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/fleet/backend"
)

type options struct {
	rdx       string
	length    time.Duration
	processes int
	kills     int
	period    time.Duration
	overhead  float64
	seed      uint64
}

func main() {
	var o options
	flag.StringVar(&o.rdx, "rdx", "./rdx", "binary")
	minutes := flag.Float64("minutes", 30, "how long")
	flag.IntVar(&o.processes, "processes", 200, "that come and go")
	flag.IntVar(&o.kills, "kills", 100, "SIGKILLs of agents and sessions")
	flag.DurationVar(&o.period, "period", 20*time.Second, "of the agents")
	flag.Float64Var(&o.overhead, "overhead", 1, "of each agent, percent of the machine")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of what happens when")
	of := flag.String("sizes", "", "only say what this profile takes as a window")
	windows := flag.Int("windows", 1000, "with -sizes: that the server is to keep")
	cost := flag.Int("cost", 0, "only measure what an agent costs, with so many turns with and without it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, os.Interrupt)
	defer stop()
	if *cost > 0 {
		if err := measureCost(ctx, o, *cost); err != nil {
			fmt.Fprintln(os.Stderr, "bench/fleet:", err)
			os.Exit(1)
		}
		return
	}
	if *of != "" {
		err := sizes(*of)
		if err == nil {
			err = store(ctx, *of, *windows)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench/fleet:", err)
			os.Exit(1)
		}
		return
	}
	o.length = time.Duration(*minutes * float64(time.Minute))
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/fleet:", err)
		os.Exit(1)
	}
}

type bench struct {
	options
	dir    string
	rand   *rand.Rand
	server *backend.Server
	proxy  *proxy
	agents []*agent
	load   []*exec.Cmd
	kills  int
	before *kernelObjects
	came   int          // processes
	harmed atomic.Value // string, of the last that did not end well

	failures int
}

// fail says what must not be.
func (b *bench) fail(format string, args ...any) {
	b.failures++
	fmt.Printf("FAIL: "+format+"\n", args...)
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "rdx-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, rand: rand.New(rand.NewPCG(o.seed, 1)), before: listKernelObjects()}
	// A name of its own tells this run's sessions from others'.
	if b.rdx, err = copyOf(o.rdx, dir); err != nil {
		return err
	}
	fmt.Printf("seed %d, %v, %d processes, %d kills, period %v\n", o.seed, o.length, o.processes, o.kills, o.period)
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return err
	}
	b.disturb(ctx)
	if err := b.report(ctx); err != nil {
		return err
	}
	if b.failures > 0 {
		return fmt.Errorf("%d failures", b.failures)
	}
	return nil
}

func copyOf(program, dir string) (string, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "rdx")
	return path, os.WriteFile(path, data, 0o755)
}

func (b *bench) start(ctx context.Context) error {
	program := filepath.Join(b.dir, "service")
	if out, err := exec.Command("gcc", "-O2", "-g", "-o", program, "demo/service.c").CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w: %s", err, out)
	}
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	servers, err := backend.Start(starting, filepath.Join(b.dir, "pyroscope"), 1, backend.Options{})
	if err != nil {
		return err
	}
	b.server = servers[0]
	if b.proxy, err = newProxy(b.server.URL); err != nil {
		return err
	}
	for _, host := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(b.dir, host), 0o755); err != nil {
			return err
		}
		for _, name := range []string{"checkout", "cart", "search", "batch"} {
			if err := os.Link(program, filepath.Join(b.dir, host, name)); err != nil {
				return err
			}
		}
		for _, s := range truth {
			if s.host == "" || s.host == host {
				b.spawn(host, s.service, s.version, strconv.Itoa(s.lines), strconv.Itoa(s.every), "0", "25")
			}
		}
		a, err := b.newAgent(host)
		if err != nil {
			return err
		}
		b.agents = append(b.agents, a)
		if err := a.run(); err != nil {
			return err
		}
	}
	return nil
}

// truth is what the services do by construction.
var truth = []struct {
	service, version, host string
	lines, every           int
}{
	{"checkout", "41", "", 32768, 10},
	{"search", "41", "", 128, 4},
	{"cart", "41", "a", 32768, 20},
	{"cart", "42", "b", 32768, 4},
}

// spawn starts a process under load; nobody asks how it ends.
func (b *bench) spawn(host, service, version string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(b.dir, host, service), args...)
	cmd.Env = []string{"OTEL_SERVICE_NAME=" + service, "OTEL_RESOURCE_ATTRIBUTES=service.version=" + version}
	if err := cmd.Start(); err != nil {
		fmt.Println("start:", err)
		return nil
	}
	b.load = append(b.load, cmd)
	return cmd
}

// disturb lets processes come and go, and kills what may be killed.
func (b *bench) disturb(ctx context.Context) {
	begin := time.Now()
	end := begin.Add(b.length)
	var churn []*exec.Cmd
	ended := make(chan *exec.Cmd, 1024)
	next := time.Now()
	faults := []struct {
		at   float64 // of the run
		name string
		do   func()
	}{
		{.20, "server killed", func() { b.server.Kill() }},
		{.28, "server back", func() { b.restart(ctx) }},
		{.36, "server answers garbage", func() { b.proxy.mode.Store("garbage") }},
		{.42, "server answers slowly", func() { b.proxy.mode.Store("slow") }},
		{.48, "server answers 429", func() { b.proxy.mode.Store("429") }},
		{.54, "server is well", func() { b.proxy.mode.Store("") }},
		{.60, "a's disk full", func() { b.agents[0].fill() }},
		{.68, "a's disk free", func() { b.agents[0].free() }},
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	nextSample := begin
	for time.Now().Before(end) && ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case c := <-ended:
			for i := range churn {
				if churn[i] == c {
					churn = append(churn[:i], churn[i+1:]...)
					break
				}
			}
			continue
		case <-tick.C:
		}
		for len(churn) < b.processes && time.Now().After(next) {
			next = next.Add(20 * time.Millisecond)
			host := []string{"a", "b"}[b.rand.IntN(2)]
			// Each works little: together a tenth of a processor or so.
			c := b.spawn(host, "batch", "1", strconv.Itoa(64<<b.rand.IntN(6)), "5", strconv.Itoa(1+b.rand.IntN(60)), strconv.FormatFloat(20/float64(b.processes), 'f', 3, 64))
			if c == nil {
				break
			}
			churn = append(churn, c)
			b.came++
			go func() {
				if err := c.Wait(); err != nil {
					b.harmed.Store(fmt.Sprintf("%s: %v", c.Path, err))
				}
				ended <- c
			}()
		}
		at := float64(time.Since(begin)) / float64(b.length)
		for len(faults) > 0 && at >= faults[0].at {
			fmt.Printf("%6.1f min  %s\n", time.Since(begin).Minutes(), faults[0].name)
			faults[0].do()
			faults = faults[1:]
		}
		// Kills are spread over nine tenths of the run: the last windows are to be sent.
		if b.kills < b.options.kills && at < .9 && float64(b.kills) < float64(b.options.kills)*at/.9 {
			b.kill()
		}
		if time.Now().After(nextSample) {
			nextSample = nextSample.Add(5 * time.Second)
			for _, a := range b.agents {
				a.sample(at)
			}
		}
	}
}

func (b *bench) restart(ctx context.Context) {
	if err := b.server.Run(); err != nil {
		fmt.Println("server:", err)
		return
	}
	go func() {
		ready, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := b.server.Ready(ready); err != nil {
			fmt.Println("server:", err)
		}
	}()
}

// kill ends a session, or in one of ten cases an agent, which is started again.
func (b *bench) kill() {
	a := b.agents[b.rand.IntN(len(b.agents))]
	b.kills++
	if b.rand.IntN(10) > 0 {
		if pids := a.sessions(); len(pids) > 0 {
			_ = unix.Kill(pids[b.rand.IntN(len(pids))], unix.SIGKILL)
			a.sessionsKilled++
			return
		}
	}
	b.restartAgent(a, unix.SIGKILL)
}

// account holds what came out of sessions against what became of it. An agent that is killed takes along what it
// would have said of the windows at hand.
func (b *bench) account() {
	sum := func(name string) (v float64) {
		for _, a := range b.agents {
			for k, n := range a.total {
				if strings.HasPrefix(k, name) {
					v += n
				}
			}
		}
		return v
	}
	kills := 0.0
	for _, a := range b.agents {
		kills += float64(a.killed)
	}
	done, taken := sum(`rdx_agent_sessions_total{result="done"}`), sum(`rdx_agent_pushes_total{outcome="taken"}`)
	dropped, lost := sum("rdx_agent_windows_dropped_total"), sum(`rdx_agent_windows_dropped_total{reason="agent killed in a session"}`)
	left := 0.0
	for _, a := range b.agents {
		files, _ := filepath.Glob(filepath.Join(a.disk, "spool", "*.push"))
		left += float64(len(files))
	}
	fmt.Printf("%.0f windows came out of sessions: %.0f were taken, %.0f dropped and counted, %.0f are in spools; %.0f were lost with %.0f killed agents, which is counted; the server has %d\n",
		done, taken, dropped-lost, left, lost, kills, b.proxy.passed.Load())
	if off := done - (taken + dropped - lost + left); off > 2*kills || off < -2*kills {
		b.fail("%.0f windows are not accounted for, with %.0f killed agents", off, kills)
	}
	if off := float64(b.proxy.passed.Load()) - taken; off < 0 || off > 2*kills {
		b.fail("the server has %d windows, the agents say %.0f, with %.0f killed", b.proxy.passed.Load(), taken, kills)
	}
	for _, a := range b.agents {
		// One that was just started has less.
		if first, last := largest(a.alone[0]), median(a.alone[2]); last > first+4 {
			b.fail("agent %s: its memory has grown from %.0f MiB at most to %.0f at the median", a.host, first, last)
		}
		for _, m := range a.memory {
			if most := largest(m); most > 150 {
				b.fail("agent %s and its sessions took %.0f MiB", a.host, most)
			}
		}
		if first, last := largest(a.files[0]), largest(a.files[2]); last > first+8 {
			b.fail("agent %s: descriptors have grown from %.0f to %.0f", a.host, first, last)
		}
	}
}

func (b *bench) stop() {
	for _, a := range b.agents {
		b.endAgent(a)
		_ = unix.Unmount(a.disk, unix.MNT_DETACH)
	}
	for _, c := range b.load {
		_ = c.Process.Kill()
	}
	if b.server != nil {
		backend.Stop([]*backend.Server{b.server})
	}
}

func (b *bench) report(ctx context.Context) error {
	for _, c := range b.load[:len(truth)*2-2] { // cart runs once on each
		if err := c.Process.Signal(unix.Signal(0)); err != nil {
			b.fail("a service has ended: %v", err)
		} else if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid)); err != nil || strings.Contains(string(status), "State:\tT") {
			b.fail("a service does not run: %v", err)
		}
	}
	fmt.Printf("%d processes came and went beside the services\n", b.came)
	if what := b.harmed.Load(); what != nil {
		b.fail("a process did not end well: %v", what)
	}
	for _, a := range b.agents {
		b.restartAgent(a, unix.SIGTERM) // what is in the spool is sent by the next
	}
	time.Sleep(5 * time.Second)
	for _, a := range b.agents {
		b.endAgent(a)
		a.print()
	}
	b.account()
	b.leftOver(ctx)
	for _, s := range truth {
		b.compare(ctx, s.service, s.version, 1/float64(s.every), s.lines*64)
	}
	for _, pair := range [][]string{{"--service=cart", "version=41", "version=42"}, {"--service=checkout", "host=a", "host=b"}, {"--service=search", "host=a", "host=b"}} {
		out, err := b.ask(ctx, append([]string{"diff", "--sizes=16k", "--format=csv"}, pair...)...)
		fmt.Printf("diff %s:", strings.Join(pair, " "))
		if err != nil {
			fmt.Println(" ", err)
			continue
		}
		stars := 0
		for line := range strings.Lines(out) {
			if strings.Contains(line, ",true,") {
				stars++
			}
		}
		fmt.Printf(" %d significant rows\n", stars)
	}
	var size int64
	_ = filepath.Walk(filepath.Join(b.dir, "pyroscope"), func(_ string, fi os.FileInfo, err error) error {
		if err == nil && fi.Mode().IsRegular() && !strings.HasSuffix(fi.Name(), "log") {
			size += fi.Size()
		}
		return nil
	})
	fmt.Printf("the proxy passed %d requests, %.1f kB each; the server keeps %.1f MB on disk so far\n", b.proxy.passed.Load(), float64(b.proxy.bytes.Load())/float64(max(b.proxy.passed.Load(), 1))/1e3, float64(size)/1e6)
	return nil
}

func (b *bench) ask(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.rdx, append([]string{"fleet", args[0], "--server", b.server.URL, "--since=2h"}, args[1:]...)...)
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%w: %s", err, e.Stderr)
	}
	return string(out), err
}

// compare is a curve at half and twice the size of the ring against what is so by construction.
func (b *bench) compare(ctx context.Context, service, version string, share float64, ring int) {
	sizes := []int{ring / 4, ring * 4}
	out, err := b.ask(ctx, "mrc", "--service="+service, "--label=version="+version, fmt.Sprintf("--sizes=%d,%d", sizes[0], sizes[1]), "--format=json")
	if err != nil {
		fmt.Printf("%s %s: %v\n", service, version, err)
		return
	}
	var r struct {
		Curves []struct {
			Profile struct{ Observations int64 }
			Points  []struct {
				Bytes     int
				Low, High float64
				Note      string
				Ratio     *float64 `json:"miss_ratio"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		fmt.Println(err)
		return
	}
	for i, q := range r.Curves[0].Points {
		want := share
		if i == 1 {
			want = 0
		}
		verdict := "holds the truth"
		if q.Low > want || q.High < want {
			verdict = "DOES NOT HOLD THE TRUTH"
		}
		fmt.Printf("%-8s %s at %8d bytes: [%6.3f, %6.3f] %% %s %.3f (%d observations) %s\n", service, version, q.Bytes, 100*q.Low, 100*q.High, verdict, 100*want, r.Curves[0].Profile.Observations, q.Note)
	}
}
