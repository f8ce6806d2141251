package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rdx-profiler/rdx/bench/coverage"
	"github.com/rdx-profiler/rdx/trace"
)

// How often bands hold the truth is counted by simulation: sessions are drawn from recorded
// streams, package coverage.

// simulation says how much of it there is.
type simulation struct {
	repetitions int
	skip, long  int // touches of a stream: before it, and its own
	settings    []coverage.Setting
}

// simulated are the settings.
var simulated = []coverage.Setting{
	{Clock: coverage.ByAccesses, Holds: 300},
	{Clock: coverage.ByTime, Holds: 100},
	{Clock: coverage.ByTime, Holds: 300},
	{Clock: coverage.ByTime, Holds: 1000},
	{Clock: coverage.ByTime, Holds: 300, Halves: true},
}

// longSession is how many holds tell of the conversion by itself.
const longSession = 6000

// recording of a program.
func (b *bench) recording(p program) coverage.Recording {
	n := p.exact
	if p.live == forever {
		n = p.live
	}
	argv := p.argv(n)
	if path := filepath.Join("/usr/bin", argv[0]); !filepath.IsAbs(argv[0]) { // not what this process's PATH has
		argv[0] = path
	}
	return coverage.Recording{Name: p.name, Skip: b.sim.skip, Length: b.sim.long,
		Command: trace.Command{Args: argv, Env: pinned, Dir: b.dir}, Options: trace.Options{Engine: filepath.Join(filepath.Dir(b.rdx), "valgrind")}}
}

// singleThreaded are programs that run with several threads elsewhere.
var singleThreaded = []program{
	{name: "zstd -3", exact: 20, argv: func(n int) []string {
		return append([]string{"zstd", "-3", "--single-thread", "-q", "-c"}, repeat("text2m", n)...)
	}},
}

// cover prints the table of the programs' streams.
func (b *bench) cover(ps []program) error {
	if ps[0].live != forever {
		ps = append(slices.Clone(ps), singleThreaded...)
	}
	var off []float64
	sums := coverage.NewTotals()
	fmt.Println("| stream | sessions | cache | exact, % | band holds, % | too low / too high | quoted, % | median error of these | bias |\n|---|---|---|---|---|---|---|---|---|")
	for _, p := range ps {
		if p.stack != "" || !slices.ContainsFunc(b.only, func(s string) bool { return strings.HasPrefix(p.name, s) }) {
			continue
		}
		start := time.Now()
		s, err := coverage.Record(context.Background(), b.recording(p))
		if err != nil {
			return err
		}
		by, err := s.Converted(longSession, 1)
		if err != nil {
			return err
		}
		off = append(off, by...)
		fmt.Fprintf(os.Stderr, "%s: recorded in %.0fs; conversion off by %.2f\n", p.name, time.Since(start).Seconds(), by)
		for _, c := range b.sim.settings {
			start := time.Now()
			tallies, err := s.Run(c, b.sim.repetitions, runtime.GOMAXPROCS(0), 1)
			if err != nil {
				return err
			}
			for k := range tallies {
				fmt.Printf("| %s | %v | %s | %v |\n", p.name, c, cacheNames[k], &tallies[k])
			}
			sums.Add(c, &tallies)
			fmt.Fprintf(os.Stderr, "%s, %v: %.2fs a session\n", p.name, c, time.Since(start).Seconds()/float64(b.sim.repetitions))
		}
	}
	sums.Print(os.Stdout)
	squares := 0.0
	for _, x := range off {
		squares += x * x
	}
	fmt.Printf("\nThe conversion is off by %.3f, root mean square of logarithms, in %d sizes of these streams.\n\n", math.Sqrt(squares/float64(len(off))), len(off))
	return nil
}
