package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/fleet"
	"github.com/rdx-profiler/rdx/fleet/backend"
)

// The test binary stands in for sessions and for busy processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "__session" {
		session(os.Args[2])
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "__busy" {
		for start := time.Now(); time.Since(start) < time.Minute; {
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// session is a made-up one that behaves in some way.
func session(mode string) {
	in := json.NewDecoder(os.Stdin)
	var r Request
	if err := in.Decode(&r); err != nil {
		os.Exit(9)
	}
	switch mode {
	case "good":
		answer(r)
	case "patient": // until it is asked to end
		_, _ = io.Copy(io.Discard, os.Stdin)
		answer(r)
	case "error":
		_ = WriteResult(os.Stdout, Result{Error: "no such\nprocess"}, nil, nil)
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: \x1b[31mboom")
		os.Exit(3)
	case "garbage":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("garbage"), 1<<20))
	case "liar":
		fmt.Println(`{"People":30000000,"Raw":-1}`)
	case "short":
		fmt.Println(`{"People":3000,"Raw":3000}`)
	case "works":
		var asked atomic.Bool
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			asked.Store(true)
		}()
		for rounds := 0; !asked.Load(); rounds++ {
		}
		answer(r)
	case "wedged":
		time.Sleep(time.Hour)
	case "hog":
		var hog [][]byte
		for range 400 {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			hog = append(hog, b)
		}
		time.Sleep(time.Minute)
		fmt.Println(len(hog))
	}
}

func answer(r Request) {
	p := backend.Made{Name: "made", Share: .1, Lines: 1 << 12, Seed: uint64(r.PID), N: 50}.Profile()
	w := fleet.Window{Profile: p, Weight: r.Weight, Drawn: r.Weight > 1, Time: time.Now()}
	people, err := w.People()
	if err != nil {
		os.Exit(8)
	}
	raw, err := w.Pack()
	if err != nil {
		os.Exit(8)
	}
	_ = WriteResult(os.Stdout, Result{Time: w.Time, CPU: time.Second, Held: 10 * time.Millisecond, Observations: 50, Config: fleet.Config(p)}, people, raw)
}

func TestChild(t *testing.T) {
	for mode, want := range map[string]string{
		"good": "", "error": "no such process", "crash": "boom", "garbage": "read result", "liar": "profiles of", "short": "read result",
		"wedged": "did not end in time", "hog": "MiB of memory",
	} {
		t.Run(mode, func(t *testing.T) {
			c := child{args: []string{os.Args[0], "__session", mode}, memory: 120 << 20, grace: 2 * time.Second}
			if mode == "hog" {
				c.grace = time.Minute
			}
			start := time.Now()
			o := c.run(t.Context(), Request{Key: Key{PID: 1}, Weight: 2})
			if want == "" {
				if o.err != nil || len(o.raw) == 0 || len(o.people) == 0 || o.Observations != 50 || o.cpu == 0 || o.memory == 0 {
					t.Errorf("%+v: %v", o.Result, o.err)
				}
				return
			}
			if o.err == nil || !strings.Contains(o.err.Error(), want) || strings.Contains(o.err.Error(), "\n") {
				t.Errorf("%v, want %q", o.err, want)
			}
			if elapsed := time.Since(start); elapsed > 30*time.Second {
				t.Errorf("%v", elapsed)
			}
		})
	}
	// One that is asked to end gives what it has.
	ctx, cancel := context.WithCancel(t.Context())
	c := child{args: []string{os.Args[0], "__session", "patient"}, memory: 1 << 30, grace: 20 * time.Second}
	time.AfterFunc(300*time.Millisecond, cancel)
	if o := c.run(ctx, Request{Key: Key{PID: 1}, Duration: time.Hour, Weight: 1}); o.err != nil || len(o.raw) == 0 {
		t.Errorf("asked to end: %v", o.err)
	}
}

// What a session costs is told while it runs, and no more than it comes to.
func TestChildTellsSpent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var told time.Duration
	c := child{args: []string{os.Args[0], "__session", "works"}, memory: 1 << 30, grace: 20 * time.Second, spend: func(d time.Duration) {
		if told += d; told > 500*time.Millisecond {
			cancel()
		}
	}}
	o := c.run(ctx, Request{Key: Key{PID: 1}, Duration: time.Minute, Weight: 1})
	if o.err != nil || told < 500*time.Millisecond || told != o.told || o.told > o.cpu+20*time.Millisecond {
		t.Errorf("told %v, counted %v of %v: %v", told, o.told, o.cpu, o.err)
	}
}

func FuzzResult(f *testing.F) {
	var b bytes.Buffer
	_ = WriteResult(&b, Result{Observations: 3}, []byte("people"), []byte("raw"))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) { _, _, _, _ = readResult(bytes.NewReader(b)) })
}

// server is a Pyroscope that answers as it is told.
type server struct {
	*httptest.Server
	status atomic.Int32
	mu     sync.Mutex
	bodies [][]byte
	auth   []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.auth = append(s.auth, r.Header.Get("Authorization"))
		if code := int(s.status.Load()); code != http.StatusOK {
			w.WriteHeader(code)
			return
		}
		s.bodies = append(s.bodies, b)
		w.Header().Set("Content-Type", "application/proto")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) got() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// busy starts processes that work, with a variable in their environment.
