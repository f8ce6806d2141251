package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdx-profiler/rdx/exact"
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/report"
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/trace"
)

// exactOptions are the flags of rdx exact, with those of how in a part of their own.
type exactOptions struct {
	block, stack, format, output, report string
	bins                                 int
	partial, quiet, patterns             bool
	sizes, caches                        []string
	engine                               trace.Options
	how                                  exactFlags
}

func newExactCmd() *cobra.Command {
	var o exactOptions
	cmd := &cobra.Command{
		Use:   "exact [flags] TRACE | exact [flags] -- PROGRAM [ARG...]",
		Short: "Find the exact answer, of a program or of a trace",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.how.gpu == gpuList {
				return cobra.NoArgs(cmd, args)
			}
			if len(args) != 1 && (len(args) == 0 || cmd.ArgsLenAtDash() != 0) {
				return report.BadInput(fmt.Errorf("exact: name one trace, or - for standard input, or a program after --"))
			}
			return nil
		},
		RunE: o.run,
	}
	o.register(cmd)
	return cmd
}

func (o *exactOptions) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&o.block, "block", "line", "what counts as one datum: word (8 bytes), line (64), page (4096), or a number of bytes")
	fs.StringVar(&o.stack, "stack", "shared", "shared: one LRU stack for all threads; private: one each, with invalidation")
	fs.StringVar(&o.format, "format", "text", "text, json or csv")
	fs.IntVar(&o.bins, "bins", 10, "bins per octave in json and csv")
	fs.StringVarP(&o.output, "output", "o", "", "write a profile instead, as rdx run does, for rdx compare, top, hist and mrc; - for standard output")
	fs.StringVar(&o.report, "report", "-", "file for the report, apart from what a program prints; - is standard output, /dev/fd/3 a descriptor")
	fs.BoolVar(&o.patterns, "patterns", false, "tell of each instruction its stride, line use and traffic instead (docs/explanation/patterns.md)")
	fs.StringSliceVar(&o.caches, "caches", nil, "with -o and --patterns: cache sizes to count misses for (default: this machine's)")
	fs.StringSliceVar(&o.sizes, "sizes", nil, "cache sizes to give miss ratios for (default powers of two)")
	fs.BoolVar(&o.engine.Children, "children", false, "of a program: the processes it starts, too")
	fs.Var(engineFlag{&o.engine}, "engine", "of a program: valgrind; qemu, whose threads run in parallel; or the folder of a built valgrind tool (default: $RDX_ENGINE, or beside rdx)")
	fs.BoolVar(&o.engine.Ordered, "ordered", false, orderedUsage)
	o.how.register(cmd)
	fs.BoolVar(&o.partial, "partial", false, "skip lines that cannot be read, and use what there is of a truncated trace")
	quietFlag(cmd, &o.quiet)
}

// run does what the flags ask for.
func (o *exactOptions) run(cmd *cobra.Command, args []string) error {
	if err := report.OneOf("format", o.format, report.Formats); err != nil {
		return err
	}
	if o.how.gpu == gpuList {
		return listGPUs(cmd.OutOrStdout(), o.format)
	}
	program := cmd.ArgsLenAtDash() == 0
	if err := o.checkGiven(cmd.Flags().Changed, program); err != nil {
		return err
	}
	r, err := o.newRun(cmd, args[0])
	if err != nil {
		return err
	}
	if program {
		r.Trace = strings.Join(args, " ")
	}
	if o.output == "-" && program {
		return report.BadInput(errors.New("exact -o -: standard output is the program's, name a file"))
	}
	sink, profile, err := o.newSink(cmd, r)
	if err != nil {
		return err
	}
	if g, ok := sink.(onGPU); ok && o.how.gpu != "" {
		defer g.close()
	}
	to, err := openReport(cmd, o.report)
	if err != nil {
		return err
	}
	defer to.discard()
	start := time.Now()
	missing, mappings, err := o.analyse(cmd, r, args, sink, program)
	r.Warnings = append(r.Warnings, missing...)
	for _, w := range r.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "rdx: warning:", w)
	}
	switch {
	case err != nil && r.ended != nil:
		return fmt.Errorf("%w; %w", err, r.ended)
	case err != nil:
		return notRunError(err)
	case r.ended != nil: // on standard error it comes last
		r.Warnings = append(r.Warnings, r.ended.Error())
	}
	if r.Device != "" && !o.quiet {
		fmt.Fprintln(cmd.ErrOrStderr(), "rdx: analysed on", r.Device)
	}
	if profile != nil {
		err = o.writeProfile(cmd.ErrOrStderr(), r, profile.counted(), start, mappings)
	} else {
		err = o.writeReport(to, r, sink, mappings)
	}
	if err != nil {
		return err
	}
	return r.ended
}

// writeReport writes what was found.
func (o *exactOptions) writeReport(to *reportTo, r *exactRun, sink exactSink, mappings []*model.Mapping) error {
	var shown report.Report = &r.Exact
	if p, ok := sink.(*patternsSink); ok {
		patterns, err := p.report(r, mappings)
		if err != nil {
			return err
		}
		shown = patterns
	} else {
		r.Tabulate(r.found, r.sizes)
	}
	if err := report.Write(to, o.format, shown); err != nil {
		return err
	}
	return to.commit()
}

// writeProfile writes what was counted in place of a report, and says so.
func (o *exactOptions) writeProfile(stderr io.Writer, r *exactRun, tally *exact.PairTally, start time.Time, mappings []*model.Mapping) error {
	if err := writeProfile(tally, o.output, r, start, mappings); err != nil {
		return err
	}
	if !o.quiet {
		fmt.Fprint(stderr, r.Wrote(o.output, tally.Kinds()))
	}
	return nil
}

