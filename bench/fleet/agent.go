package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	rdxagent "github.com/rdx-profiler/rdx/agent"
)

// agent is one rdx agent, as often as it is started.
type agent struct {
	host, config, socket, disk string
	rdx                        string
	cmd                        *exec.Cmd
	began                      time.Time
	lived                      time.Duration

	starts, killed, sessionsKilled int
	early                          int // ended before it could take the signal, and had begun nothing

	memory [3][]float64 // MiB, with sessions, by thirds of the run
	alone  [3][]float64 // without them
	files  [3][]float64
	log    agentLog
	total  map[string]float64 // metrics of those that have ended
	latest map[string]float64
}

// newAgent makes one ready to run.
func (b *bench) newAgent(host string) (*agent, error) {
	a := &agent{host: host, config: filepath.Join(b.dir, host+".yaml"), socket: filepath.Join(b.dir, host+".sock"), disk: filepath.Join(b.dir, host+"-disk"), rdx: b.rdx, total: map[string]float64{}}
	if err := os.MkdirAll(a.disk, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("none", a.disk, "tmpfs", 0, "size=8m"); err != nil {
		return nil, fmt.Errorf("mount the spool's disk: %w", err)
	}
	config := fmt.Sprintf("server: {url: '%s'}\nhost: %s\nperiod: %v\ndiscover: 5s\nworth: 20ms\noverhead: %g\ntarget_overhead: 2\nspool: {dir: '%s/spool', size: 4MiB}\nlisten: 'unix:%s'\nonly: [{exe: '^%s/%s/'}]\nlog_level: info\n",
		b.proxy.url, host, b.period, b.overhead, a.disk, a.socket, b.dir, host)
	if err := os.WriteFile(a.config, []byte(config), 0o600); err != nil {
		return nil, errors.Join(err, unix.Unmount(a.disk, unix.MNT_DETACH))
	}
	return a, nil
}

func (a *agent) run() error {
	a.cmd = exec.Command(a.rdx, "agent", "--config", a.config)
	a.cmd.Stderr = &a.log
	a.starts++
	a.began = time.Now()
	return a.cmd.Start()
}

// end stops it, by SIGTERM, and adds up what it said of itself.
func (b *bench) endAgent(a *agent) {
	if a.cmd == nil {
		return
	}
	b.stopAgent(a, unix.SIGTERM)
}

func (b *bench) stopAgent(a *agent, sig unix.Signal) {
	a.scrape()
	start := time.Now()
	_ = a.cmd.Process.Signal(sig)
	_ = a.cmd.Wait()
	if elapsed := time.Since(start); sig == unix.SIGTERM && elapsed > 6*time.Second { // it gives itself five, and must then be scheduled
		b.fail("agent %s took %v to end by %v", a.host, elapsed, sig)
	}
	status, _ := a.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if sig == unix.SIGKILL {
		a.killed++
	} else if status.Signaled() && status.Signal() == sig && a.latest == nil {
		a.early++
	} else if a.log.counters == nil {
		b.fail("agent %s did not say at its end what it has done", a.host)
	} else {
		a.latest = a.log.counters
	}
	a.log = agentLog{}
	for k, v := range a.latest {
		a.total[k] += v
	}
	a.lived += time.Since(a.began)
	a.latest, a.cmd = nil, nil
}

// agentLog keeps the last line of an agent's log and passes errors on.
type agentLog struct {
	rest     []byte
	counters map[string]float64
}

func (l *agentLog) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.rest = rest
		var said struct {
			Level    string             `json:"level"`
			Message  string             `json:"msg"`
			Counters map[string]float64 `json:"counters"`
		}
		err := json.Unmarshal(line, &said)
		switch {
		case err != nil || (said.Level != "info" && said.Level != "warn"):
			fmt.Fprintf(os.Stderr, "%s\n", line)
		case said.Message == rdxagent.Ended:
			l.counters = said.Counters
		}
	}
}

func (b *bench) restartAgent(a *agent, sig unix.Signal) {
	if a.cmd == nil {
		return
	}
	b.stopAgent(a, sig)
	if err := a.run(); err != nil {
		b.fail("agent: %v", err)
	}
}