func busy(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "busy bee") // another file: rdx does not sample itself
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(path, b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "__busy")
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

type running struct {
	*Agent
	log    *syncBuffer
	reload chan os.Signal
	end    context.CancelFunc
	done   chan error
	config *Config // what a reload reads
}

func start(t *testing.T, url, mode string, change func(*Config)) *running {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(secretToken), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	c.Server = fleet.Access{Server: url, TokenFile: token}
	c.Period, c.Discover, c.Worth = 10*time.Second, time.Second, time.Millisecond
	c.Spool.Dir = filepath.Join(t.TempDir(), "spool")
	c.Listen = "unix:" + filepath.Join(t.TempDir(), "sock")
	c.Only = []Match{{Exe: pattern(t, "busy bee$")}}
	c.Overhead = 10
	if change != nil {
		change(&c)
	}
	r := &running{log: &syncBuffer{}, reload: make(chan os.Signal, 1), done: make(chan error, 1), config: &c}
	e := zap.NewProductionEncoderConfig()
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(e), zapcore.AddSync(r.log), zap.DebugLevel))
	var err error
	r.Agent, err = New(Options{Config: c, Reload: func() (Config, error) { return *r.config, nil }, Log: log, Version: "test", Session: []string{os.Args[0], "__session", mode}})
	if err != nil {
		t.Fatal(err)
	}
	// What this process has done before is not the agent's, which would owe it for periods.
	if r.Agent.agentCPU, err = ownCPU(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.end = cancel
	go func() { r.done <- r.Run(ctx, r.reload) }()
	return r
}

func pattern(t *testing.T, s string) *Pattern {
	t.Helper()
	c, err := ParseConfig([]byte("only: [{exe: '" + s + "'}]"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Only[0].Exe
}

func (r *running) stop(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	r.end()
	select {
	case err := <-r.done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the agent does not end")
	}
	return time.Since(start)
}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(r.Agent.config.Listen, "unix:"))
	}}}
	var resp *http.Response
	eventually(t, "the agent listens", func() bool {
		var err error
		resp, err = c.Get("http://agent" + path)
		return err == nil
	})
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 30 s: %s", what)
}

const secretToken = "t0ps3cr3t-token-value"

