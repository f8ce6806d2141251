package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Features are abilities in which kernels differ beside their watchpoints, as
// tried out or as the kernel's own types say: its version says nothing, for
// distributions bring features back.
type Features struct {
	// PerfLink: a program can be attached to an event by a bpf_link. rdx attaches
	// by ioctl, which all kernels have: the event's end is the end of either.
	PerfLink bool `json:"bpf_link"`
	// ReadValue: programs of a trap can read the counters of its thread.
	ReadValue bool `json:"read_value"`
	// WholeSample: programs see latency and data source of a sample.
	WholeSample bool `json:"whole_sample"`
	// TaskWork: programs can have work done before a thread returns to user mode.
	// rdx has no use for it: what the work may do is less than a held thread's
	// tracer can.
	TaskWork bool `json:"task_work"`
}

// ProbeFeatures tries them out in a thread of rdx itself.
func (k *Kernel) ProbeFeatures() (Features, error) {
	var f Features
	var err error
	if f.PerfLink, err = k.perfLink(); err != nil {
		return f, fmt.Errorf("probe kernel features: %w", err)
	}
	if f.ReadValue, err = readsValue(); err != nil {
		return f, fmt.Errorf("probe kernel features: %w", err)
	}
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return f, fmt.Errorf("probe kernel features: %w", err)
	}
	// The first kernels to have task work call it by another name.
	for has, names := range map[*bool][]string{
		&f.WholeSample: {"bpf_cast_to_kern_ctx"},
		&f.TaskWork:    {"bpf_task_work_schedule_signal", "bpf_task_work_schedule_signal_impl"},
	} {
		for _, name := range names {
			var function *btf.Func
			*has = *has || types.TypeByName(name, &function) == nil
		}
	}
	return f, nil
}

// perfLink attaches a program to an event that never counts.
func (k *Kernel) perfLink() (bool, error) {
	attr := samplingAttr(Event{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK})
	fd, err := perfOpen(&attr, unix.Gettid(), -1)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: k.obj.programs[sampleProgram], Attach: ebpf.AttachPerfEvent})
	if err != nil {
		return false, nil // kernels without it refuse in several ways
	}
	return true, l.Close()
}

// readsValue times immediate reuses by a counter that every machine has.
func readsValue() (bool, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := CounterClock(Counted{Unit: Cycles, Events: []Event{{Label: "task-clock", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK}}})
	k, err := LoadClock(1, clock, Needs{})
	if err != nil {
		return false, err
	}
	const tries = 5
	times, _, err := k.ImmediateReuses(tries, func(*Trap) {})
	return len(times) > 0, errors.Join(err, k.Close())
}

func (f Features) check() Check {
	c := Check{Name: "kernel features", Grade: Good}
	var found []string
	for _, has := range []struct {
		is       bool
		yes, not string
	}{
		{f.PerfLink, "bpf_link on events (rdx attaches by ioctl)", "no bpf_link on events (rdx attaches by ioctl)"},
		{f.ReadValue, "counters readable in traps", "counters not readable in traps"},
		{f.WholeSample, "programs see latency and data source", "programs see neither latency nor data source"},
		{f.TaskWork, "task work (not used)", "no task work (not used)"},
	} {
		if has.is {
			found = append(found, has.yes)
		} else {
			found = append(found, has.not)
		}
	}
	c.Found = strings.Join(found, "; ")
	if !f.ReadValue {
		c.Grade = Degraded
		c.Consequence = "no counter of the processor can be the clock"
		c.Remedy = "use another kernel, and report this one's version"
	}
	return c
}
