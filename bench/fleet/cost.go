package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/fleet/backend"
)

// measureCost runs a worker on each processor and looks at how fast they go on, in turns with an
// agent and without, a period each. What the server takes is left out: it is stopped but when
// an agent runs, and its CPU time then is small.
func measureCost(ctx context.Context, o options, turns int) error {
	dir, err := os.MkdirTemp("", "rdx-cost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.rdx, err = filepath.Abs(o.rdx); err != nil {
		return err
	}
	program := filepath.Join(dir, "a", "worker")
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("gcc", "-O2", "-g", "-o", program, "demo/service.c").CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w: %s", err, out)
	}
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s, err := backend.Start(starting, dir, 1, backend.Options{})
	if err != nil {
		return err
	}
	b := &bench{options: o, dir: dir, server: s[0]}
	defer b.stop() // also when it is interrupted
	if b.proxy, err = newProxy(s[0].URL); err != nil {
		return err
	}
	rounds := make([]atomic.Int64, runtime.NumCPU())
	for i := range rounds {
		cmd := exec.Command(program, "4096", "10")
		cmd.Env = []string{"SERVICE_COUNT=1"}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		go func() {
			for in := bufio.NewScanner(out); in.Scan(); {
				n, _ := strconv.ParseInt(strings.TrimSpace(in.Text()), 10, 64)
				rounds[i].Store(n)
			}
		}()
	}
	sum := func() (n int64) {
		for i := range rounds {
			n += rounds[i].Load()
		}
		return n
	}
	turn := func() float64 {
		start, before := time.Now(), sum()
		rest(ctx, o.period)
		return float64(sum()-before) / time.Since(start).Seconds()
	}
	a, err := b.newAgent("a")
	if err != nil {
		return err
	}
	b.agents = append(b.agents, a)
	var ratios []float64
	rest(ctx, 2*time.Second)
	for i := range turns {
		without := turn()
		if err := a.run(); err != nil {
			return err
		}
		rest(ctx, 7*time.Second) // until its first draw
		with := turn()
		b.stopAgent(a, unix.SIGTERM)
		after := turn()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		base := math.Sqrt(without * after)
		ratios = append(ratios, with/base)
		fmt.Printf("turn %d: without %.1f, with %.1f, without %.1f rounds a second: x %.4f\n", i+1, without, with, after, with/base)
	}
	slices.Sort(ratios)
	fmt.Printf("with an agent the workers go on at x %.4f [%.4f, %.4f], median and range of %d turns\n", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], turns)
	spent := a.total[`rdx_agent_spent_seconds_total{by="agent"}`] + a.total[`rdx_agent_spent_seconds_total{by="sessions"}`] + a.total[`rdx_agent_spent_seconds_total{by="holds"}`]
	fmt.Printf("by its own account %.2f s in %v, %.3f %% of %d processors\n", spent, a.lived.Round(time.Second), 100*spent/a.lived.Seconds()/float64(runtime.NumCPU()), runtime.NumCPU())
	return nil
}

// rest waits, or less if it is interrupted.
func rest(ctx context.Context, t time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(t):
	}
}
