// Command rdx profiles where a running program loses its data locality.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdx-profiler/rdx/agent"
	"github.com/rdx-profiler/rdx/collector"
	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler/cost"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
)

func main() {
	if len(os.Args) > 4 && os.Args[1] == ptrace.LaunchArg {
		err := ptrace.RunLaunched(os.Args[2:])
		fmt.Fprintln(os.Stderr, "rdx:", err)
		os.Exit(exitCode(err))
	}
	if len(os.Args) == 3 && os.Args[1] == knownTargetArg {
		os.Exit(runKnownTarget(os.Args[2]))
	}
	if len(os.Args) == 2 && os.Args[1] == collector.CountingArg {
		os.Exit(collector.RunCounting())
	}
	if len(os.Args) > 1 && os.Args[1] == cost.Arg {
		os.Exit(cost.Run(os.Args[2:]))
	}
	if len(os.Args) > 1 && (os.Args[1] == "attach" || os.Args[1] == agent.SessionArg) {
		// Beside a thousand busy threads each wait for a turn takes seconds, also
		// that of a process to end: so this is not undone. If it can't be done, the
		// session says so.
		_, _ = ptrace.Hurry()
	}
	if err := hinted(newRootCmd().Execute(), os.Args[1:]); err != nil {
		if !errors.Is(err, collector.ErrNotStarted) { // the launched process has said why
			fmt.Fprintln(os.Stderr, "rdx:", err)
		}
		os.Exit(exitCode(err))
	}
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "rdx",
		Short:         "Profile where a running program loses its data locality",
		Version:       version.Get().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("rdx {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return report.BadInput(flagError(err)) })
	root.AddCommand(
		newAttachCmd(),
		newRunCmd(),
		newDoctorCmd(),
		newTopCmd(),
		newWhyCmd(),
		newAnnotateCmd(),
		newWebCmd(),
		newReportCmd(),
		newThreadsCmd(),
		newHistCmd(),
		newMrcCmd(),
		newDiffCmd(),
		newCompareCmd(),
		newExactCmd(),
		newGenCmd(),
		newComposeCmd(),
		newPartitionCmd(),
		newGroupCmd(),
		newTraceCmd(),
		newAgentCmd(),
		newWindowCmd(),
		newPhasesCmd(),
		newFleetCmd(),
		newVersionCmd(),
		newEngineCmd(),
		newDocsCmd(),
	)
	arrangeHelp(root)
	return root
}

// hinted says what a word that is no command was probably meant for.
func hinted(err error, args []string) error {
	if err == nil || len(args) == 0 || !strings.HasPrefix(err.Error(), "unknown command") {
		return err
	}
	if _, number := strconv.Atoi(args[0]); number == nil {
		err = fmt.Errorf("%w: a process is profiled by rdx attach %s", err, args[0])
	} else if !strings.Contains(err.Error(), "Did you mean") {
		err = fmt.Errorf("%w: a program is run by rdx run -- %s", err, strings.Join(args, " "))
	}
	return report.BadInput(err)
}

// flagError says of a flag's value that can't be read what is wanted.
func flagError(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name, value := bad.GetFlag().Name, bad.GetValue()
	switch bad.GetFlag().Value.Type() {
	case "bool":
		return fmt.Errorf("--%s %s: want true or false", name, value)
	case "duration":
		return fmt.Errorf("--%s %s: want a time with its unit, such as 500ms, 30s or 2m", name, value)
	case "float64":
		return fmt.Errorf("--%s %s: want a number", name, value)
	case "int":
		return fmt.Errorf("--%s %s: want a whole number", name, value)
	case "uint64":
		return fmt.Errorf("--%s %s: want a whole number, 0 or more", name, value)
	}
	return fmt.Errorf("--%s %s: %w", name, value, errors.Unwrap(bad))
}

// Exit codes: 1 for a failed operation, 2 for bad usage, and for what runs a
// program, when the result was written, the program's own (128 and the signal
// that killed it), or what a shell says of one that it cannot run.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitNotRun   = 126
	exitNotFound = 127
)

// exitError carries the exit code of a program that was run.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var exit exitError
	var usage report.UsageError
	var config collector.BadConfig
	var notRun *ptrace.NotRunError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage), errors.As(err, &config):
		return exitUsage
	case errors.As(err, &notRun) && notRun.Found():
		return exitNotRun
	case errors.As(err, &notRun):
		return exitNotFound
	}
	return exitFailed
}