// sessions are the processes of the agent's sessions.
func (a *agent) sessions() (pids []int) {
	if a.cmd == nil {
		return nil
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", a.cmd.Process.Pid, a.cmd.Process.Pid))
	if err != nil {
		return nil
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", a.cmd.Process.Pid))
	for _, t := range tasks {
		if more, err := os.ReadFile(t); err == nil {
			b = append(append(b, ' '), more...)
		}
	}
	for _, f := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (a *agent) sample(at float64) {
	if a.cmd == nil {
		return
	}
	a.scrape()
	third := min(int(3*at), 2)
	agent := pss(a.cmd.Process.Pid)
	sum := agent
	for _, pid := range a.sessions() {
		sum += pss(pid)
	}
	a.memory[third], a.alone[third] = append(a.memory[third], sum), append(a.alone[third], agent)
	if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.cmd.Process.Pid)); err == nil {
		a.files[third] = append(a.files[third], float64(len(open)))
	}
}

// pss is a process's memory in MiB, where what several share counts in parts.
func pss(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}

func (a *agent) scrape() {
	c := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", a.socket)
	}}}
	resp, err := c.Get("http://agent/metrics")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	found := map[string]float64{}
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		name, _, ok := strings.Cut(s.Text(), " ")
		if i := strings.LastIndexByte(s.Text(), ' '); ok && i > 0 && strings.HasPrefix(name, "rdx_agent_") {
			if v, err := strconv.ParseFloat(s.Text()[i+1:], 64); err == nil {
				found[s.Text()[:i]] = v
			}
		}
	}
	a.latest = found
}

// fill takes all of the disk.
func (a *agent) fill() {
	f, err := os.Create(filepath.Join(a.disk, "full"))
	if err != nil {
		return
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 1<<16))
	}
}

func (a *agent) free() { _ = os.Remove(filepath.Join(a.disk, "full")) }

func (a *agent) print() {
	fmt.Printf("agent %s: started %d times, of these %d ended before they had begun, %d sessions killed, lived %v\n", a.host, a.starts, a.early, a.sessionsKilled, a.lived.Round(time.Second))
	for third := range 3 {
		fmt.Printf("  third %d: memory %.0f MiB at the median, %.0f at most, of which the agent %.1f and %.1f; %.0f descriptors at the median, %.0f at most\n", third+1,
			median(a.memory[third]), largest(a.memory[third]), median(a.alone[third]), largest(a.alone[third]), median(a.files[third]), largest(a.files[third]))
	}
	var names []string
	for k, v := range a.total {
		if v != 0 && strings.Contains(k, "_total") {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		fmt.Printf("  %s %.6g\n", strings.TrimPrefix(k, "rdx_agent_"), a.total[k])
	}
	spent := a.total[`rdx_agent_spent_seconds_total{by="agent"}`] + a.total[`rdx_agent_spent_seconds_total{by="sessions"}`] + a.total[`rdx_agent_spent_seconds_total{by="holds"}`]
	fmt.Printf("  by its own account %.2f s, %.3f %% of the machine's CPU time\n", spent, 100*spent/a.lived.Seconds()/float64(cpus()))
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func largest(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Max(v)
}

func cpus() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 1
	}
	return set.Count()
}

// proxy stands before the server and misbehaves when told.
type proxy struct {
	url           string
	mode          atomic.Value // string
	passed, bytes atomic.Int64 // what was sent again because the answer was lost counts once, as it does for the server
	seen          sync.Map     // by hash of the request
}

type requestHash struct{}

func newProxy(to string) (*proxy, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{url: "http://" + l.Addr().String()}
	p.mode.Store("")
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	forward.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode != http.StatusOK {
			return nil
		}
		if _, again := p.seen.LoadOrStore(r.Request.Context().Value(requestHash{}), true); !again {
			p.passed.Add(1)
			p.bytes.Add(r.Request.ContentLength)
		}
		return nil
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch p.mode.Load().(string) {
			case "garbage":
				w.Header().Set("Content-Type", "application/proto")
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, strings.Repeat("\x00\xff garbage", 1<<15))
			case "slow":
				select {
				case <-r.Context().Done():
				case <-time.After(time.Minute):
				}
			case "429":
				w.WriteHeader(http.StatusTooManyRequests)
			default:
				body, err := io.ReadAll(r.Body)
				if err != nil {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestHash{}, sha256.Sum256(body))))
			}
		}))
	}()
	return p, nil
}
