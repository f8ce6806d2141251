// Command guest is the first process of a virtual machine in which rdx is
// tried out: it runs rdx doctor and a check of interrupted system calls, prints
// one line of a table for each, and turns the machine off.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/interp"
)

// rowMark begins the lines that the host looks for on the console.
const rowMark = "RDX-VM"

func main() {
	if len(os.Args) > 1 && os.Args[1] == sleeperArg {
		runSleeper()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == signalledArg {
		runSignalled()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == phasedArg {
		runPhased()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == manyArg {
		runMany()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == busyArg {
		runBusy()
		return
	}
	if len(os.Args) > 3 && os.Args[1] == workerArg {
		runWorker(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == patternArg {
		runPattern(os.Args[2])
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: runs as the first process of a virtual machine only; see vm/run.sh")
		os.Exit(2)
	}
	if err := boot(); err != nil {
		row("failed", err.Error())
	} else {
		test()
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func boot() error {
	for _, m := range []struct{ what, where string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := os.MkdirAll(m.where, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.what, m.where, m.what, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", m.where, err)
		}
	}
	// Kernel messages would tear the rows apart.
	return os.WriteFile("/proc/sys/kernel/printk", []byte("1 1 1 1"), 0)
}

// row prints one line of the table.
func row(cells ...string) { fmt.Printf("\n%s | %s |\n", rowMark, strings.Join(cells, " | ")) }

// doctor is what the rows show of rdx doctor --json.
type doctor struct {
	Usable bool
	Checks []struct{ Name, Grade, Found string }
	Test   *struct {
		Expected, Median float64
		Pairs            int
		Unit             string
		Right            float64 `json:"right_share"`
		Censored         float64 `json:"censored_share"`
		Lost             float64 `json:"lost_share"`
		Resolution       float64
		Source, Clock    struct{ Name string }
		Counts           []model.Count
		Held             time.Duration `json:"held_p50_ns"`
	} `json:"self_test"`
	Watchpoints *struct {
		Free   int
		Limit  bool `json:"limit_honoured"`
		Rearms bool
		Traps  float64 `json:"traps_per_arm"`
	}
	Features struct {
		Link        bool `json:"bpf_link"`
		ReadValue   bool `json:"read_value"`
		WholeSample bool `json:"whole_sample"`
		TaskWork    bool `json:"task_work"`
	} `json:"kernel_features"`
}

// stopped is the share of the self-test's bursts, which are of plain loads and
// arithmetic, that ended at something that could not be read ahead of.
func (d *doctor) stopped() float64 {
	var all, stopped float64
	for _, c := range d.Test.Counts {
		end, ok := model.BurstEnded.Why(c.Name)
		if !ok {
			continue
		}
		fmt.Println(c.Name, c.N)
		all += float64(c.N)
		switch end {
		case model.Reason(interp.AccessesDone.String()), model.Reason(interp.InstructionLimit.String()), model.Reason(interp.MemoryLimit.String()):
		default:
			stopped += float64(c.N)
		}
	}
	if all == 0 {
		return 1
	}
	return stopped / all
}

// choices of source and clock that are tried out.
var choices = [][]string{{"--source", "clock", "--clock", "cpu-time"}, {"--source", "pmu", "--clock", "pmu"}}

func test() {
	var u unix.Utsname
	_ = unix.Uname(&u)
	kernel := unix.ByteSliceToString(u.Release[:])
	line, _ := os.ReadFile("/proc/cmdline")
	switch asked := string(line); {
	case strings.Contains(asked, faultsArg):
		testFaults(kernel)
		return
	case strings.Contains(asked, rightsArg):
		testRights(kernel)
		return
	case strings.Contains(asked, clockArg):
		testClock(kernel)
		return
	case strings.Contains(asked, costArg):
		testCost(kernel)
		return
	case strings.Contains(asked, patternsArg):
		testPatterns(kernel)
		return
	}
	if _, err := os.Stat(lastCPU); err == nil {
		// With two CPUs the emulator does not count exactly.
		testOffline(kernel)
		return
	}
	interrupted := interruptions()
	signals, signalsErr := signalled()
	if signalsErr != nil {
		fmt.Println("signals:", signalsErr)
		signals += " FAILED: " + signalsErr.Error()
	}
	if err := steps(); err != nil {
		row(kernel, "FAILED with --burst-engine step", err.Error())
	}
	if err := many(); err != nil {
		row(kernel, "FAILED with --stack both and many threads", err.Error())
	}
	for _, flags := range choices {
		if flags[1] == "pmu" && !hasPMU() {
			// x86 has none under emulation.
			continue
		}
		d, out, err := examine(nil, flags...)
		if err != nil {
			row(kernel, "failed", err.Error())
			continue
		}
		if d.Test == nil {
			why := "no self-test"
			for _, c := range d.Checks {
				if c.Grade == "no" {
					why = c.Name + ": " + c.Found
				}
			}
			row(kernel, "FAILED with "+strings.Join(flags, " "), why)
			continue
		}
		t := d.Test
		points := "none"
		if w := d.Watchpoints; w != nil {
			points = fmt.Sprintf("%d | %s | %s | %.2f", w.Free, yes(w.Limit), yes(w.Rearms), w.Traps)
		}
		f := d.Features
		features := strings.Join([]string{yes(f.Link), yes(f.ReadValue), yes(f.WholeSample), yes(f.TaskWork)}, " / ")
		verdict := "ok"
		if !d.Usable || t.Right < .99 || t.Lost > .01 || d.stopped() > .02 || interrupted != "0" || signalsErr != nil {
			verdict = "FAILED"
			fmt.Println(out)
		}
		row(kernel, points, features, t.Source.Name+" / "+t.Clock.Name, strconv.Itoa(t.Pairs), fmt.Sprintf("%.1f %%", 100*t.Right), fmt.Sprintf("%.1f %%", 100*t.Censored),
			fmt.Sprintf("%.0f / %.0f %s", t.Median, t.Expected, t.Unit), fmt.Sprintf("%.0f", t.Resolution),
			fmt.Sprintf("%.1f %%", 100*t.Lost), t.Held.Round(time.Microsecond).String(), interrupted, signals, verdict)
	}
}

// hasPMU looks for any device that counts what a processor does.
func hasPMU() bool {
	found, _ := filepath.Glob("/sys/bus/event_source/devices/arm*")
	_, err := os.Stat("/sys/bus/event_source/devices/cpu")
	return len(found) > 0 || err == nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// examine is what rdx doctor says, run so.
func examine(attr *syscall.SysProcAttr, flags ...string) (doctor, string, error) {
	var d doctor
	cmd := exec.Command("/rdx", append([]string{"doctor", "--json"}, flags...)...)
	cmd.SysProcAttr = attr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return d, "", err
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return d, "", fmt.Errorf("read what rdx doctor said: %w: %.200s", err, out)
	}
	return d, string(out), nil
}
