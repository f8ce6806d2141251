package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/web"
)

// webFlags are those of all that shows pages.
type webFlags struct {
	listen  string
	allowed []string
	source  []string
	sizes   []string
}

func (f *webFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.source, "source", []string{"."}, "folders below which source may be read, of files that the profile's own line tables name; --source= for none")
	cmd.Flags().StringSliceVar(&f.sizes, "sizes", nil, "cache sizes to be shown besides eight an octave and the machine's, such as 48k,1m")
}

func (f *webFlags) registerServer(cmd *cobra.Command) {
	f.register(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "address and port to listen at; 0 is any free port. Whoever has the URL can see the profiles")
	cmd.Flags().StringSliceVar(&f.allowed, "host", nil, "names by which a browser may call an address that is not loopback")
}

func (f *webFlags) options() (web.Options, error) {
	var o web.Options
	for _, s := range f.sizes {
		n, err := sampler.ParseSize(s)
		if err != nil {
			return o, report.BadInput(fmt.Errorf("--sizes: %w", err))
		}
		o.Sizes = append(o.Sizes, uint64(max(n, 0)))
	}
	var folders []string
	for _, s := range f.source {
		if s != "" {
			folders = append(folders, s)
		}
	}
	var err error
	o.Source, err = web.NewSource(folders)
	return o, err
}

// keptPercent is how much more than what is kept memory may grow before it is looked through: a large profile stays, and to look
// through it took a fifth of the time until it was shown.
const keptPercent = 400

// openingPercent has memory looked through for the first time when 2 GB are taken: a profile that is opened is all kept.
const openingPercent = 50_000

// pictured is how long after its data is made the first picture is there: until then other things take the processors.
const pictured = 5 * time.Second

// opening begins the time until the first picture of one file is there. Several may leave more behind than there is memory.
func opening(files []string, o *web.Options) {
	if len(files) > 1 {
		debug.SetGCPercent(keptPercent)
	} else {
		debug.SetGCPercent(openingPercent)
		pprofout.LargePagesFor(files[0])
		o.Made = func() { time.AfterFunc(pictured, func() { debug.SetGCPercent(keptPercent) }) }
	}
}

// webProfiles reads the files.
func webProfiles(files []string) ([]web.Profile, error) {
	names := report.ShortNames(files, func(f *string) string { return *f })
	var out []web.Profile
	for _, f := range files {
		p, err := loadProfile(f)
		if err != nil {
			return nil, err
		}
		out = append(out, web.Profile{Name: names[f], Raw: p})
	}
	return out, nil
}

func newWebCmd() *cobra.Command {
	var f webFlags
	var of fleetFlags
	var by string
	cmd := &cobra.Command{
		Use:   "web [flags] FILE... | web [flags] --server URL",
		Short: "Show profiles in a browser: curve, source, call stacks, pairs",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			var all []web.Profile
			switch {
			case len(args) > 0 && cmd.Flags().Changed("server"):
				return report.BadInput(errors.New("web: name files or a --server, not both"))
			case len(args) > 0:
				opening(args, &o)
				all, err = webProfiles(args)
			case of.access.Server == "":
				return report.BadInput(errors.New("web: name a profile, such as rdx.pb.gz, or a --server"))
			default:
				all, err = fleetProfiles(cmd, &of, by)
			}
			if err != nil {
				return err
			}
			return f.serve(cmd.Context(), cmd.OutOrStdout(), web.NewServer(all, o))
		},
	}
	f.registerServer(cmd)
	of.register(cmd)
	cmd.Flags().StringVar(&by, "by", "", "of --server: a profile for each value of this label, such as version")
	return cmd
}

// fleetProfiles are what a fleet's server has.
func fleetProfiles(cmd *cobra.Command, of *fleetFlags, by string) ([]web.Profile, error) {
	c, q, err := of.open()
	if err != nil {
		return nil, err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	if by != "" {
		var all []web.Profile
		err := parts(ctx, c, q, by, func(value string, p *model.Profile) error {
			all = append(all, web.Profile{Name: report.Printable(by + "=" + value), Raw: p})
			return nil
		})
		return all, err
	}
	p, err := one(ctx, c, q)
	if err != nil {
		return nil, err
	}
	return []web.Profile{{Name: report.Printable(cmp.Or(of.service, "fleet")), Raw: p}}, nil
}

// serve shows pages until it is interrupted.
func (f *webFlags) serve(ctx context.Context, out io.Writer, s *web.Server) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listen for browsers: %w (consider --listen 127.0.0.1:0)", err)
	}
	defer l.Close()
	if _, err := fmt.Fprintf(out, "%s\n", s.URL(l.Addr())); err != nil {
		return err
	}
	return s.Serve(ctx, l, f.allowed...)
}

func newReportCmd() *cobra.Command {
	var f webFlags
	var output string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Write what rdx web shows as one file, to be mailed or kept",
		Args:  profiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			debug.SetGCPercent(keptPercent)
			all, err := webProfiles(args)
			if err != nil {
				return err
			}
			if output == "-" {
				return web.WriteFile(cmd.OutOrStdout(), all, o)
			}
			if err := writeWhole(output, func(w io.Writer) error { return web.WriteFile(w, all, o) }); err != nil || quiet {
				return err
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "rdx: wrote %s: %d %s\n", output, len(all), plural(len(all), "profile", "profiles"))
			return err
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "rdx.html", "file to write; - for standard output")
	quietFlag(cmd, &quiet)
	return cmd
}

// writeWhole writes a file that is there in full or not at all.
func writeWhole(name string, write func(w io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".rdx-*")
	if err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err // the name is one that nobody has given
		}
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(tmp.Name())
	err = write(tmp)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Windows of a live session: the first ones are short, so that something is to be seen soon.
const (
	firstWindow   = 2 * time.Second
	longestWindow = 10 * time.Second
)

// recordLive runs sessions one after the other, as recordEvery does, and shows the merge of all so far in
// a browser. When sampling is over it writes that, and the pages stay until the next Ctrl-C.
func (f *recordFlags) recordLive(cmd *cobra.Command, cfg collector.Config) error {
	if err := f.prepare(cmd, &cfg, f.output, zap.NewNop()); err != nil {
		return err
	}
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
		_, _, decoding = pprofout.KeepFile(f.output, m)
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
	length := func(n int) time.Duration { return min(firstWindow<<min(n-1, 8), longestWindow) }
	err = f.sessions(ctx, cfg, firstWindow/20, length, func(_ int, s *collector.Session, p *model.Profile, err error) error {
		err = onlyFailure(err)
		if p == nil {
			return err
		}
		if e := g.finish(cmd, s, p); e != nil {
			return errors.Join(err, e)
		}
		one, e := readPprof(g.output)
		if e != nil {
			return errors.Join(err, e)
		}
		if all != nil {
			one, e = pprofout.Join(all, one)
		}
		if e != nil {
			return errors.Join(err, e)
		}
		all = one
		return errors.Join(err, show(all))
	})
	return all, err
}

func readPprof(name string) (*profile.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return profile.Parse(f)
}
