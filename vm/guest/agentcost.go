package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// costArg on the kernel's command line asks for what follows in place of the other tests: how much slower programs go on that
// want all of the processors' time while an agent runs. An instruction takes a nanosecond here, whoever runs it, so that two
// stretches without an agent are alike; caches that go cold cost nothing. There is one processor: of two that are emulated in
// turns the time says nothing.
const costArg = "rdx.cost"

// workerArg makes this program one that works all the time, on so many KiB, and counts its rounds in a file.
const workerArg = "worker"

const (
	workersEach = 2 // for each processor
	bareStretch = 15 * time.Second
	// agentStretch is long enough for some sessions.
	agentStretch = 240 * time.Second
	// mostCost is what the agent may cost of the machine in its first four periods, in percent: a session is begun before it is paid for.
	mostCost = 1.5
	// Two stretches that differ by no more are of a machine at rest: so many are waited for.
	settled, mostSettling = .002, 6
	// farthestAccount is by how many points of the machine its own account may be wrong.
	farthestAccount = .25
)

// roundFile maps the file in which a worker counts.
func roundFile(path string) (*uint64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(8); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return (*uint64)(unsafe.Pointer(&b[0])), nil
}

func runWorker(path, kib string) {
	rounds, err := roundFile(path)
	n, atoiErr := strconv.Atoi(kib)
	if err := errors.Join(err, atoiErr); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	array := make([]uint64, n<<10/8)
	const each = 1 << 14
	for i := 0; ; {
		for range each {
			i = (i + 37) % len(array)
			array[i]++
		}
		*rounds++
	}
}

func testCost(kernel string) {
	said, err := agentCost()
	row(kernel, said, verdictOf(err))
}

// agentCost measures it.
func agentCost() (said string, err error) {
	if err := loopbackUp(); err != nil {
		return "", err
	}
	server, at, err := servePushes()
	if err != nil {
		return "", err
	}
	if err := copySelf(); err != nil {
		return "", err
	}
	var rounds []*uint64
	for i := range workersEach * runtime.NumCPU() {
		path := fmt.Sprintf("/tmp/rounds%d", i)
		n, err := roundFile(path)
		if err != nil {
			return "", err
		}
		cmd := exec.Command(serviceAt, workerArg, path, strconv.Itoa(64<<(2*i)))
		cmd.Env = []string{"GOMAXPROCS=1"}
		if err := cmd.Start(); err != nil {
			return "", err
		}
		defer func() { _ = cmd.Process.Kill() }()
		rounds = append(rounds, n)
	}
	sum := func() (n uint64) {
		for _, r := range rounds {
			n += *r
		}
		return n
	}
	// rate is that of rounds a second, while something is done.
	rate := func(what func() error) (float64, error) {
		start, before := time.Now(), sum()
		err := what()
		return float64(sum()-before) / time.Since(start).Seconds(), err
	}
	wait := func() error { time.Sleep(bareStretch); return nil }
	for _, n := range rounds {
		if err := await("a worker had not begun", func() (bool, error) { return atomic.LoadUint64(n) > 0, nil }); err != nil {
			return "", err
		}
	}
	before, _ := rate(wait)
	for range mostSettling { // what a kernel does after it has booted takes some seconds
		earlier := before
		if before, _ = rate(wait); math.Abs(before/earlier-1) < settled {
			break
		}
	}
	var spent account
	with, err := rate(func() (err error) { spent, err = agentFor(at, agentStretch); return err })
	if err != nil {
		return "", err
	}
	after, _ := rate(wait)
	bare := (before + after) / 2
	percent := func(seconds float64) float64 {
		return 100 * seconds / agentStretch.Seconds() / float64(runtime.NumCPU())
	}
	lost, own := 100*(1-with/bare), percent(spent.told)
	said = fmt.Sprintf("%d windows; programs lose %.2f %%; CPU time of agent and sessions is %.2f %%; by the agent's account %.2f %%, of which holds %.2f %%; stretches without it differ by %.2f %%",
		len(server.came()), lost, percent(spent.cpu), own, percent(spent.holds), 100*(after/before-1))
	switch {
	case lost > mostCost:
		err = fmt.Errorf("more than %v %%", mostCost)
	case lost > own+farthestAccount || lost < own-farthestAccount:
		err = errors.New("it is not what the agent says")
	}
	return said, err
}

// account is what an agent has spent, in CPU seconds.
type account struct {
	told, holds float64 // by its metrics shortly before its end, and of these for holds
	cpu         float64 // of its processes, by the kernel
}

// agentFor runs an agent so long.
func agentFor(server net.Addr, lasts time.Duration) (spent account, err error) {
	var log bytes.Buffer
	agent, err := startAgent(server, "", &log)
	if err != nil {
		return spent, err
	}
	time.Sleep(lasts)
	err = spent.read()
	_ = agent.Process.Signal(unix.SIGTERM)
	if err := errors.Join(err, agent.Wait()); err != nil {
		return spent, fmt.Errorf("the agent: %w: %s", err, log.String())
	}
	spent.cpu = (agent.ProcessState.UserTime() + agent.ProcessState.SystemTime()).Seconds()
	return spent, nil
}

// read takes what the agent's metrics say.
func (s *account) read() error {
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", agentAt)
	}}}
	r, err := c.Get("http://agent/metrics")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "rdx_agent_spent_seconds_total{") {
			fields := strings.Fields(line)
			x, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				return err
			}
			if s.told += x; strings.Contains(line, `"holds"`) {
				s.holds = x
			}
		}
	}
	if s.told == 0 {
		return errors.New("the agent's metrics do not say what it has spent")
	}
	return nil
}