// checkGiven reports flags that would do nothing beside the others.
func (o *exactOptions) checkGiven(given func(flag string) bool, program bool) error {
	for _, f := range []struct {
		needs string
		met   bool
		flags []string
	}{
		{"a program", program, []string{"children", "engine", "ordered"}},
		{"--engine qemu", o.engine.Kind == trace.QEMU, []string{"ordered"}},
		{"a report; leave it or -o out", o.output == "", []string{"sizes", "format"}},
		{"-o and --patterns", o.output != "" || o.patterns, []string{"caches"}},
		{"--sampled", o.how.sampled > 0, []string{"seed", "prune-after", "late"}},
		{"--gpu", o.how.gpu != "", []string{"gpu-segment"}},
	} {
		for _, flag := range f.flags {
			if !f.met && given(flag) {
				return report.BadInput(fmt.Errorf("--%s is for %s", flag, f.needs))
			}
		}
	}
	return nil
}

// newRun checks the flags, and is an analysis as far as they make it.
func (o *exactOptions) newRun(cmd *cobra.Command, name string) (*exactRun, error) {
	if err := report.OneOf("stack", o.stack, []string{"shared", "private"}); err != nil {
		return nil, err
	}
	if o.bins < 1 || o.bins > 64 {
		return nil, report.BadInput(fmt.Errorf("--bins %d: want 1 to 64 per octave", o.bins))
	}
	bytes, err := blockBytes(o.block)
	if err != nil {
		return nil, err
	}
	if name == "-" {
		name = "standard input"
	}
	r := &exactRun{Exact: report.Exact{Trace: name, Method: "exact", Block: bytes, Stack: o.stack}}
	for _, s := range o.sizes {
		n, err := sampler.ParseSize(s)
		if err != nil {
			return nil, report.BadInput(fmt.Errorf("--sizes: %w", err))
		}
		r.sizes = append(r.sizes, uint64(n))
	}
	blocks := make([]uint64, len(r.sizes))
	for i, n := range r.sizes {
		blocks[i] = n / uint64(bytes)
	}
	if err := o.how.check(o.stack, blocks); err != nil {
		return nil, err
	}
	if o.how.gpu != "" && cmd.Flags().Changed("jobs") {
		return nil, report.BadInput(fmt.Errorf("--jobs is for processors; leave it or --gpu out"))
	}
	return r, nil
}

// newSink is the analysis that the flags ask for; profile is the same if it makes one.
func (o *exactOptions) newSink(cmd *cobra.Command, r *exactRun) (sink exactSink, profile profileSink, err error) {
	if o.patterns {
		if o.output != "" || len(o.sizes) > 0 {
			return nil, nil, report.BadInput(errors.New("--patterns is a report of its own; leave -o and --sizes out, and name cache sizes with --caches"))
		}
		sink, err = newPatternsSink(o, r)
		return sink, nil, err
	}
	if o.output == "" {
		sink, err = newExactSink(r, &o.how, binsWith(o.bins, r.Block, r.sizes))
		return sink, nil, err
	}
	if o.engine.Children {
		return nil, nil, errChildrenProfile
	}
	for _, other := range []string{"log2", "shards", "sampled", "approximate"} {
		if cmd.Flags().Changed(other) {
			return nil, nil, report.BadInput(fmt.Errorf("exact -o: a profile is exact; leave --%s out", other))
		}
	}
	if o.report != "-" {
		return nil, nil, report.BadInput(errors.New("exact -o: a profile takes the place of the report; leave --report out"))
	}
	profile, err = newExactProfile(o.output, r.Block, o.bins, o.stack == "private", o.caches, &o.how)
	return profile, profile, err
}

// analyse gives the sink all accesses in the form that it needs.
func (o *exactOptions) analyse(cmd *cobra.Command, r *exactRun, args []string, sink exactSink, program bool) (missing []string, mappings []*model.Mapping, err error) {
	ctx := cmd.Context()
	touches, isTouches := sink.(touchSink)
	placed, isPlaced := sink.(placedSink)
	paired, isPaired := sink.(pairedSink)
	if program {
		warnEngine(cmd.ErrOrStderr(), args[0])
		sampled, ok := sink.(*sampledSink)
		switch {
		case ok && !o.engine.Children && o.engine.Kind != trace.QEMU:
			missing, err = r.runSampled(ctx, args, o.engine, sampled)
			return missing, nil, err
		case isTouches:
			missing, _, err = runTouches(ctx, r, args, o.engine, sink, touches.addTouches, trace.RunTouches)
			return missing, nil, err
		case isPlaced:
			return runTouches(ctx, r, args, o.engine, sink, placed.addPlaced, trace.RunPlacedTouches)
		case isPaired:
			return runTouches(ctx, r, args, o.engine, sink, paired.addPaired, trace.RunPairedTouches)
		}
		source, finish := r.runSource(ctx, args, o.engine)
		err = r.read(source, sink, o.partial)
		missing, mappings = finish()
		return missing, mappings, err
	}
	source, finish, err := openSource(args[0], cmd.InOrStdin(), o.partial)
	if err != nil {
		return nil, nil, err
	}
	recording, ok := source.(*trace.Source)
	switch {
	case ok && isTouches:
		err = readTouches(r, sink, recording.Touches, touches.addTouches)
	case ok && isPlaced:
		err = readTouches(r, sink, recording.PlacedTouches, placed.addPlaced)
	case ok && isPaired:
		err = readTouches(r, sink, recording.PairedTouches, paired.addPaired)
	default:
		err = r.read(source, sink, o.partial)
	}
	missing, mappings = finish()
	return missing, mappings, err
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