// The agent samples who works, and not who asks not to be; sends what it finds; says how it is; and keeps its
// token to itself.
func TestAgent(t *testing.T) {
	s := newServer(t)
	busy(t, "OTEL_SERVICE_NAME=bee")
	off := busy(t, "RDX_PROFILE=off")
	r := start(t, s.URL, "good", func(c *Config) { c.Sessions = 8 })
	eventually(t, "a window arrives", func() bool { return s.got() > 0 })
	eventually(t, "it is out of the spool", func() bool { n, _ := r.spool.Held(); return n == 0 })
	if code, body := r.get(t, "/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d, %s", code, body)
	}
	_, text := r.get(t, "/metrics")
	for _, want := range []string{`rdx_agent_sessions_total{result="done"} 1`, `rdx_agent_pushes_total{outcome="taken"} 1`, `rdx_agent_processes{state="asks not to be"} 1`,
		`rdx_agent_windows_dropped_total{reason="spool full"} 0`, "rdx_agent_observations_total 50", `rdx_agent_spent_seconds_total{by="holds"} 0.01`, `rdx_agent_info{version="test"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics have no %s", want)
		}
	}
	if code, _ := r.get(t, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("/debug/pprof: %d", code)
	}
	s.mu.Lock()
	body, auth := string(s.bodies[0]), s.auth[0]
	s.mu.Unlock()
	for _, want := range []string{"service_name", "bee", "rdx_raw", "host", "rdx_config"} {
		if !strings.Contains(body, want) {
			t.Errorf("the request has no %s", want)
		}
	}
	if auth != "Bearer "+secretToken {
		t.Errorf("authorization %q", auth)
	}
	bad := *r.config
	bad.Overhead = 99
	r.config = &bad
	r.reload <- unix.SIGHUP
	eventually(t, "a bad configuration is refused", func() bool { return strings.Contains(r.log.String(), "not taken") })
	good := bad
	good.Overhead = 2
	r.config = &good
	r.reload <- unix.SIGHUP
	eventually(t, "a good one is taken", func() bool { return strings.Contains(r.log.String(), "read again") })
	if elapsed := r.stop(t); elapsed > ending {
		t.Errorf("it took %v to end", elapsed)
	}
	if log := r.log.String(); strings.Contains(log, secretToken) || !strings.Contains(log, "the agent has ended") {
		t.Errorf("log: %s", log)
	}
	if off.ProcessState != nil {
		t.Error("a process was ended")
	}
}

// What systemd is told, from the start to the end.
func TestAgentTellsSystemd(t *testing.T) {
	s := newServer(t)
	l := listenAsSystemd(t, "200000")
	told := make(chan string, 1000)
	go func() {
		for b := make([]byte, 1000); ; {
			n, err := l.Read(b)
			if err != nil {
				return
			}
			told <- string(b[:n])
		}
	}()
	await := func(prefix string) {
		t.Helper()
		for end := time.After(30 * time.Second); ; {
			select {
			case m := <-told:
				if strings.HasPrefix(m, prefix) {
					return
				}
			case <-end:
				t.Fatalf("systemd is not told %s", prefix)
			}
		}
	}
	r := start(t, s.URL, "good", nil)
	await("READY=1")
	await("WATCHDOG=1")
	await("STATUS=")
	r.reload <- unix.SIGHUP
	await("RELOADING=1")
	await("READY=1")
	await("WATCHDOG=1")
	r.stop(t)
	await("STOPPING=1")
}

// Of one message the log has a few a minute, however often it comes; the errors of others it still has.
func TestLogIsBounded(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	was := os.Stderr
	os.Stderr = w
	log := Logger("info")
	os.Stderr = was
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		said <- string(b)
	}()
	for range 350 {
		log.Warn("the server throttles")
	}
	log.Error("another")
	log.Debug("too little")
	w.Close()
	text := <-said
	// Five, and of those that follow one in a hundred.
	if n := strings.Count(text, "the server throttles"); n < 5 || n > 10 {
		t.Errorf("%d lines of one message", n)
	}
	if !strings.Contains(text, "another") || strings.Contains(text, "too little") {
		t.Errorf("log: %s", text)
	}
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// SIGTERM in the middle of a session: what there is is kept, though the server is gone.
func TestAgentEndsInTime(t *testing.T) {
	s := newServer(t)
	s.status.Store(http.StatusServiceUnavailable)
	busy(t)
	r := start(t, s.URL, "patient", nil)
	eventually(t, "a session runs", func() bool {
		_, text := r.get(t, "/metrics")
		return strings.Contains(text, "rdx_agent_sessions_running 1")
	})
	marks := func() int {
		m, _ := filepath.Glob(filepath.Join(r.config.Spool.Dir, "*"+openSuffix))
		return len(m)
	}
	eventually(t, "its mark is on disk", func() bool { return marks() == 1 })
	if elapsed := r.stop(t); elapsed > ending {
		t.Errorf("it took %v to end", elapsed)
	}
	if files, _ := filepath.Glob(filepath.Join(r.config.Spool.Dir, "*"+spoolSuffix)); len(files) != 1 || marks() != 0 {
		t.Errorf("%d windows in the spool, %d marks", len(files), marks())
	}
	// The next agent sends it.
	s.status.Store(http.StatusOK)
	r = start(t, s.URL, "patient", func(c *Config) { c.Spool.Dir = r.config.Spool.Dir })
	eventually(t, "the window arrives", func() bool { return s.got() == 1 })
	r.stop(t)
}

// A session that does not end when asked is killed in time.
func TestAgentEndsWedgedSessions(t *testing.T) {
	s := newServer(t)
	busy(t)
	r := start(t, s.URL, "wedged", nil)
	eventually(t, "a session runs", func() bool {
		_, text := r.get(t, "/metrics")
		return strings.Contains(text, "rdx_agent_sessions_running 1")
	})
	if elapsed := r.stop(t); elapsed > ending {
		t.Errorf("it took %v to end", elapsed)
	}
}

func TestHealth(t *testing.T) {
	now := time.Now()
	h := &health{beat: now, patience: time.Minute}
	if p := h.problem(now); p != "" {
		t.Error(p)
	}
	h.session(15*time.Second, 0, nil)
	if p := h.problem(now); p != "" {
		t.Error(p)
	}
	h.session(15*time.Second, 0, nil)
	if p := h.problem(now); !strings.Contains(p, "without one observation") {
		t.Errorf("blind: %q", p)
	}
	h.session(time.Second, 1, nil)
	if p := h.problem(now); p != "" {
		t.Error(p)
	}
	for range 3 {
		h.session(0, 0, fmt.Errorf("no BPF"))
	}
	if p := h.problem(now); !strings.Contains(p, "no BPF") {
		t.Errorf("failing: %q", p)
	}
	h.session(0, 0, nil)
	if p := h.problem(now.Add(2 * time.Minute)); !strings.Contains(p, "not moved") {
		t.Errorf("stuck: %q", p)
	}
}

// listenAsSystemd is where it listens, with so many microseconds until its watchdog bites.
func listenAsSystemd(t *testing.T, watchdog string) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", watchdog)
	t.Setenv("WATCHDOG_PID", "")
	return l
}

func TestNotify(t *testing.T) {
	l := listenAsSystemd(t, "20000000")
	n := newNotifier()
	n.ready()
	n.reloading()
	b := make([]byte, 100)
	k, err := l.Read(b)
	if err != nil || string(b[:k]) != "READY=1" {
		t.Errorf("%q, %v", b[:k], err)
	}
	k, err = l.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:k]), "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("%q, %v", b[:k], err)
	}
	if d := watchdog(); d != 10*time.Second {
		t.Errorf("watchdog %v", d)
	}
}
