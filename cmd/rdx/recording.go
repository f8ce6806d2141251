package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/why"
)

// record runs one session from attaching to the written profile.
func (f *recordFlags) record(cmd *cobra.Command, cfg collector.Config) error {
	log, err := f.newLog()
	if err != nil {
		return err
	}
	defer log.Sync()
	if err := f.prepare(cmd, &cfg, f.output, log); err != nil {
		return err
	}
	until, err := f.readUntil(&cfg)
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	progress := newProgress(stderr, f.quiet)
	end := newEnding(cmd.Context(), cfg.Command != nil)
	defer end.close()
	cfg.Progress = progress.watch(&until, end.known)
	s, p, err := end.session(cfg)
	if s == nil {
		return err
	}
	defer s.Close()
	progress.done()
	if said := until.Ended(); said != "" && !f.quiet && p != nil {
		fmt.Fprintln(stderr, "rdx:", said)
	}
	switch {
	case errors.Is(err, collector.ErrNotStarted):
		return end.notStarted(s, err)
	case p == nil:
		return err
	}
	if err := f.keep(cmd, cfg, s, p, err); err != nil {
		return err
	}
	// The program's exit code is that of run, even if the profile was
	// complete before. Ctrl-C went to the program, too, and it ends as it
	// likes; a signal meant for us alone is passed on. A second one ends us.
	end.passOn(s)
	return exitOf(cfg, s.AwaitExit())
}

// newLog is what rdx does, with --verbose, or nothing.
func (f *recordFlags) newLog() (*zap.Logger, error) {
	if !f.verbose {
		return zap.NewNop(), nil
	}
	log, err := zap.NewDevelopment()
	if err != nil {
		return nil, fmt.Errorf("start log: %w", err)
	}
	return log, nil
}

// prepare makes a session's configuration of the flags and of what is known of the machine. It finds out now, and not after
// the profile was taken, whether that can be written.
func (f *recordFlags) prepare(cmd *cobra.Command, cfg *collector.Config, output string, log *zap.Logger) error {
	caches, err := cacheSizes(f.caches)
	if err != nil {
		return err
	}
	if err := pprofout.CheckWritable(output); err != nil {
		return err
	}
	if err := f.fill(cfg); err != nil {
		return err
	}
	cfg.HoldCost = f.costOfHolds(cmd)
	cfg.Caches, cfg.Log = caches, log
	f.costsFailed = measureCosts(cmd.Context(), cfg)
	return nil
}

// keep writes the profile of a session, which may have ended early: what was seen is written all the same, and says so.
func (f *recordFlags) keep(cmd *cobra.Command, cfg collector.Config, s *collector.Session, p *model.Profile, early error) error {
	if early != nil {
		p.Comments = append(p.Comments, model.EndedEarly+": "+early.Error())
	}
	explain(p, cfg, s.Started())
	if err := f.finish(cmd, s, p); err != nil {
		return err
	}
	if _, failed := errors.AsType[collector.Failure](early); failed && cfg.Command == nil {
		return early
	}
	if early != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "rdx:", early)
	}
	return nil
}

// ending is what ends a session before its time: signals, and that enough is known.
type ending struct {
	ctx    context.Context
	known  func() // ends the session
	stop   func() // lets signals end rdx again
	passed chan os.Signal
}

// newEnding has Ctrl-C end the session from here on, and not rdx. What nohup or a shell's & has us ignore stays ignored, by what
// run starts, too.
func newEnding(ctx context.Context, starts bool) *ending {
	e := &ending{passed: make(chan os.Signal, 1)}
	signals := slices.DeleteFunc([]os.Signal{unix.SIGTERM, unix.SIGHUP, os.Interrupt}, signal.Ignored)
	ctx, e.stop = signal.NotifyContext(ctx, signals...)
	e.ctx, e.known = context.WithCancel(ctx)
	signal.Notify(e.passed, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(e.passed, unix.SIGHUP)
	}
	// Ctrl-Z must not stop rdx, which would leave the target's threads held,
	// but a program that run starts would inherit what is ignored before.
	if !starts {
		signal.Ignore(jobControl...)
	}
	return e
}

func (e *ending) close() {
	e.known()
	e.stop()
}

// session runs a session to its end; there is none where it could not be started.
func (e *ending) session(cfg collector.Config) (*collector.Session, *model.Profile, error) {
	cfg.Context = e.ctx
	s, err := collector.Start(cfg)
	if err != nil {
		return nil, nil, e.interrupted(err)
	}
	signal.Ignore(jobControl...)
	p, err := s.Wait(e.ctx)
	signal.Reset(jobControl...)
	return s, p, err
}

// notStarted gives a program that was not started the exit code that a shell has for it.
func (e *ending) notStarted(s *collector.Session, err error) error {
	if e.ctx.Err() != nil {
		return e.interrupted(collector.ErrInterrupted)
	}
	return exitError{err, s.Exit().Status.ExitStatus()}
}

