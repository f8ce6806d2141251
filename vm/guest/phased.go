package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// phasedArg makes this program one that reads an array again and again and, once
// it was sent a byte, writes it. It ends with its standard input.
const phasedArg = "phased"

func runPhased() {
	array := make([]uint64, signalledWords)
	fmt.Println("ready")
	var phase atomic.Uint32
	go func() {
		var b [1]byte
		_, err := os.Stdin.Read(b[:])
		for ; err == nil; _, err = os.Stdin.Read(b[:]) {
			phase.Store(1)
		}
		phase.Store(2)
	}()
	sum := uint64(0)
	for phase.Load() == 0 {
		for _, v := range array {
			sum += v
		}
	}
	for phase.Load() == 1 {
		for i := range array {
			array[i] = sum
		}
	}
	fmt.Println(sum)
}

// farthestOff is by how much a phase's share of the weight may differ from its
// share of the time.
const farthestOff = .1

// throttledPhase profiles a program of two phases, of which the source is throttled in
// the first one only: so that it has few samples, and must have the weight of its time
// all the same.
func throttledPhase(flags []string) (string, error) {
	before, err := os.ReadFile(sampleRate)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(sampleRate, []byte("1"), 0); err != nil {
		return "", fmt.Errorf("throttle: %w", err)
	}
	defer os.WriteFile(sampleRate, before, 0)
	cmd, stdin, _, err := startProgram("/proc/self/exe", phasedArg)
	if err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer stdin.Close()
	const out, duration = "/tmp/phased.pb.gz", 6 * time.Second
	result := startRdx(append([]string{"attach", "-p", strconv.Itoa(cmd.Process.Pid), "--duration", duration.String(), "--overhead", "20", "--period", "500us", "-o", out, "--caches", "32K"}, flags...)...)
	from, err := awaitTraced(cmd.Process.Pid, true)
	if err != nil {
		return "", errors.Join(err, <-result)
	}
	time.Sleep(duration / 2)
	half := cpuTime(cmd.Process.Pid)
	_, err = io.WriteString(stdin, "2")
	err = errors.Join(err, os.WriteFile(sampleRate, before, 0))
	until, traceErr := awaitTraced(cmd.Process.Pid, false)
	if err := errors.Join(err, traceErr, <-result); err != nil {
		return "", err
	}
	p, err := pprofout.ReadFile(out)
	if err != nil {
		return "", err
	}
	var seen, seenFirst int64
	var weight, first float64
	for _, r := range p.Records {
		weight += r.Accesses
		seen += r.Observations
		if r.Op == model.Load {
			first += r.Accesses
			seenFirst += r.Observations
		}
	}
	share, time := first/weight, float64(half-from)/float64(until-from)
	said := fmt.Sprintf("%.0f %% of the time, %.0f %% of %d samples, %.0f %% of the weight", 100*time, 100*float64(seenFirst)/float64(seen), seen, 100*share)
	if math.Abs(share-time) > farthestOff || seenFirst == 0 {
		return said, errors.New("the weight of what was throttled is not that of its time")
	}
	return said, nil
}
