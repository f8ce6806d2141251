package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/trace"
)

func newExactCmd() *cobra.Command {
	var block, stack, format, output string
	var bins int
	var partial bool
	var sizes, caches []string
	var engine trace.Options
	var how exactFlags
	cmd := &cobra.Command{
		Use:   "exact TRACE | exact -- PROGRAM [ARG...]",
		Short: "Find the exact answer, of a program or of a trace",
		Long: `exact reads a trace of every access and prints what no sampling can get wrong:
the histograms of reuse times and of stack distances, the footprint, and the miss
ratio of fully associative LRU caches. - is standard input; gzip is unpacked.

A trace is what rdx trace record or valgrind --tool=lackey --trace-mem=yes writes, a
directory of DynamoRIO's drmemtrace (or one .trace.gz or .trace.zip of it), or one
access a line,
  address [R|W] [size [thread [pc]]]
with decimal or 0x numbers. An access that spans several blocks touches each of
them. All threads share one stack; with --stack private each has its own, in which
other threads' writes invalidate.

Without further flags the result is exact, on however many processors. --log2,
--shards and --sampled give less for less; what they say is marked as theirs.

A program is run under rdx's own valgrind tool, and its accesses are analysed as
they happen; its output is its own, and the report comes after it. The exit code is
the program's. Of one that crashes or is killed, what it did until then is reported.

With --gpu a GPU analyses, through its OpenCL driver; --gpu=list shows which there
are. The result is the same, to the last touch.

With -o the answer is a profile in the form of rdx run's: each use -> reuse pair of
instructions with its reuse times and stack distances, counted and not estimated.`,
		Example: `  valgrind --tool=lackey --trace-mem=yes --log-file=ls.lk ls; rdx exact ls.lk
  rdx trace record -o ls.rdt -- ls; rdx exact --stack private ls.rdt
  rdx exact -- gzip -k file
  rdx exact --sampled 1e-4 --stack private -- xz -T4 -k file
  rdx exact --shards size=8192 huge.rdt
  rdx exact -o exact.pb.gz -- gzip -k file; rdx compare live.pb.gz exact.pb.gz
  rdx exact --gpu=list; rdx exact --gpu huge.rdt
  rdx exact --block word --format csv trace.txt.gz > exact.csv
  rdx gen --zipf 1 -n 1000 -t 100000 | rdx exact -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if how.gpu == gpuList {
				return cobra.NoArgs(cmd, args)
			}
			if len(args) != 1 && (len(args) == 0 || cmd.ArgsLenAtDash() != 0) {
				return report.BadInput(fmt.Errorf("exact: name one trace, or - for standard input, or a program after --"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := report.OneOf("format", format, report.Formats); err != nil {
				return err
			}
			if how.gpu == gpuList {
				return listGPUs(cmd.OutOrStdout(), format)
			}
			if err := report.OneOf("stack", stack, []string{"shared", "private"}); err != nil {
				return err
			}
			if bins < 1 || bins > 64 {
				return report.BadInput(fmt.Errorf("--bins %d: want 1 to 64 per octave", bins))
			}
			bytes, err := blockBytes(block)
			if err != nil {
				return err
			}
			r := &exactReport{Trace: args[0], Method: "exact", Block: bytes, Stack: stack}
			for _, s := range sizes {
				n, err := sampler.ParseSize(s)
				if err != nil {
					return report.BadInput(fmt.Errorf("--sizes: %w", err))
				}
				r.sizes = append(r.sizes, uint64(n))
			}
			blocks := make([]uint64, len(r.sizes))
			for i, n := range r.sizes {
				blocks[i] = n / uint64(bytes)
			}
			if err := how.check(stack, blocks); err != nil {
				return err
			}
			if how.gpu != "" && cmd.Flags().Changed("jobs") {
				return report.BadInput(fmt.Errorf("--jobs is for processors; leave it or --gpu out"))
			}
			var sink exactSink
			var profile *profileSink
			if output == "" {
				if sink, err = newExactSink(r, &how, binsWith(bins, bytes, r.sizes)); err != nil {
					return err
				}
			} else {
				if engine.Children {
					return errChildrenProfile
				}
				for _, other := range []string{"log2", "shards", "sampled", "approximate"} {
					if cmd.Flags().Changed(other) {
						return report.BadInput(fmt.Errorf("exact -o: a profile is exact; leave --%s out", other))
					}
				}
				if profile, err = newExactProfile(output, bytes, bins, stack == "private", caches, &how); err != nil {
					return err
				}
				sink = profile
			}
			if g, ok := sink.(onGPU); ok && how.gpu != "" {
				defer g.close()
			}
			start := time.Now()
			var missing []string
			var mappings []*model.Mapping
			program := cmd.ArgsLenAtDash() == 0
			if program {
				r.Trace = strings.Join(args, " ")
			}
			if sampled, ok := sink.(*sampledSink); ok && program && !engine.Children && engine.Kind != trace.QEMU {
				missing, err = r.runSampled(cmd.Context(), args, engine, sampled)
			} else if touches, ok := sink.(touchSink); ok && program {
				missing, err = r.runTouches(cmd.Context(), args, engine, touches)
			} else {
				var source trace.AccessReader
				var finish func() ([]string, []*model.Mapping)
				if program {
					source, finish = r.runSource(cmd.Context(), args, engine)
				} else if source, finish, err = openSource(args[0], cmd.InOrStdin(), partial); err != nil {
					return err
				}
				recording, ok := source.(*trace.Source)
				if touches, also := sink.(touchSink); ok && also {
					err = r.readTouches(recording, touches)
				} else {
					err = r.read(source, sink, partial)
				}
				missing, mappings = finish()
			}
			r.Warnings = append(r.Warnings, missing...)
			for _, w := range r.Warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "rdx: warning:", w)
			}
			if err != nil && r.ended != nil {
				return fmt.Errorf("%w; %w", err, r.ended)
			}
			if err != nil {
				return notRunError(err)
			}
			if r.ended != nil { // on standard error it comes last
				r.Warnings = append(r.Warnings, r.ended.Error())
			}
			if r.Device != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "rdx: analysed on", r.Device)
			}
			if profile != nil {
				err = profile.write(output, r, start, mappings, cmd.ErrOrStderr())
			} else {
				r.summarize()
				err = report.Write(cmd.OutOrStdout(), format, r)
			}
			if err != nil {
				return err
			}
			return r.ended
		},
	}
	cmd.Flags().StringVar(&block, "block", "line", "what counts as one datum: word (8 bytes), line (64), page (4096), or a number of bytes")
	cmd.Flags().StringVar(&stack, "stack", "shared", "shared: one LRU stack for all threads; private: one each, with invalidation")
	cmd.Flags().StringVar(&format, "format", "text", "text, json or csv")
	cmd.Flags().IntVar(&bins, "bins", 10, "bins per octave in json and csv")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write a profile instead, as rdx run does, for rdx compare, top, hist and mrc")
	cmd.Flags().StringSliceVar(&caches, "caches", nil, "with -o: cache sizes to count misses for (default: this machine's)")
	cmd.Flags().StringSliceVar(&sizes, "sizes", nil, "cache sizes to give miss ratios for (default powers of two)")
	cmd.Flags().BoolVar(&engine.Children, "children", false, "of a program: the processes it starts, too")
	cmd.Flags().Var(engineFlag{&engine}, "engine", "of a program: valgrind; qemu, whose threads run in parallel; or the folder of a built valgrind tool (default: $RDX_ENGINE, or beside rdx)")
	cmd.Flags().BoolVar(&engine.Ordered, "ordered", false, orderedUsage)
	how.register(cmd)
	cmd.Flags().BoolVar(&partial, "partial", false, "skip lines that cannot be read, and use what there is of a truncated trace")
	return cmd
}

// binsWith returns logarithmic bins with an edge at each cache size, which
// makes its miss ratio exact.
func binsWith(perOctave, block int, sizes []uint64) *model.Bins {
	var edges []uint64
	for _, s := range sizes {
		edges = append(edges, s/uint64(block))
	}
	return model.LogBins(perOctave).With(edges)
}

// recordingMagic is how a file of package trace begins.
const recordingMagic = "RDXTRACE"

// openSource opens a trace of any format. finish closes it and says what was
// missing from it.
func openSource(path string, stdin io.Reader, partial bool) (source trace.AccessReader, finish func() ([]string, []*model.Mapping), err error) {
	if path != "-" && trace.IsDrmemtrace(path) {
		return openDrmemtrace(path, partial)
	}
	in, err := openInput(path, stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("open trace: %w", err)
	}
	head, err := in.Peek(len(recordingMagic))
	if err == nil && string(head) == recordingMagic {
		file, size, err := in.Seekable()
		if err != nil {
			in.Close()
			return nil, nil, err
		}
		return openRecording(file, size, in, partial)
	}
	source, err = trace.OpenText(in, path)
	if err != nil {
		in.Close()
		return nil, nil, err
	}
	return source, func() ([]string, []*model.Mapping) { in.Close(); return nil, nil }, nil
}

func openDrmemtrace(path string, partial bool) (trace.AccessReader, func() ([]string, []*model.Mapping), error) {
	d, err := trace.OpenDrmemtrace(path)
	if err != nil {
		return nil, nil, err
	}
	d.Partial = partial
	finish := func() ([]string, []*model.Mapping) {
		d.Close()
		return d.Notes(), nil
	}
	return d, finish, nil
}

func openRecording(in io.ReaderAt, size int64, of *input, partial bool) (trace.AccessReader, func() ([]string, []*model.Mapping), error) {
	f, err := trace.NewReader(in, size)
	if err != nil {
		of.Close()
		return nil, nil, fmt.Errorf("trace %s: %w", of.name, err)
	}
	s := trace.NewSource(f)
	s.Partial = partial
	finish := func() ([]string, []*model.Mapping) {
		defer of.Close()
		var missing []string
		for _, why := range f.Summary().Partial {
			missing = append(missing, "the recording is not whole: "+why)
		}
		if how := endedHow(syscall.Signal(f.Summary().Signal), f.Summary().ExitCode); how != "" {
			missing = append(missing, "the program recorded: "+how)
		}
		if n := f.Summary().Dropped; n > 0 {
			missing = append(missing, fmt.Sprintf("the %d oldest accesses were dropped to keep the recording small", n))
		}
		if d := f.Damage(); len(d) > 0 && partial {
			missing = append(missing, fmt.Sprintf("%d parts of the trace could not be read, the first at %s", len(d), d[0]))
		}
		return missing, f.Mappings()
	}
	return s, finish, nil
}

// blockBytes reads the --block flag.
func blockBytes(s string) (int, error) {
	switch s {
	case "word":
		return model.WordBytes, nil
	case "line":
		return model.LineBytes, nil
	case "page":
		return model.PageBytes, nil
	}
	n, err := strconv.Atoi(s)
	if err == nil {
		_, err = model.NewGranularity(n)
	}
	if err != nil {
		return 0, report.BadInput(fmt.Errorf("--block %q: want word, line, page or a power of two", s))
	}
	return n, nil
}
