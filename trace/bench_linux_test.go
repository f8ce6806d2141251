// Needs gcc, make and the package valgrind (its headers too); skips without.
package trace

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/rdx-profiler/rdx/model"
)

// gzipStream is what the engine writes of gzip: buffers, and accesses.
func gzipStream(b *testing.B) (buffers [][]uint64, accesses int) {
	text := filepath.Join(b.TempDir(), "text")
	var in []byte
	for i := range 12_000 {
		in = append(in, programLine(i)...)
	}
	if err := os.WriteFile(text, in, 0o644); err != nil {
		b.Fatal(err)
	}
	cmd := Command{Args: []string{"/bin/gzip", "-6", "-c", text}, Env: pinned}
	opt := Options{Engine: engineDir(b)}
	if _, err := Run(context.Background(), cmd, opt, func(a []model.Access) { accesses += len(a) }); err != nil {
		b.Fatal(err)
	}
	c := &copier{}
	if _, err := run(context.Background(), cmd, opt, c); err != nil {
		b.Fatal(err)
	}
	return c.buffers, accesses
}

// copier keeps whole buffers, marks included: of each, the first call sees
// it all.
type copier struct {
	buffers [][]uint64
	next    int // word that the next call for the same buffer begins at or behind
}

func (c *copier) open(int) (sink, error) { return c, nil }

func (c *copier) after(f func()) { f() }

func (c *copier) enter(d *decoder, w []uint64, i int) (int, error) {
	if n := len(c.buffers); n == 0 || i < c.next || len(w) != len(c.buffers[n-1]) {
		c.buffers = append(c.buffers, slices.Clone(w))
	}
	for i < len(w) {
		g, next := d.at(w, i)
		if g == nil {
			break
		}
		i = next
	}
	c.next = i
	if i == len(w) {
		c.next = len(w) + 1
	}
	return i, nil
}

func BenchmarkWriter(b *testing.B) {
	buffers, accesses := gzipStream(b)
	start := cpuTime(b)
	for b.Loop() {
		w, err := NewWriter(discard{}, Header{})
		if err != nil {
			b.Fatal(err)
		}
		var d decoder
		r := recorder{w}
		to, _ := r.open(1)
		for _, w := range buffers {
			if _, err := d.buffer(w, false, to); err != nil {
				b.Fatal(err)
			}
			r.after(func() {})
		}
		if s, err := w.Close(Summary{}); err != nil || s.Accesses != uint64(accesses) {
			b.Fatalf("%+v, %v, want %d accesses", s, err, accesses)
		}
		b.ReportMetric(float64(w.Size())/float64(accesses), "B/access")
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/float64(accesses), "cpu-ns/access")
}

func BenchmarkRun(b *testing.B) {
	buffers, accesses := gzipStream(b)
	start := cpuTime(b)
	for b.Loop() {
		var d decoder
		n := 0
		to := newBatcher(func(a []model.Access) { n += len(a) })
		for _, w := range buffers {
			if _, err := d.buffer(w, false, to); err != nil {
				b.Fatal(err)
			}
		}
		to.flush()
		if n != accesses {
			b.Fatalf("%d accesses, want %d", n, accesses)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/float64(accesses), "cpu-ns/access")
}

func BenchmarkReader(b *testing.B) {
	buffers, accesses := gzipStream(b)
	m := &memory{}
	w, err := NewWriter(m, Header{})
	if err != nil {
		b.Fatal(err)
	}
	var d decoder
	to, _ := recorder{w}.open(1)
	for _, w := range buffers {
		if _, err := d.buffer(w, false, to); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.Close(Summary{}); err != nil {
		b.Fatal(err)
	}
	start := cpuTime(b)
	for b.Loop() {
		r := open(b, m.b)
		n := 0
		for {
			_, batch, err := r.Next()
			if err == io.EOF {
				break
			}
			n += len(batch)
		}
		if n != accesses {
			b.Fatalf("%d accesses, want %d", n, accesses)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/float64(accesses), "cpu-ns/access")
}

// cpuTime is that of this process, in nanoseconds: unlike the time on the
// wall it does not depend on what else the machine does.
func cpuTime(b *testing.B) int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

type discard struct{}

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
