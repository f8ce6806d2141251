package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/internal/version"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/trace"
)

func newTraceCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Record every access of a program, and look at recordings",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTraceRecordCmd(), newTraceInfoCmd())
	return cmd
}

func newTraceRecordCmd() *cobra.Command {
	var output, maxSize string
	var opt trace.RecordOptions
	var quiet bool
	cmd := &cobra.Command{
		Use:   "record [flags] -- PROGRAM [ARG...]",
		Short: "Run a program under instrumentation and record every access",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return report.BadInput(errors.New("trace record: name a program to run, after --"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "-" {
				return report.BadInput(errors.New("trace record -o -: standard output is the program's: name a file"))
			}
			if maxSize != "" && maxSize != "0" {
				n, err := sampler.ParseSize(maxSize)
				if err != nil {
					return report.BadInput(fmt.Errorf("--max-size: %w", err))
				}
				opt.MaxSize = int64(n)
			}
			return recordTrace(cmd, output, args, opt, quiet)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "rdx.rdt", "file to write")
	cmd.Flags().StringVar(&maxSize, "max-size", "4G", "bytes the file may have, at least 16M; the oldest accesses make room; 0 for no bound")
	cmd.Flags().BoolVar(&opt.Children, "children", false, "record the processes it starts, too")
	cmd.Flags().BoolVar(&opt.Fast, "fast", false, "leave out loads whose value the program never uses; about a quarter faster")
	cmd.Flags().Var(engineFlag{&opt.Options}, "engine", "valgrind; qemu, whose threads run in parallel; or the folder of a built valgrind tool (default: $RDX_ENGINE, or beside rdx)")
	cmd.Flags().BoolVar(&opt.Ordered, "ordered", false, orderedUsage)
	quietFlag(cmd, &quiet)
	return cmd
}

func recordTrace(cmd *cobra.Command, output string, args []string, opt trace.RecordOptions, quiet bool) error {
	// What the program did until an interrupt is recorded. SIGTERM is passed on by rdx.
	defer outliveInterrupt()()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()

	if !opt.Ordered { // else the program has ended when its accesses are read
		defer leaveProcessor()()
	}
	start := time.Now()
	terminal := isTerminal(os.Stderr)
	if terminal && !quiet {
		before := recorded{at: start}
		opt.Progress = func(accesses uint64, size int64) {
			now := recorded{time.Now(), accesses}
			fmt.Fprint(os.Stderr, "\r\033[K", now.since(before, size))
			before = now
		}
	}
	opt.Writer = version.Get().String()
	warnEngine(cmd.ErrOrStderr(), args[0])
	res, s, err := trace.Record(ctx, output, trace.Command{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, opt)
	if opt.Progress != nil {
		fmt.Fprint(os.Stderr, "\r\033[K")
	}
	if err != nil {
		return notRunError(err)
	}
	if !quiet {
		size := int64(0)
		if st, err := os.Stat(output); err == nil {
			size = st.Size()
		}
		kept := s.Accesses - s.Dropped
		elapsed := time.Since(start)
		fmt.Fprintf(os.Stderr, "rdx: wrote %s: %s accesses of %d %s in %.1fs, %s, %.2f bytes per access\n", output, report.Amount(float64(kept)),
			res.Processes, plural(res.Processes, "process", "processes"), elapsed.Seconds(), report.Bytes(float64(size)), float64(size)/float64(max(kept, 1)))
	}
	for _, p := range s.Partial {
		fmt.Fprintln(os.Stderr, "rdx: warning: the recording is partial:", p)
	}
	return endError(args[0], res)
}

// recorded is how many accesses there were at some moment.
type recorded struct {
	at       time.Time
	accesses uint64
}

// since is the line of progress: accesses so far, how many a second since before, and the size of the file in bytes.
func (r recorded) since(before recorded, size int64) string {
	rate := float64(r.accesses-before.accesses) / max(r.at.Sub(before.at).Seconds(), 1e-3)
	return fmt.Sprintf("rdx: %s accesses, %s/s, %s", report.Amount(float64(r.accesses)), report.Amount(rate), report.Bytes(float64(size)))
}

// leaveProcessor leaves one of the processors that rdx may run on to the program, until
// restore is called. One that encodes keeps up with a program's thread; where there are two
// processors a second one, and Go's scheduler looking for work, would only interrupt the program.
func leaveProcessor() (restore func()) {
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(n-1, 1))
	return func() { runtime.GOMAXPROCS(n) }
}

// notRunError gives an error that says that a program cannot be run the exit code
// that a shell has for it.
func notRunError(err error) error {
	var notRun *exec.Error
	switch {
	case errors.As(err, &notRun) && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist)):
		return exitError{err, exitNotFound}
	case errors.As(err, &notRun):
		return exitError{err, exitNotRun}
	}
	return err
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func newTraceInfoCmd() *cobra.Command {
	var check bool
	var asJSON jsonFlag
	cmd := &cobra.Command{
		Use:   "info TRACE",
		Short: "Tell what a recording holds, and check it",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return report.BadInput(errors.New("trace info: name one recording"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			json, err := asJSON.wanted()
			if err != nil {
				return err
			}
			in, err := openInput(args[0], cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("trace: %w", err)
			}
			defer in.Close()
			all, size, err := in.Seekable()
			if err != nil {
				return err
			}
			f, err := trace.NewReader(all, size)
			if err != nil {
				return fmt.Errorf("trace %s: %w", in.name, err)
			}
			i := traceInfo{Header: f.Header(), Summary: f.Summary(), Threads: f.Threads()}
			for _, t := range i.Threads {
				i.Accesses += t.Accesses
			}
			if check {
				var n uint64
				for {
					_, b, err := f.Next()
					if err == io.EOF {
						break
					}
					n += uint64(len(b))
				}
				i.Read = &n
			}
			for _, d := range f.Damage() {
				i.Damage = append(i.Damage, d.String())
			}
			if json {
				return report.WriteJSON(cmd.OutOrStdout(), i)
			}
			i.write(cmd.OutOrStdout())
			if len(i.Damage) > 0 {
				return fmt.Errorf("%s: %d parts cannot be read", args[0], len(i.Damage))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "read all of it")
	asJSON.register(cmd)
	return cmd
}

type traceInfo struct {
	Header   trace.Header   `json:"header"`
	Summary  trace.Summary  `json:"summary"`
	Accesses uint64         `json:"accesses"` // in the blocks of the file
	Read     *uint64        `json:"read,omitempty"`
	Threads  []trace.Thread `json:"threads"`
	Damage   []string       `json:"damage,omitempty"`
}

func (i *traceInfo) write(w io.Writer) {
	fmt.Fprintf(w, "command   %s\n", report.Printable(strings.Join(i.Header.Command, " ")))
	fmt.Fprintf(w, "start     %s\n", i.Header.Start.Format(time.RFC3339))
	if i.Header.Writer != "" {
		fmt.Fprintf(w, "writer    %s\n", report.Printable(i.Header.Writer))
	}
	fmt.Fprintf(w, "engine    %s\n", report.Printable(i.Header.Engine))
	if how := endedHow(syscall.Signal(i.Summary.Signal), i.Summary.ExitCode); how != "" {
		fmt.Fprintf(w, "ended     %s\n", how)
	}
	fmt.Fprintf(w, "accesses  %d\n", i.Accesses)
	if i.Read != nil {
		fmt.Fprintf(w, "readable  %d\n", *i.Read)
	}
	for _, t := range i.Threads {
		fmt.Fprintf(w, "thread    %d of process %d: %d accesses in %d blocks\n", t.ID, t.PID, t.Accesses, t.Blocks)
	}
	for _, p := range i.Summary.Partial {
		fmt.Fprintf(w, "partial   %s\n", report.Printable(p))
	}
	for _, d := range i.Damage {
		fmt.Fprintf(w, "damage    %s\n", d)
	}
}
