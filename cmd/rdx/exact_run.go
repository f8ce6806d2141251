package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/trace"
)

// exactRun is an analysis under way: what there is to report so far, and how the program that it was of has ended.
type exactRun struct {
	report.Exact
	found report.ExactResult
	sizes []uint64 // of caches, in bytes, to give miss ratios for; nil for powers of two
	ended error    // of a program that was run, nil if its exit code is 0
}

// read analyses the trace to its end.
func (r *exactRun) read(source trace.AccessReader, sink exactSink, partial bool) error {
	bad := func(b *trace.BadLine) error {
		if !partial {
			return fmt.Errorf("%w (consider: --partial, which skips such lines)", b)
		}
		r.BadLines++
		return nil
	}
	next := reader(source, bad)
	for done := false; !done; {
		accesses, err := next()
		switch {
		case err == io.EOF:
			done = true
		case err != nil && partial:
			done = true
			r.Warnings = append(r.Warnings, fmt.Sprintf("the trace ends early: %v", err))
		case err != nil:
			return err
		}
		if err := sink.add(accesses); err != nil {
			return fmt.Errorf("%s: %w", r.Trace, err)
		}
	}
	if r.BadLines > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d lines could not be read and were skipped", r.BadLines))
	}
	return r.finish(sink)
}

// readTouches is read for a recording of which only what it touches is of interest, in the form that add takes.
func readTouches[T any](r *exactRun, sink exactSink, read func(model.Granularity, func(T) error) error, add func(T) error) error {
	gran, err := model.NewGranularity(r.Block)
	if err != nil {
		return err
	}
	if err := read(gran, add); err != nil {
		return fmt.Errorf("%s: %w", r.Trace, err)
	}
	return r.finish(sink)
}

// finish takes the results of a trace that has ended.
func (r *exactRun) finish(sink exactSink) error {
	if err := sink.fill(r); err != nil {
		return fmt.Errorf("%s: %w", r.Trace, err)
	}
	if r.Accesses == 0 {
		return fmt.Errorf("%s: there are no accesses in the trace", r.Trace)
	}
	return nil
}

// reader returns a function that reads many accesses at a time; they are good
// until its next call. At the end the error is io.EOF.
func reader(source trace.AccessReader, bad func(*trace.BadLine) error) func() ([]model.Access, error) {
	batches, ok := source.(trace.BatchReader)
	if !ok {
		buf := make([]model.Access, 4096)
		return func() ([]model.Access, error) {
			n, err := trace.ReadAccesses(source, buf, bad)
			return buf[:n], err
		}
	}
	return func() ([]model.Access, error) {
		if b := batches.NextBatch(); b != nil {
			return b, nil
		}
		if err := batches.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
}

// runSource runs a program under instrumentation and is the source of its
// accesses. finish waits for the program, or ends it if it was not read to
// its end, and says what was missing and what code it had mapped.
func (r *exactRun) runSource(ctx context.Context, args []string, opt trace.Options) (source trace.AccessReader, finish func() (missing []string, mappings []*model.Mapping)) {
	resume := outliveInterrupt()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	live := trace.StartLive(ctx, programCommand(args), opt)
	return live, func() ([]string, []*model.Mapping) {
		live.Close()
		stop()
		resume()
		res := live.Result()
		r.ended = endError(args[0], res)
		return res.Partial, res.Mappings
	}
}

// outliveInterrupt lets rdx live on until restore is called when the terminal sends an interrupt, which reaches the
// program too: that decides. It is caught and not ignored, as the program would inherit that.
func outliveInterrupt() (restore func()) {
	if signal.Ignored(os.Interrupt) {
		return func() {}
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	return func() { signal.Stop(caught) }
}

func programCommand(args []string) trace.Command {
	return trace.Command{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
}

// endError carries the exit code of a program that has run; nil if it is 0.
func endError(program string, res trace.Result) error {
	how := endedHow(res.Signal, res.ExitCode)
	if how == "" {
		return nil
	}
	code := res.ExitCode
	if res.Signal != 0 {
		code = 128 + int(res.Signal)
	}
	return exitError{fmt.Errorf("%s: %s", program, how), code}
}

// endedHow is how a program ended, if not as it should.
func endedHow(signal syscall.Signal, exitCode int) string {
	switch {
	case signal == syscall.SIGILL:
		return signal.String() + " (the engine has no AVX-512: build the program without -march=native, or with -mno-avx512f)"
	case signal != 0:
		return signal.String()
	case exitCode > 0:
		return fmt.Sprintf("exit status %d", exitCode)
	}
	return ""
}

// runSampled runs a program that is instrumented in full only while a sample is
// open: the program waits for the sampler, which tells it how long it may go on
// unseen.
func (r *exactRun) runSampled(ctx context.Context, args []string, opt trace.Options, sink *sampledSink) (missing []string, err error) {
	defer outliveInterrupt()()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	opt.Skipper = sink
	var failed error
	res, err := trace.Run(ctx, programCommand(args), opt, func(a []model.Access) {
		if err := sink.add(a); err != nil && failed == nil {
			failed = err
		}
	})
	if err = errors.Join(err, failed, sink.err); err != nil {
		return nil, err
	}
	r.ended = endError(args[0], res)
	return res.Partial, r.finish(sink)
}

// runTouches runs a program whose accesses are of interest only for what they touch, in the form that add takes. It is ended
// when the analysis cannot go on.
func runTouches[T any](ctx context.Context, r *exactRun, args []string, opt trace.Options, sink exactSink, add func(T) error,
	run func(context.Context, trace.Command, trace.Options, model.Granularity, func(T)) (trace.Result, error)) (missing []string, mappings []*model.Mapping, err error) {
	res, err := runBatches(ctx, r, args, add, func(ctx context.Context, gran model.Granularity, each func(T)) (trace.Result, error) {
		return run(ctx, programCommand(args), opt, gran, each)
	})
	if err != nil {
		return res.Partial, nil, err
	}
	return res.Partial, res.Mappings, r.finish(sink)
}

// runBatches runs a program and adds its accesses, batch by batch. It is ended when one can't be added.
func runBatches[T any](ctx context.Context, r *exactRun, args []string, add func(T) error,
	run func(context.Context, model.Granularity, func(T)) (trace.Result, error)) (trace.Result, error) {
	gran, err := model.NewGranularity(r.Block)
	if err != nil {
		return trace.Result{}, err
	}
	defer outliveInterrupt()()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	var failed error
	res, err := run(ctx, gran, func(t T) {
		if failed != nil {
			return
		}
		if failed = add(t); failed != nil {
			stop()
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return res, err
	}
	r.ended = endError(args[0], res)
	return res, nil
}

const orderedUsage = "with --engine qemu, keep the order in which threads that run in parallel make their accesses; up to 264 million are held in memory"

// engineFlag is the flag --engine.
type engineFlag struct{ opt *trace.Options }

func (f engineFlag) String() string { return "" }
func (f engineFlag) Type() string   { return "name" }

func (f engineFlag) Set(v string) error {
	switch k := trace.Kind(v); {
	case k == trace.Valgrind || k == trace.QEMU:
		f.opt.Kind = k
	case strings.Contains(v, "/"):
		f.opt.Engine = v
	default:
		return fmt.Errorf("want valgrind, qemu or a folder")
	}
	return nil
}
