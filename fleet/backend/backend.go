// Package backend runs Grafana Pyroscope on loopback, for tests, benchmarks and the
// demonstration. deploy/pyroscope/build.sh builds it.
//
// The package is rdx's own and may change.
package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Version is the one that deploy/pyroscope builds.
const Version = "1.12.0"

// ErrNotBuilt says that there is no binary.
var ErrNotBuilt = errors.New("pyroscope is not built (make pyroscope builds it, in some ten minutes)")

// Binary is where the server lies, or an error of ErrNotBuilt.
func Binary() (string, error) {
	if path := os.Getenv("RDX_PYROSCOPE"); path != "" {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "rdx-pyroscope", "pyroscope-"+Version)
	if _, err := os.Stat(path); err != nil {
		return "", ErrNotBuilt
	}
	return path, nil
}

// Server is one running node.
type Server struct {
	URL  string
	Dir  string // its log, and its data unless they are shared
	args []string
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// Options of Start. The zero value is one node of its own.
type Options struct {
	Replicas int      // 0: one
	Join     []string // memberlist addresses
	Storage  string   // of all nodes; default below Dir
	Args     []string
}

// ports finds free ones. Another process may take one before it is used: then the node does
// not start, and says so.
func ports(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}

// Start runs nodes that know each other, each with a folder below dir.
func Start(ctx context.Context, dir string, nodes int, o Options) ([]*Server, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	p, err := ports(3 * nodes)
	if err != nil {
		return nil, fmt.Errorf("start pyroscope: %w", err)
	}
	for i := range nodes {
		o.Join = append(o.Join, fmt.Sprintf("127.0.0.1:%d", p[3*i+2]))
	}
	if o.Storage == "" {
		o.Storage = filepath.Join(dir, "storage")
	}
	var all []*Server
	for i := range nodes {
		s := newServer(binary, filepath.Join(dir, "node"+strconv.Itoa(i)), p[3*i], p[3*i+1], p[3*i+2], o)
		if err := s.Run(); err != nil {
			Stop(all)
			return nil, err
		}
		all = append(all, s)
	}
	for _, s := range all {
		if err := s.Ready(ctx); err != nil {
			Stop(all)
			return nil, err
		}
	}
	return all, nil
}

const loopback = "127.0.0.1"

func newServer(binary, dir string, port, grpc, gossip int, o Options) *Server {
	name := filepath.Base(dir)
	args := []string{binary, "-target=all", "-log.level=warn",
		"-server.http-listen-address=" + loopback, "-server.http-listen-port=" + strconv.Itoa(port),
		"-server.grpc-listen-address=" + loopback, "-server.grpc-listen-port=" + strconv.Itoa(grpc),
		"-memberlist.bind-addr=" + loopback, "-memberlist.bind-port=" + strconv.Itoa(gossip),
		"-memberlist.advertise-addr=" + loopback, "-memberlist.advertise-port=" + strconv.Itoa(gossip), "-memberlist.nodename=" + name,
		"-ingester.min-ready-duration=0s", "-ingester.lifecycler.ID=" + name, "-ingester.lifecycler.addr=" + loopback,
		"-storage.backend=filesystem", "-storage.filesystem.dir=" + o.Storage, "-pyroscopedb.data-path=" + filepath.Join(dir, "db"),
		"-compactor.data-dir=" + filepath.Join(dir, "compactor"), "-blocks-storage.bucket-store.sync-dir=" + filepath.Join(dir, "sync"),
		"-usage-stats.enabled=false", "-self-profiling.disable-push=true"}
	for _, ring := range []string{"distributor.ring", "query-scheduler.ring", "store-gateway.sharding-ring", "compactor.ring", "overrides-exporter.ring"} {
		args = append(args, "-"+ring+".instance-addr="+loopback, "-"+ring+".instance-id="+name)
	}
	args = append(args, "-query-frontend.instance-addr="+loopback)
	for _, j := range o.Join {
		args = append(args, "-memberlist.join="+j)
	}
	if o.Replicas > 0 {
		// A query asks all nodes of both rings, and does without one that is gone only where there is more
		// than one copy in each.
		n := strconv.Itoa(o.Replicas)
		args = append(args, "-distributor.replication-factor="+n, "-store-gateway.sharding-ring.replication-factor="+n)
	}
	return &Server{URL: fmt.Sprintf("http://%s:%d", loopback, port), Dir: dir, name: name, args: append(args, o.Args...)}
}

// Run starts the node, also again after Kill or Stop, with what it has kept.
func (s *Server) Run() error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("start pyroscope: %w", err)
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start pyroscope: %w", err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.Dir, log, log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start pyroscope: %w", err)
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(s.cmd, s.done)
	return nil
}

func (s *Server) log() string { return filepath.Join(s.Dir, "log") }

// Ready waits until the node takes requests.
func (s *Server) Ready(ctx context.Context) error {
	client := http.Client{Timeout: 2 * time.Second}
	for {
		resp, err := client.Get(s.URL + "/ready")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.done:
			b, _ := os.ReadFile(s.log())
			return fmt.Errorf("pyroscope has ended: %s", b[max(0, len(b)-2000):])
		case <-ctx.Done():
			return fmt.Errorf("pyroscope is not ready: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// PID of the node.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the node at once, by SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Signal sends a signal.
func (s *Server) Signal(sig unix.Signal) error { return s.cmd.Process.Signal(sig) }

// Stop ends nodes, in time if they can.
func Stop(all []*Server) {
	for _, s := range all {
		_ = s.cmd.Process.Signal(unix.SIGTERM)
	}
	for _, s := range all {
		select {
		case <-s.done:
		case <-time.After(10 * time.Second):
			s.Kill()
		}
	}
}
