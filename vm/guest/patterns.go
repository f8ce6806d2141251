package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// patternsArg on the kernel's command line asks for programs of known reuse times in
// place of the other tests.
const patternsArg = "rdx.patterns"

// patternArg makes this program one of known reuse times, until its standard input ends:
// it walks through so many words again and again, or, if that is none, through a few nine
// times, then as far again through many, and so on.
const patternArg = "pattern"

const (
	fewWords   = 64
	fewWalks   = 9
	manyWords  = 1568 * fewWords
	mixedRound = manyWords / fewWords * (fewWalks + 1) * fewWords // accesses until all were read
	// atOnce is how many accesses are made, at least, between two of anything else.
	atOnce = 1 << 20
)

func runPattern(arg string) {
	words, err := strconv.Atoi(arg)
	if err != nil || words < 0 {
		fmt.Printf("pattern: %q is not a number of words\n", arg)
		os.Exit(2)
	}
	few, many := make([]uint64, fewWords), make([]uint64, max(words, manyWords))
	for i := range many {
		many[i] = uint64(i)
	}
	var ended atomic.Bool
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		ended.Store(true)
	}()
	fmt.Println("ready")
	sum := uint64(0)
	for !ended.Load() {
		if words > 0 {
			sum += walkAgain(many[:words], atOnce/words+1)
		} else {
			sum += walkMixed(few, many)
		}
	}
	fmt.Println(sum)
}

// walkAgain makes one access a word, in walkInstructions each, and no other.
//
//go:noinline
func walkAgain(words []uint64, times int) (sum uint64) {
	for range times {
		for _, v := range words {
			sum += v
		}
	}
	return sum
}

// walkMixed makes mixedRound accesses, likewise.
//
//go:noinline
func walkMixed(few, many []uint64) (sum uint64) {
	for len(many) >= fewWords {
		for range fewWalks {
			for _, v := range few {
				sum += v
			}
		}
		for _, v := range many[:fewWords] {
			sum += v
		}
		many = many[fewWords:]
	}
	return sum
}

const walkInstructions = 5

// reuseTime is the share of a program's accesses that are reused after so many.
type reuseTime struct{ share, accesses float64 }

const (
	// fewestRight is the share of the mass that must be within half an octave of a
	// reuse time that the program has.
	fewestRight = .99
	// mostUneven is how much of it may be at another of them than it should: samples
	// are random.
	mostUneven = .05
)

// testPatterns prints one line of a table for each program.
func testPatterns(kernel string) {
	for _, p := range []struct {
		name  string
		words int
		truth []reuseTime
	}{
		{"cyclic, 32 words", 32, []reuseTime{{1, 32}}},
		{"cyclic, 1,000 words", 1000, []reuseTime{{1, 1000}}},
		{"cyclic, 16,384 words", 16384, []reuseTime{{1, 16384}}},
		{"cyclic, 262,144 words", 262144, []reuseTime{{1, 262144}}},
		{"64 words nine times, then 64 of 100,352", 0, []reuseTime{{.1 * (fewWalks - 1), fewWords}, {.1, 2 * fewWords}, {.1, mixedRound}}},
	} {
		cells, err := pattern(p.words, p.truth)
		verdict := "ok"
		if err != nil {
			verdict = "FAILED: " + err.Error()
		}
		row(append(append([]string{kernel, p.name}, cells...), verdict)...)
	}
}

// pattern profiles a program by the processor's counters and compares the mass of its
// reuse times with the truth.
func pattern(words int, truth []reuseTime) ([]string, error) {
	cmd, stdin, _, err := startProgram("/proc/self/exe", patternArg, strconv.Itoa(words))
	if err != nil {
		return nil, err
	}
	defer func() {
		stdin.Close()
		_ = cmd.Wait()
	}()
	const out = "/tmp/pattern.pb.gz"
	rdx := exec.Command("/rdx", "attach", "-p", strconv.Itoa(cmd.Process.Pid), "--source", "pmu", "--clock", "pmu", "--overhead", "50", "--duration", "3s",
		"--granularity", "word", "--access-rate", fmt.Sprint(1./walkInstructions), "-o", out, "--caches", "32K")
	if text, err := rdx.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("rdx attach: %w: %.300s", err, text)
	}
	p, err := pprofout.ReadFile(out)
	if err != nil {
		return nil, err
	}
	if err := p.Derive(); err != nil {
		return nil, err
	}
	total, pairs := 0.0, int64(0)
	found := make([]float64, len(truth))
	at := make([][]uint64, len(truth))
	for _, r := range p.Records {
		total += r.Accesses
		if r.Kind != model.Reuse {
			continue
		}
		pairs += r.Observations
		for i, t := range truth {
			if math.Abs(math.Log2(float64(r.Time)/t.accesses)) <= .5 {
				found[i] += r.Reuses
				at[i] = append(at[i], r.Time)
				break
			}
		}
	}
	right, uneven := 0.0, 0.0
	var times, shares []string
	for i, t := range truth {
		share := found[i] / total
		right += share
		uneven += math.Abs(share-t.share) / 2
		median := "none"
		if n := len(at[i]); n > 0 {
			slices.Sort(at[i])
			median = strconv.FormatUint(at[i][n/2], 10)
		}
		times = append(times, fmt.Sprintf("%s / %.0f", median, t.accesses))
		shares = append(shares, fmt.Sprintf("%.1f / %.0f %%", 100*share, 100*t.share))
	}
	cells := []string{p.Source + " / " + p.Clock.Name, strconv.FormatInt(pairs, 10), fmt.Sprintf("%.1f %%", 100*right), strings.Join(times, ", "), strings.Join(shares, ", ")}
	if right < fewestRight || uneven > mostUneven {
		return cells, errors.New("the mass is not where it must be")
	}
	return cells, nil
}
