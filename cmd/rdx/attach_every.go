package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
)

// recordEvery runs sessions one after the other, and writes a profile of each. Between two the
// process is not sampled for as long as writing one and starting the next takes, some tenths of a
// second.
func (f *recordFlags) recordEvery(cmd *cobra.Command, cfg collector.Config, every time.Duration) error {
	if every < time.Second {
		return report.BadInput(fmt.Errorf("--every %v: want 1s or more", every))
	}
	caches, err := cacheSizes(f.caches)
	if err != nil {
		return err
	}
	if err := pprofout.CheckWritable(numbered(f.output, 1)); err != nil {
		return err
	}
	if err := f.fill(&cfg); err != nil {
		return err
	}
	cfg.Caches, cfg.Log = caches, zap.NewNop()
	stderr := cmd.ErrOrStderr()
	progress := newProgress(stderr, f.quiet)
	if !f.quiet {
		cfg.Progress = progress.show
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGHUP, os.Interrupt)
	defer stop()
	signal.Ignore(jobControl...)
	defer signal.Reset(jobControl...)
	start, written := time.Now(), 0
	for n := 1; ctx.Err() == nil; n++ {
		left := every
		if f.duration > 0 {
			left = min(left, f.duration-time.Since(start))
		}
		if left < every/20 {
			break
		}
		cfg.Duration = left
		s, err := collector.Start(cfg)
		if err != nil {
			if written > 0 && unix.Kill(cfg.PID, 0) != nil {
				break // it has ended between two windows
			}
			return err
		}
		p, err := s.Wait(ctx)
		progress.done()
		exited := s.Exit().Exited
		if p != nil {
			if err != nil {
				p.Comments = append(p.Comments, "session ended early: "+err.Error())
			}
			g := *f
			g.output, g.quiet = numbered(f.output, n), true
			err = errors.Join(g.finish(cmd, s, p), onlyFailure(err))
			written++
		}
		s.Close()
		if err != nil {
			return err
		}
		if exited {
			break
		}
	}
	if !f.quiet {
		fmt.Fprintf(stderr, "rdx: %d profiles written, %s to %s (rdx phases shows them over time)\n", written, numbered(f.output, 1), numbered(f.output, written))
	}
	return nil
}

// onlyFailure leaves out what is no failure of the session, such as that its process has ended.
func onlyFailure(err error) error {
	if _, failed := errors.AsType[collector.Failure](err); failed {
		return err
	}
	return nil
}