// passOn sends a started program the signal that has ended its session. The next one ends rdx.
func (e *ending) passOn(s *collector.Session) {
	e.stop()
	signal.Stop(e.passed)
	select {
	case sig := <-e.passed:
		s.Signal(sig)
	default:
	}
}

// interrupted gives what was ended by a signal before it began the exit code that a shell has for it.
func (e *ending) interrupted(err error) error {
	if e.ctx.Err() == nil {
		return err
	}
	code := 128 + int(unix.SIGINT)
	select {
	case s := <-e.passed:
		if n, ok := s.(unix.Signal); ok {
			code = 128 + int(n)
		}
	default:
	}
	return exitError{collector.ErrInterrupted, code}
}

var jobControl = []os.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}

func (f *recordFlags) finish(cmd *cobra.Command, s *collector.Session, p *model.Profile) error {
	defer collectOften()()
	p.Writer = version.Get().String()
	if f.costsFailed != nil {
		p.Comments = append(p.Comments, f.costsFailed.Error())
	}
	if err := p.Derive(); err != nil {
		return err
	}
	stats, err := pprofout.Symbolize(p, binaries{s})
	if err != nil {
		return err
	}
	for _, problem := range stats.Problems {
		p.Comments = append(p.Comments, problem.Comment())
	}
	if kib := peakMemory(); kib > 0 {
		p.Comments = append(p.Comments, fmt.Sprintf("the profiler's own memory: %d MiB at most", kib>>10))
	}
	// The summary is of what is written, so that every view of the file has the same figures; and if it can't be written, it is all there is.
	whole, written, failed := pprofout.KeepFile(f.output, p)
	if f.quiet || whole == nil {
		return failed
	}
	shown, err := report.Ready(whole, "")
	if err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, report.WriteSummary(cmd.ErrOrStderr(), shown, written, why.AnalyzeWith(shown, whole).Says, f.verbose))
}

// collectOften is for when no thread is held any more: what finds symbols and writes leaves several times the garbage that it needs memory.
func collectOften() (undo func()) {
	const percent = 25
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}

// peakMemory of this process in KiB, 0 if unknown.
func peakMemory() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				return kib
			}
		}
	}
	return 0
}

// exitOf hands the exit code of a program started by run through.
func exitOf(cfg collector.Config, e collector.ExitStatus) error {
	if cfg.Command == nil || !e.Exited {
		return nil
	}
	switch {
	case e.Status.Signaled():
		return exitError{fmt.Errorf("%s: killed by %v", cfg.Command[0], e.Status.Signal()), 128 + int(e.Status.Signal())}
	case e.Status.ExitStatus() != 0:
		return exitError{fmt.Errorf("%s: exit code %d", cfg.Command[0], e.Status.ExitStatus()), e.Status.ExitStatus()}
	}
	return nil
}

// binaries lets the symbolizer read what the session held on to.
type binaries struct{ s *collector.Session }

func (b binaries) Open(m *model.Mapping) (io.ReaderAt, error) {
	f, err := b.s.Open(m)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (b binaries) OpenNamed(m *model.Mapping, name string) (io.ReaderAt, error) {
	f, err := b.s.OpenNamed(m, name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (b binaries) Generated() ([]pprofout.Generated, func(*model.Mapping) int) {
	found, of := b.s.Generated()
	tables := make([]pprofout.Generated, len(found))
	for i, g := range found {
		tables[i] = pprofout.Generated{Process: g.Process, Err: g.Err}
		for _, f := range g.Maps {
			tables[i].Maps = append(tables[i].Maps, f)
		}
		for _, f := range g.Dumps {
			tables[i].Dumps = append(tables[i].Dumps, f)
		}
	}
	return tables, of
}

// progress shows a line about the session on a terminal.
type progress struct {
	w        io.Writer // nil if there is no terminal
	warnings io.Writer // nil if they are not wanted
	shown    bool
}

func newProgress(w io.Writer, quiet bool) *progress {
	if quiet {
		return &progress{}
	}
	if f, ok := w.(*os.File); !ok || !isTerminal(f) {
		return &progress{warnings: w}
	}
	return &progress{w: w, warnings: w}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// show shows it, and what else is to be said now.
func (p *progress) show(s collector.Progress, more string) {
	for _, warning := range s.Warnings {
		if p.warnings != nil {
			p.done()
			fmt.Fprintln(p.warnings, "rdx:", warning)
		}
	}
	if p.w == nil {
		return
	}
	p.shown = true
	if more == "" {
		more = fmt.Sprintf("%d pairs  overhead %.2f%%  (Ctrl-C ends)", s.Pairs, 100*s.Overhead)
	}
	fmt.Fprintf(p.w, "\r%7.1fs  %d threads  %d samples  %s\x1b[K", s.Elapsed.Seconds(), s.Threads, s.Samples, more)
}

// watch shows what a session tells, and calls known when a miss ratio is known well enough.
func (p *progress) watch(until *report.Until, known func()) func(collector.Progress) {
	return func(s collector.Progress) {
		if until.See(s.Elapsed, s.Known) {
			known()
		}
		p.show(s, until.String())
	}
}

func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
