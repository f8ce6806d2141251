package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
)

// recordEvery runs sessions one after the other, and writes a profile of each. Between two the
// process is not sampled for as long as writing one and starting the next takes, some tenths of a
// second.
func (f *recordFlags) recordEvery(cmd *cobra.Command, cfg collector.Config, every time.Duration) error {
	if f.output == "-" {
		return report.BadInput(errOneStream)
	}
	if every < time.Second {
		return report.BadInput(fmt.Errorf("--every %v: want 1s or more", every))
	}
	if err := f.prepare(cmd, &cfg, numbered(f.output, 1), zap.NewNop()); err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	progress := newProgress(stderr, f.quiet)
	if !f.quiet {
		cfg.Progress = func(p collector.Progress) { progress.show(p, "") }
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGHUP, os.Interrupt)
	defer stop()
	signal.Ignore(jobControl...)
	defer signal.Reset(jobControl...)
	written := 0
	err := f.sessions(ctx, cfg, every/20, func(int) time.Duration { return every }, func(n int, s *collector.Session, p *model.Profile, err error) error {
		progress.done()
		if p == nil {
			return err
		}
		if err != nil {
			p.Comments = append(p.Comments, model.EndedEarly+": "+err.Error())
		}
		g := *f
		g.output, g.quiet = numbered(f.output, n), true
		written++
		return errors.Join(g.finish(cmd, s, p), onlyFailure(err))
	})
	if err != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(stderr, "rdx: %s written, %s to %s (rdx phases shows them over time)\n", report.Plural(int64(written), "profile"), numbered(f.output, 1), numbered(f.output, written))
	}
	return nil
}

// sessions runs sessions one after the other until it is time or the process has ended: the nth, from 1, lasts as long
// as length says, and none less than least. took gets what came of each; its error ends them.
func (f *recordFlags) sessions(ctx context.Context, cfg collector.Config, least time.Duration, length func(n int) time.Duration,
	ended func(n int, s *collector.Session, p *model.Profile, err error) error) error {
	start, some := time.Now(), false
	for n := 1; ctx.Err() == nil; n++ {
		left := length(n)
		if f.duration > 0 {
			left = min(left, f.duration-time.Since(start))
		}
		if left < least {
			break
		}
		cfg.Duration = left
		s, err := collector.Start(cfg)
		if err != nil {
			if some && unix.Kill(cfg.PID, 0) != nil {
				break // it has ended between two windows
			}
			return err
		}
		p, err := s.Wait(ctx)
		exited := s.Exit().Exited
		some = some || p != nil
		err = ended(n, s, p, err)
		s.Close()
		if err != nil || exited {
			return err
		}
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
