package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/web"
)

// Windows of a live session: the first ones are short, so that something is to be seen soon.
const (
	firstWindow   = 2 * time.Second
	longestWindow = 10 * time.Second
)

// recordLive runs sessions one after the other, as recordEvery does, and shows the merge of all so far in
// a browser. When sampling is over it writes that, and the pages stay until the next Ctrl-C.
func (f *recordFlags) recordLive(cmd *cobra.Command, cfg collector.Config) error {
	caches, err := cacheSizes(f.caches)
	if err != nil {
		return err
	}
	if err := pprofout.CheckWritable(f.output); err != nil {
		return err
	}
	if err := f.fill(&cfg); err != nil {
		return err
	}
	cfg.Caches, cfg.Log = caches, zap.NewNop()
	stderr := cmd.ErrOrStderr()
	pages := webFlags{listen: "127.0.0.1:0", source: []string{"."}}
	o, err := pages.options()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", pages.listen)
	if err != nil {
		return fmt.Errorf("listen for browsers: %w", err)
	}
	s := web.NewServer(nil, o)
	s.Set(nil, true)
	serving, over := context.WithCancel(cmd.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(serving, l) }()
	defer func() {
		over()
		<-served
	}()
	fmt.Fprintf(stderr, "rdx: %s\n", s.URL(l.Addr()))

	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGHUP, os.Interrupt)
	signal.Ignore(jobControl...)
	all, err := f.windows(cmd, cfg, ctx, func(p *profile.Profile) error {
		m, err := pprofout.Decode(p)
		if err == nil {
			s.Set([]web.Profile{{Name: report.Printable(filepath.Base(f.output)), Raw: m}}, ctx.Err() == nil)
		}
		return err
	})
	signal.Reset(jobControl...)
	if all == nil {
		stop()
		return err
	}
	m, decoding := pprofout.Decode(all)
	if decoding == nil {
		decoding = pprofout.WriteFile(f.output, m)
	}
	if decoding != nil {
		stop()
		return errors.Join(err, decoding)
	}
	s.Set([]web.Profile{{Name: report.Printable(filepath.Base(f.output)), Raw: m}}, false)
	stop()
	if !f.quiet {
		fmt.Fprintf(stderr, "rdx: wrote %s; the pages stay until Ctrl-C\n", f.output)
	}
	if err != nil {
		return err
	}
	end, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGHUP, os.Interrupt)
	defer stop()
	<-end.Done()
	return nil
}

// windows samples until it is time, and gives show the merge of all windows after each.
func (f *recordFlags) windows(cmd *cobra.Command, cfg collector.Config, ctx context.Context, show func(p *profile.Profile) error) (all *profile.Profile, err error) {
	dir, err := os.MkdirTemp("", "rdx-web-")
	if err != nil {
		return nil, fmt.Errorf("keep a window: %w", err)
	}
	defer os.RemoveAll(dir)
	g := *f
	g.output, g.quiet = filepath.Join(dir, "window.pb.gz"), true
	start := time.Now()
	for window := firstWindow; ctx.Err() == nil; window = min(2*window, longestWindow) {
		left := window
		if f.duration > 0 {
			left = min(left, f.duration-time.Since(start))
		}
		if left < firstWindow/20 {
			break
		}
		cfg.Duration = left
		s, err := collector.Start(cfg)
		if err != nil {
			if all != nil && unix.Kill(cfg.PID, 0) != nil {
				break // it has ended between two windows
			}
			return all, err
		}
		p, err := s.Wait(ctx)
		exited := s.Exit().Exited
		err = onlyFailure(err)
		if p != nil {
			if e := g.finish(cmd, s, p); e != nil {
				err = errors.Join(err, e)
			} else if one, e := readPprof(g.output); e != nil {
				err = errors.Join(err, e)
			} else if all, e = joined(all, one); e != nil {
				err = errors.Join(err, e)
			} else {
				err = errors.Join(err, show(all))
			}
		}
		s.Close()
		if err != nil {
			return all, err
		}
		if exited {
			break
		}
	}
	return all, nil
}

func readPprof(name string) (*profile.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return profile.Parse(f)
}

// joined is both by pprof's own rules, by which a profile of rdx stays one.
func joined(a, b *profile.Profile) (*profile.Profile, error) {
	if a == nil {
		return b, nil
	}
	return profile.Merge([]*profile.Profile{a, b})
}
