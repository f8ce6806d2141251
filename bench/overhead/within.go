package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// within measures the cost inside of one run: windows with rdx attached take
// turns with windows without, and the target's progress, the bytes it has read
// and written, is compared with that of the windows on either side. What a
// machine's neighbours do from minute to minute cancels out.
func within(rdx string, p program, windows int, window time.Duration, extra []string, dir string) error {
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := strconv.Itoa(cmd.Process.Pid)
	time.Sleep(time.Second) // the program's own start

	speed := func(f func() error) (float64, error) {
		before, start := progress(pid), time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		after, lasted := progress(pid), time.Since(start)
		if after == before {
			return 0, fmt.Errorf("%s: no progress in %v: it has ended, or its output tells none", p.name, lasted)
		}
		return float64(after-before) / lasted.Seconds(), nil
	}
	bare := func() error { time.Sleep(window); return nil }
	attached := func() error {
		args := append([]string{"attach", "-q", "-p", pid, "-d", window.String(), "-o", filepath.Join(dir, "within.pb.gz")}, extra...)
		if out, err := exec.Command(rdx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("rdx attach: %w: %s", err, out)
		}
		return nil
	}
	var ratios []float64
	var pairs int64
	last, err := speed(bare)
	if err != nil {
		return err
	}
	for range windows {
		with, err := speed(attached)
		if err != nil {
			return err
		}
		_, n, _, _, err := read(filepath.Join(dir, "within.pb.gz"))
		if err != nil {
			return err
		}
		pairs += n
		next, err := speed(bare)
		if err != nil {
			return err
		}
		ratios = append(ratios, (last+next)/2/with)
		last = next
	}
	slices.Sort(ratios)
	q := func(f float64) float64 { return ratios[int(f*float64(len(ratios)-1))] }
	fmt.Printf("%-8s time x %.4f, quartiles [%.4f, %.4f], of %d windows of %v; %.0f pairs in 30 s\n",
		p.name, q(.5), q(.25), q(.75), windows, window, float64(pairs)/(float64(windows)*window.Seconds())*30)
	return nil
}

// progress of a process: bytes read and written, 0 if it is gone.
func progress(pid string) (n int64) {
	data, err := os.ReadFile("/proc/" + pid + "/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(line, ": "); key == "rchar" || key == "wchar" {
			v, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			n += v
		}
	}
	return n
}
