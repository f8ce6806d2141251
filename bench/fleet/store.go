package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	rdxagent "github.com/rdx-profiler/rdx/agent"
	"github.com/rdx-profiler/rdx/fleet"
	"github.com/rdx-profiler/rdx/fleet/backend"
	"github.com/rdx-profiler/rdx/pprofout"
)

// store pushes a profile as so many windows of fifty hosts to a server of its own, and prints what the
// server took for it and what reading it back takes.
func store(ctx context.Context, path string, windows int) error {
	p, err := pprofout.ReadFile(path)
	if err == nil {
		err = p.Derive()
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rdx-store-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := backend.Start(ctx, dir, 1, backend.Options{Args: []string{"-distributor.ingestion-rate-limit-mb=1000", "-distributor.ingestion-burst-size-mb=1000"}})
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		if !stopped {
			backend.Stop(s)
		}
	}()
	c, err := fleet.NewClient(fleet.Access{Server: s[0].URL}, time.Minute)
	if err != nil {
		return err
	}
	used := func() time.Duration {
		q, err := rdxagent.Proc{Dir: "/proc"}.Process(s[0].PID())
		if err != nil {
			return 0
		}
		return q.CPU
	}
	start, before, sent := time.Now().Add(-50*time.Minute), used(), 0
	for i := range windows {
		w := fleet.Window{Profile: p, Weight: 3, Drawn: true, Time: start.Add(time.Duration(i) * 45 * time.Minute / time.Duration(windows)), Name: fmt.Sprint(i)}
		people, err := w.People()
		if err != nil {
			return err
		}
		raw, err := w.Pack()
		if err != nil {
			return err
		}
		labels := func(name string) []fleet.Label {
			return []fleet.Label{{Name: "__name__", Value: name}, {Name: "service_name", Value: "s"}, {Name: "host", Value: fmt.Sprintf("h%d", i%50)}, {Name: fleet.ConfigLabel, Value: fleet.Config(p)}}
		}
		sent += len(people) + len(raw)
		if err := c.Push(ctx, []fleet.Series{{Labels: labels(fleet.PeopleName), Profile: people}, {Labels: labels(fleet.RawName), Profile: raw}}); err != nil {
			return err
		}
	}
	pushing := used() - before
	fmt.Printf("%d windows of %.1f kB: %v of the server's CPU time each\n", windows, float64(sent)/float64(windows)/1e3, (pushing / time.Duration(windows)).Round(10*time.Microsecond))
	began := time.Now()
	merged, err := c.Profile(ctx, fleet.Query{Labels: []string{"service_name=s"}, From: start.Add(-time.Minute), To: time.Now()})
	if err != nil {
		return err
	}
	fmt.Printf("merged and read back in %v: %d records\n", time.Since(began).Round(time.Millisecond), len(merged.Records))
	_ = s[0].Signal(unix.SIGTERM) // what is in memory goes to disk
	backend.Stop(s)
	stopped = true
	var size int64
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, "/log") && strings.Contains(path, "/storage/") {
			if fi, err := d.Info(); err == nil {
				size += fi.Size()
			}
		}
		return err
	})
	fmt.Printf("%.1f kB stored, %.2f kB a window\n", float64(size)/1e3, float64(size)/1e3/float64(windows))
	return err
}
