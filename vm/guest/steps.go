package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// fewestDone is the share of bursts of steps that must come to their end: the rest may be
// ended by the clock, or by a signal, of which there is one a millisecond.
const fewestDone = .2

// steps profiles the program that takes signals by bursts of steps. It fails if few come
// to their end, or the program to a bad one.
func steps() error {
	if runtime.GOARCH != "amd64" {
		return nil // refused there
	}
	cmd, stdin, _, err := startSignalled()
	if err != nil {
		return err
	}
	p, err := profileUntilEnd(cmd, stdin, "--burst-engine", "step", "--burst", "8")
	if err != nil {
		return err
	}
	var done, all int64
	for _, c := range p.Counts {
		fmt.Println(c.Name, c.N)
		if end, ok := model.BurstEnded.Why(c.Name); ok {
			all += c.N
			if end == model.Reason(interp.AccessesDone.String()) {
				done += c.N
			}
		}
	}
	if all == 0 || float64(done) < fewestDone*float64(all) {
		return fmt.Errorf("%d of %d bursts of steps came to their end", done, all)
	}
	return nil
}

// profileUntilEnd profiles a program for three seconds and then has it end, by closing its
// standard input.
func profileUntilEnd(cmd *exec.Cmd, stdin io.Closer, flags ...string) (*model.Profile, error) {
	const out = "/tmp/checked.pb.gz"
	text, err := exec.Command("/rdx", append([]string{"attach", "-p", strconv.Itoa(cmd.Process.Pid), "--overhead", "50",
		"--duration", "3s", "--source", "clock", "-o", out, "--caches", "32K"}, flags...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("rdx attach: %w: %.200s", err, text)
	}
	stdin.Close()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, err
	}
	return pprofout.ReadFile(out)
}
