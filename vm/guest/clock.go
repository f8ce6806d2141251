package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"
)

// clockArg on the kernel's command line asks for what follows in place of the other tests: the wall clock is set an hour
// ahead and two hours back while an agent runs. Windows go on to come, each with a time at which it was, and none is lost.
const clockArg = "rdx.clock"

// busyArg makes this program a service that works a tenth of the time.
const busyArg = "busy"

func runBusy() {
	array := make([]uint64, 1<<16)
	for n := uint64(0); ; {
		for start := time.Now(); time.Since(start) < 10*time.Millisecond; n++ {
			array[n*0x9e3779b97f4a7c15>>48]++
		}
		time.Sleep(90 * time.Millisecond)
	}
}

const (
	clockPeriod = 10 * time.Second
	// windowLimit is how long a window is waited for: emulated sessions cost so much that the budget pays for one in several periods.
	windowLimit = 20 * clockPeriod
	// mostWindows are more than come.
	mostWindows = 100
	serviceAt   = "/tmp/busy/service"
)

// A window is one that was pushed.
type window struct {
	at    time.Time // its first profile's
	wrong error
}

// pushed is a server that takes everything.
type pushed chan window

func (p pushed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	at, wrong := timeOf(body)
	p <- window{at, errors.Join(err, wrong)}
	w.Header().Set("Content-Type", "application/proto")
}

// came are those that have come.
func (p pushed) came() (all []window) {
	for {
		select {
		case w := <-p:
			all = append(all, w)
		default:
			return all
		}
	}
}

// next waits for one.
func (p pushed) next(limit time.Duration) (window, error) {
	select {
	case w := <-p:
		return w, nil
	case <-time.After(limit): // by the monotonic clock
		return window{}, fmt.Errorf("no window within %v", limit)
	}
}

// timeOf is that of the first profile in a request, which lies there packed.
func timeOf(body []byte) (time.Time, error) {
	at := bytes.Index(body, []byte{0x1f, 0x8b, 8})
	if at < 0 {
		return time.Time{}, errors.New("no profile in what was pushed")
	}
	z, err := gzip.NewReader(bytes.NewReader(body[at:]))
	if err != nil {
		return time.Time{}, err
	}
	z.Multistream(false)
	raw, err := io.ReadAll(z)
	if err != nil {
		return time.Time{}, err
	}
	p, err := profile.ParseUncompressed(raw)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, p.TimeNanos), nil
}

func testClock(kernel string) {
	said, err := stepClock()
	row(kernel, said, verdictOf(err))
}

func stepClock() (said string, err error) {
	if err := loopbackUp(); err != nil {
		return "", err
	}
	server, at, err := servePushes()
	if err != nil {
		return "", err
	}
	if err := startService(); err != nil {
		return "", err
	}
	var log bytes.Buffer
	agent, err := startAgent(at, fmt.Sprintf("period: %v\ndiscover: 2s\nworth: 20ms\noverhead: 10\ntarget_overhead: 10\n", clockPeriod), &log)
	if err != nil {
		return "", err
	}
	type stretch struct{ from, to time.Time }
	var was []stretch
	var windows []window
	for _, step := range []time.Duration{0, time.Hour, -2 * time.Hour} {
		windows = append(windows, server.came()...)
		if err := setClock(step); err != nil {
			return "", err
		}
		from := time.Now().Round(0)
		w, err := server.next(windowLimit)
		if err != nil {
			_ = agent.Process.Kill()
			return "", fmt.Errorf("the clock set by %v: %w; the agent says: %s", step, err, log.String())
		}
		windows, was = append(windows, w), append(was, stretch{from, time.Now().Round(0)})
	}
	_ = agent.Process.Signal(unix.SIGTERM)
	if err := agent.Wait(); err != nil {
		return "", fmt.Errorf("the agent ended: %w: %s", err, log.String())
	}
	windows = append(windows, server.came()...)
	var wrong error
	for _, w := range windows {
		// One that was under way when the clock was set has the time of before.
		in := slices.ContainsFunc(was, func(s stretch) bool {
			return !w.at.Before(s.from.Add(-2*clockPeriod)) && !w.at.After(s.to.Add(2*clockPeriod))
		})
		if wrong = errors.Join(wrong, w.wrong); !in {
			wrong = errors.Join(wrong, fmt.Errorf("a window has the time %v", w.at))
		}
	}
	if text := log.String(); strings.Contains(text, "panic") || strings.Contains(text, "dropped") {
		wrong = errors.Join(wrong, errors.New(text))
	}
	return fmt.Sprintf("%d windows", len(windows)), wrong
}

// servePushes runs a server that takes what agents push.
func servePushes() (server pushed, at net.Addr, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server = make(pushed, mostWindows)
	go func() { _ = http.Serve(l, server) }()
	return server, l.Addr(), nil
}

// agentAt is where an agent's metrics are to be had.
const agentAt = "/tmp/agent.sock"

// startAgent runs an agent of the service alone, with more lines of configuration.
func startAgent(server net.Addr, more string, log *bytes.Buffer) (*exec.Cmd, error) {
	const config = "/tmp/agent.yaml"
	text := fmt.Sprintf("server: {url: 'http://%s'}\nhost: guest\nspool: {dir: /tmp/spool}\nlisten: 'unix:%s'\nonly: [{exe: '^%s$'}]\n%s", server, agentAt, serviceAt, more)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	agent := exec.Command("/rdx", "agent", "--config", config)
	agent.Stderr = log
	return agent, agent.Start()
}

// setClock sets the clock.
func setClock(by time.Duration) error {
	if by == 0 {
		return nil
	}
	t := unix.NsecToTimeval(time.Now().Add(by).UnixNano())
	return os.NewSyscallError("settimeofday", unix.Settimeofday(&t))
}

// startService runs this program under another name.
func startService() error {
	if err := copySelf(); err != nil {
		return err
	}
	return exec.Command(serviceAt, busyArg).Start()
}

// copySelf puts this program where services are.
func copySelf() error {
	b, err := os.ReadFile("/init")
	if err == nil {
		err = os.MkdirAll("/tmp/busy", 0o755)
	}
	if err == nil {
		err = os.WriteFile(serviceAt, b, 0o755)
	}
	return err
}

// loopbackUp brings the loopback interface up.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(s)
	flags, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	flags.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("set the loopback interface up", unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, flags))
}
