package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/pprofout"
)

// lastCPU is the one that is taken away; the first one can't be.
const lastCPU = "/sys/devices/system/cpu/cpu1/online"

// fewestAfter is the share of what the program ran after its CPU was taken away
// by which what was sampled must exceed what it ran before.
const fewestAfter = .25

// testOffline prints one line of a table for each source.
func testOffline(kernel string) {
	for _, flags := range choices {
		if flags[1] == "pmu" && !hasPMU() {
			continue
		}
		cells, err := offlined(flags)
		verdict := "ok"
		if err != nil {
			verdict = "FAILED: " + err.Error()
		}
		row(append(append([]string{kernel}, cells...), verdict)...)
	}
}

// offlined profiles a program on a CPU that is taken away half-way. The program
// goes on elsewhere, and so must the samples.
func offlined(flags []string) ([]string, error) {
	cmd, stdin, _, err := startSignalled()
	if err != nil {
		return nil, err
	}
	defer cmd.Wait()
	defer stdin.Close()
	var second unix.CPUSet
	second.Set(1)
	if err := unix.SchedSetaffinity(cmd.Process.Pid, &second); err != nil {
		return nil, fmt.Errorf("move to the second CPU: %w", err)
	}
	const out, duration = "/tmp/offlined.pb.gz", 4 * time.Second
	rdx := exec.Command("/rdx", append([]string{"attach", "-p", strconv.Itoa(cmd.Process.Pid), "--overhead", "50",
		"--duration", duration.String(), "-o", out, "--caches", "32K"}, flags...)...)
	result := make(chan error, 1)
	go func() {
		text, err := rdx.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("rdx attach: %w: %.200s", err, text)
		}
		result <- err
	}()
	// Where emulation is slow rdx takes seconds to begin and to end.
	before, err := awaitTraced(cmd.Process.Pid, true)
	if err != nil {
		return nil, errors.Join(err, <-result)
	}
	time.Sleep(duration / 2)
	half := cpuTime(cmd.Process.Pid)
	err = os.WriteFile(lastCPU, []byte("0"), 0)
	after, traceErr := awaitTraced(cmd.Process.Pid, false)
	if err := errors.Join(err, traceErr, <-result, os.WriteFile(lastCPU, []byte("1"), 0)); err != nil {
		return nil, err
	}
	p, err := pprofout.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var sampled, lost, seen int64
	for _, c := range p.Counts {
		if c.Name == model.CPUSampled {
			sampled = c.N
		} else if model.LostBecause.Has(c.Name) {
			lost += c.N
		}
	}
	for _, r := range p.Records {
		seen += r.Observations
	}
	share := float64(sampled) / float64(after-before)
	for _, c := range p.Comments {
		if model.CommentKind(model.EndedEarly).Of(c) {
			err = errors.New(c)
		}
	}
	if float64(sampled) < float64(half-before)+fewestAfter*float64(after-half) {
		err = errors.New("sampling ended with the CPU")
	}
	return []string{p.Source + " / " + p.Clock.Name, fmt.Sprintf("%.0f %%", 100*float64(after-half)/float64(after-before)), fmt.Sprintf("%.0f %%", 100*share),
		fmt.Sprint(seen), fmt.Sprint(lost)}, err
}

// awaitTraced waits until the process is, or is no longer, traced: as long as a
// session lasts. It returns its CPU time then.
func awaitTraced(pid int, traced bool) (cpu int64, err error) {
	err = await(fmt.Sprintf("the program's being traced was not %v", traced), func() (bool, error) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return strings.Contains(string(status), "\nTracerPid:\t0\n") != traced, err
	})
	if err != nil {
		return 0, err
	}
	return cpuTime(pid), nil
}

// await asks again and again whether something is so, for a minute; not says what is not, if it never is.
func await(not string, is func() (bool, error)) error {
	const limit = time.Minute
	for start := time.Now(); time.Since(start) < limit; time.Sleep(time.Millisecond) {
		if ok, err := is(); err != nil || ok {
			return err
		}
	}
	return fmt.Errorf("%s within %v", not, limit)
}

// cpuTime of a process, in nanoseconds: its clock is clock_getcpuclockid(3)'s.
func cpuTime(pid int) int64 {
	const processSched = 2
	var ts unix.Timespec
	_ = unix.ClockGettime(int32(^pid<<3|processSched), &ts)
	return ts.Nano()
}
