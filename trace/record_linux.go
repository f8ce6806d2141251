package trace

import (
	"context"
	"fmt"
	"os"
	"time"
)

// RecordOptions say how a recording is made.
type RecordOptions struct {
	Options
	MaxSize int64  // bytes of the file, see NewWriter; 0 for no bound
	Writer  string // of the header
	// Progress is called every second or so while the program runs.
	Progress func(accesses uint64, size int64)
}

// Record runs a program under the engine and writes its accesses to a file. A
// program that crashes or is killed, and a disk that is full, leave a trace
// that can be read, whose Summary says why it is partial; the program itself
// goes on to its end in any case.
func Record(ctx context.Context, path string, cmd Command, opt RecordOptions) (Result, Summary, error) {
	if opt.Kind == "" {
		opt.Kind = Valgrind
	}
	f, err := os.Create(path)
	if err != nil {
		return Result{}, Summary{}, fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	w, err := NewWriter(f, Header{
		Writer: opt.Writer, Engine: string(opt.Kind), Command: cmd.Args, Start: time.Now(),
		MaxSize: opt.MaxSize, Children: opt.Children, Fast: opt.Fast,
	})
	if err != nil {
		return Result{}, Summary{}, fmt.Errorf("record %s: %w", path, err)
	}
	if opt.Progress != nil {
		stop := make(chan struct{})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			t := time.NewTicker(time.Second)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					opt.Progress(w.Accesses(), w.Size())
				case <-stop:
					return
				}
			}
		}()
		defer func() {
			close(stop)
			<-stopped
		}()
	}
	res, err := run(ctx, cmd, opt.Options, recorder{w})
	if w.Err() != nil {
		err = nil // the summary has it; what was written stays
	}
	s, cerr := w.Close(Summary{Partial: res.Partial, ExitCode: res.ExitCode, Signal: int(res.Signal), Mappings: res.Mappings})
	if err == nil && res.Processes == 0 {
		err = fmt.Errorf("no accesses")
	}
	if err == nil {
		err = cerr
	}
	switch st, serr := f.Stat(); {
	case err == nil:
		return res, s, nil
	case serr == nil && st.Mode().IsRegular() && s.Accesses == 0:
		os.Remove(path)
	case s.Accesses > s.Dropped:
		err = fmt.Errorf("%w; it has %d accesses from before", err, s.Accesses-s.Dropped)
	}
	return res, s, fmt.Errorf("record %s: %w", path, err)
}
