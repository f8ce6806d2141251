package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/agent"
	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/fleet"
	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// newWindowCmd is one session of the agent, in a process of its own: the request on standard
// input, the answer on standard output.
func newWindowCmd() *cobra.Command {
	return &cobra.Command{
		Use:     agent.SessionArg,
		Short:   "One session of rdx agent, which runs it",
		Hidden:  true,
		Example: "  rdx __agent-window # asks for a request, and answers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWindow(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}

func runWindow(ctx context.Context, in io.Reader, out io.Writer) error {
	first()
	d := json.NewDecoder(io.LimitReader(in, 1<<16))
	var r agent.Request
	if err := d.Decode(&r); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	// The agent is a session's reason: when it is gone, so is the session. Signals are for the agent.
	signal.Ignore(os.Interrupt, unix.SIGHUP)
	signal.Ignore(jobControl...)
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	res, people, raw, err := sampleWindow(ctx, r)
	if err != nil {
		return agent.WriteResult(out, agent.Result{Error: err.Error()}, nil, nil)
	}
	return agent.WriteResult(out, res, people, raw)
}

// first makes this process the one that the kernel ends when memory is short: a window is all that is lost.
func first() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0o644)
}

// sampleWindow runs a session as the agent asks for, and packs what it saw.
func sampleWindow(ctx context.Context, r agent.Request) (res agent.Result, people, raw []byte, err error) {
	// It ends in time for the next draw, however long it takes to begin.
	limited, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	end := time.Now().Add(r.Duration)
	var last collector.Progress
	cfg, costsKnown, err := windowConfig(r)
	if err != nil {
		return res, nil, nil, err
	}
	cfg.Progress = func(p collector.Progress) { last = p }
	s, err := startWindow(cfg, r)
	if err != nil {
		return res, nil, nil, err
	}
	defer s.Close()
	started := time.Now()
	p, err := s.Wait(limited)
	if p == nil {
		return res, nil, nil, err
	}
	if _, failed := errors.AsType[collector.Failure](err); failed {
		return res, nil, nil, err
	}
	sampled := time.Since(started)
	defer collectOften()()
	p.Writer = version.Get().String()
	if !costsKnown {
		p.Comments = append(p.Comments, "what accesses cost on this machine was not measured, so that usual costs are taken: rdx attach measures and keeps them")
	}
	if err := p.Derive(); err != nil {
		return res, nil, nil, err
	}
	if _, err := pprofout.Symbolize(p, binaries{s}); err != nil {
		return res, nil, nil, err
	}
	res = windowResult(p, sampled, last.Overhead)
	// It stands for the period, of which this part was sampled, or would have been.
	part := sampled
	if s.Exit().Exited {
		part = end.Sub(started)
	}
	part = max(part, 100*time.Millisecond)
	w := fleet.Window{Profile: p, Weight: r.Weight * float64(r.Period) / float64(part), Time: p.Start,
		Drawn: r.Weight > 1, Name: fmt.Sprintf("%s %d %d", r.Host, r.PID, r.Start)}
	if people, err = w.People(); err == nil {
		raw, err = w.Pack()
	}
	return res, people, raw, err
}

// windowConfig is how a window is sampled; costsKnown says whether what accesses cost here was measured before.
func windowConfig(r agent.Request) (cfg collector.Config, costsKnown bool, err error) {
	caches, err := cacheSizes(nil)
	if err != nil {
		return cfg, false, err
	}
	cfg = collector.Config{PID: r.PID, Overhead: r.Overhead, Burst: collector.AutoBurst, BurstEngine: collector.Interpret,
		Granularity: collector.Auto, Source: collector.Auto, Clock: collector.Auto, Stack: collector.OwnStack, Caches: caches}
	if _, c, known := keptHoldCost(); known {
		cfg.HoldCost = c.After
	}
	return cfg, keptCosts(&cfg), nil
}

// startWindow starts a session of the process that was asked for, and of no other that has its number by now.
func startWindow(cfg collector.Config, r agent.Request) (*collector.Session, error) {
	same := func() error {
		if p, err := (agent.Proc{Dir: "/proc"}).Process(r.PID); err == nil && p.Start != r.Start {
			return errors.New("another process has its number by now")
		}
		return nil
	}
	if err := same(); err != nil {
		return nil, err
	}
	s, err := collector.Start(cfg)
	if err != nil {
		return nil, err
	}
	if err := same(); err != nil { // a last look, now that it can't go away unseen
		s.Close()
		return nil, err
	}
	return s, nil
}

// windowResult is what the agent counts of a window; overhead is the share that its samples cost.
func windowResult(p *model.Profile, sampled time.Duration, overhead float64) agent.Result {
	res := agent.Result{Time: p.Start, Sampled: sampled, CPU: time.Duration(p.CountOf(model.CPUTarget)), Lost: map[string]int64{}, Clock: p.Clock.Name,
		Config: fleet.Config(p)}
	res.Held = time.Duration(overhead * float64(res.CPU))
	for i := range p.Records {
		if rec := &p.Records[i]; rec.Kind != model.Lost {
			res.Observations += rec.Observations
		}
	}
	for _, c := range p.Counts {
		if why, ok := model.LostBecause.Why(c.Name); ok {
			res.Lost[string(why)] += c.N
		}
	}
	return res
}
