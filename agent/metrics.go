package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what the agent says of itself.
type metrics struct {
	registry *prometheus.Registry

	sessions     *prometheus.CounterVec // by result
	observations prometheus.Counter
	lost         *prometheus.CounterVec // samples, by reason
	watched      prometheus.Counter     // CPU time of sampled processes
	cpu          *prometheus.CounterVec // of the machine, by whether it could be drawn
	spent        *prometheus.CounterVec // by what
	allowed      prometheus.Counter
	dropped      *prometheus.CounterVec // windows, by reason
	pushes       *prometheus.CounterVec
	pushSeconds  prometheus.Histogram
	processes    *prometheus.GaugeVec // by state
	running      prometheus.Gauge
	childMemory  prometheus.Gauge
	cutLabels    prometheus.Counter
	reloads      *prometheus.CounterVec
}

func newMetrics(version string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "rdx_agent", Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "rdx_agent", Name: name, Help: help}, []string{label})
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "rdx_agent", Name: name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	m.sessions = vector("sessions_total", "Sessions that have ended, by how.", "result")
	m.observations = counter("observations_total", "Observations made.")
	m.lost = vector("samples_lost_total", "Samples that did not become observations, by reason.", "reason")
	m.watched = counter("watched_cpu_seconds_total", "CPU time of processes while they were sampled.")
	m.cpu = vector("machine_cpu_seconds_total", "CPU time of the machine, by whether its process could be drawn.", "state")
	m.spent = vector("spent_seconds_total", "What sampling has cost the machine: threads held and what follows from it, CPU time of sessions and of the agent.", "by")
	m.allowed = counter("budget_seconds_total", "What it was allowed to cost.")
	m.dropped = vector("windows_dropped_total", "Windows that never reached the server, by reason.", "reason")
	m.pushes = vector("pushes_total", "Requests to the server, by outcome.", "outcome")
	m.pushSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "rdx_agent", Name: "push_seconds", Help: "Time that the server took.", Buckets: prometheus.ExponentialBuckets(.005, 4, 8)})
	m.processes = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "rdx_agent", Name: "processes", Help: "Processes at the last look, by state."}, []string{"state"})
	m.registry.MustRegister(m.pushSeconds, m.processes)
	m.running = gauge("sessions_running", "Sessions now.")
	m.childMemory = gauge("session_memory_peak_bytes", "The most memory that a session has taken.")
	m.cutLabels = counter("label_sets_cut_total", "Windows whose labels would have been one set too many in a day.")
	m.reloads = vector("reloads_total", "Configurations read again, by result.", "result")
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "rdx_agent", Name: "info", Help: "Always 1."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	m.registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, r := range []string{dropFull, dropOld, dropDisk, dropRefused, dropThrottle, dropKilled, dropDamaged} {
		m.dropped.WithLabelValues(r) // 0 is to be seen, too
	}
	return m
}

// counters are those of the agent itself that are not 0, by name and labels as in what a reader of the metrics gets.
func (m *metrics) counters() map[string]float64 {
	found := map[string]float64{}
	families, _ := m.registry.Gather() // what could not be gathered is left out
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "rdx_agent_") {
			continue
		}
		for _, c := range f.GetMetric() {
			name := f.GetName()
			for _, l := range c.GetLabel() { // one at most
				name += fmt.Sprintf("{%s=%q}", l.GetName(), l.GetValue())
			}
			if v := c.GetCounter().GetValue(); v != 0 {
				found[name] = v
			}
		}
	}
	return found
}

func (m *metrics) watchSpool(s *Spool) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "rdx_agent", Name: "spool_windows", Help: "Windows that wait."}, func() float64 { n, _ := s.Held(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "rdx_agent", Name: "spool_bytes", Help: "Bytes that wait."}, func() float64 { _, n := s.Held(); return float64(n) }))
}

// health is red when the agent does not do what it is for.
type health struct {
	mu       sync.Mutex
	beat     time.Time // of the main loop
	patience time.Duration
	// Since the last observation: CPU time watched, and sessions.
	blind         time.Duration
	blindSessions int
	failed        int // sessions in a row that did not begin
	lastError     string
}

const (
	// A session of a busy process makes some ten observations in a second of CPU time.
	blindAfter  = 20 * time.Second
	failedAfter = 3
)

func (h *health) live(at time.Time) {
	h.mu.Lock()
	h.beat = at
	h.mu.Unlock()
}

func (h *health) session(watched time.Duration, observations int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.failed++
		h.lastError = err.Error()
		return
	}
	h.failed = 0
	h.blind += watched
	h.blindSessions++
	if observations > 0 {
		h.blind, h.blindSessions = 0, 0
	}
}

// problem says what is wrong, "" if nothing is.
func (h *health) problem(now time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case now.Sub(h.beat) > h.patience:
		return fmt.Sprintf("the agent has not moved for %v", now.Sub(h.beat).Round(time.Second))
	case h.blind >= blindAfter:
		return fmt.Sprintf("%v of CPU time in %d sessions were watched without one observation (see samples_lost_total in /metrics, rdx doctor)", h.blind.Round(time.Second), h.blindSessions)
	case h.failed >= failedAfter:
		return fmt.Sprintf("%d sessions in a row have failed, the last: %s", h.failed, h.lastError)
	}
	return ""
}

// serve answers on one address and takes nothing but the two paths' GET.
func serve(address string, m *metrics, h *health) (close func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	network, at := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, at = "unix", path
		if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() == os.ModeSocket {
			_ = os.Remove(path) // of an agent that was killed
		}
	}
	l, err := net.Listen(network, at)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if network == "unix" {
		if err := os.Chmod(at, 0o660); err != nil {
			l.Close()
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		problem := h.problem(time.Now())
		w.Header().Set("Content-Type", "application/json")
		if problem != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ok": problem == "", "problem": problem})
	})
	s := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 15 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			h.session(0, 0, fmt.Errorf("listen: %w", err))
		}
	}()
	return func() { s.Close() }, nil
}
