package main

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/rdx-profiler/rdx/pprofout"
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
	const out = "/tmp/steps.pb.gz"
	rdx := exec.Command("/rdx", "attach", "-p", strconv.Itoa(cmd.Process.Pid), "--burst-engine", "step", "--burst", "8", "--overhead", "50", "--duration", "3s", "--source", "clock", "-o", out, "--caches", "32K")
	text, err := rdx.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("rdx attach: %w: %.200s", err, text)
	}
	stdin.Close()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return err
	}
	p, err := pprofout.ReadFile(out)
	if err != nil {
		return err
	}
	var done, all int64
	for _, c := range p.Counts {
		fmt.Println(c.Name, c.N)
		if end, ok := strings.CutPrefix(c.Name, "bursts ended: "); ok {
			all += c.N
			if end == "accesses done" {
				done += c.N
			}
		}
	}
	if all == 0 || float64(done) < fewestDone*float64(all) {
		return fmt.Errorf("%d of %d bursts of steps came to their end", done, all)
	}
	return nil
}
