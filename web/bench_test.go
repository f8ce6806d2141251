package web

import (
	"bytes"
	"io"
	"testing"

	"github.com/rdx-profiler/rdx/pprofout"
)

// BenchmarkNew is what a server does before the first picture of 100,000 samples.
func BenchmarkNew(b *testing.B) {
	p := large(100_000, 6)
	if err := p.Derive(); err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if err := pprofout.Write(&file, p); err != nil {
		b.Fatal(err)
	}
	raw, err := pprofout.Read(&file)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		d, err := New(raw, "x", "", Options{})
		if err != nil {
			b.Fatal(err)
		}
		out, err := pack(d)
		if err != nil {
			b.Fatal(err)
		}
		n, err := out.WriteTo(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n), "bytes")
	}
}
