package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"time"

	"github.com/google/pprof/profile"

	"github.com/rdx-profiler/rdx/fleet"
	"github.com/rdx-profiler/rdx/pprofout"
)

// sizes prints what a profile takes as the two series of a window.
func sizes(path string) error {
	p, err := pprofout.ReadFile(path)
	if err == nil {
		err = p.Derive()
	}
	if err != nil {
		return err
	}
	n := int64(0)
	for i := range p.Records {
		n += p.Records[i].Observations
	}
	fmt.Printf("%s: %d observations, %d records\n", path, n, len(p.Records))
	for _, drawn := range []bool{true, false} {
		w := fleet.Window{Profile: p, Weight: 3, Drawn: drawn, Time: time.Now()}
		for name, make := range map[string]func() ([]byte, error){fleet.PeopleName: w.People, fleet.RawName: w.Pack} {
			b, err := make()
			if err != nil {
				return err
			}
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return err
			}
			plain, err := io.ReadAll(z)
			if err != nil {
				return err
			}
			q, err := profile.ParseData(b)
			if err != nil {
				return err
			}
			fmt.Printf("  %-8s drawn %-5v %6d bytes gzip'd, %7d plain, %5d samples, %d columns\n", name, drawn, len(b), len(plain), len(q.Sample), len(q.SampleType))
		}
	}
	return nil
}
