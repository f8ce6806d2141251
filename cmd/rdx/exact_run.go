package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/trace"
)

// runSource runs a program under instrumentation and is the source of its
// accesses. finish waits for the program, or ends it if it was not read to
// its end, and says what was missing and what code it had mapped.
func runSource(ctx context.Context, args []string, opt trace.Options) (source model.TraceReader, finish func() (missing []string, mappings []*model.Mapping)) {
	// An interrupt from the terminal reaches the program, which decides.
	signal.Ignore(os.Interrupt)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	live := trace.StartLive(ctx, trace.Command{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, opt)
	return live, func() ([]string, []*model.Mapping) {
		live.Close()
		stop()
		signal.Reset(os.Interrupt)
		res := live.Result()
		missing := res.Partial
		switch {
		case res.Signal != 0:
			missing = append(missing, fmt.Sprintf("%s: %v", args[0], res.Signal))
		case res.ExitCode > 0:
			missing = append(missing, fmt.Sprintf("%s: exit status %d", args[0], res.ExitCode))
		}
		return missing, res.Mappings
	}
}

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
