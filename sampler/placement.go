package sampler

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Placement keeps the tracing thread off the CPU of the threads it holds, if
// there is another: a held thread then finds its caches, its branch history
// and its address translations as it left them, and not those of the
// profiler.
//
// It looks at the CPUs of the last few holds and moves only if most were its
// own, so that with busy threads on all CPUs it stays where it is.
type Placement struct {
	allowed unix.CPUSet // as the thread was started with
	seen    int
	same    [maxCPUs]uint16 // holds of late by CPU
	known   bool
	now     unix.CPUSet // where it may run, once known
	away    bool        // stepped off a CPU
}

const (
	maxCPUs         = 1024
	placementWindow = 16
)

// Note takes the CPU on which a thread was held. It must be called by the
// tracing thread.
func (p *Placement) Note(cpu int) error {
	if cpu >= maxCPUs {
		return nil
	}
	p.seen++
	p.same[cpu]++
	if p.seen < placementWindow {
		return nil
	}
	mostly := p.same[cpu] > placementWindow/2
	p.seen, p.same = 0, [maxCPUs]uint16{}
	if !mostly {
		return nil
	}
	current, err := currentCPU()
	if err != nil || current != cpu {
		return err
	}
	others, err := p.leave(cpu)
	if err == nil && others != nil {
		p.now = *others
	}
	return err
}

// leave has the tracing thread run anywhere else than on a CPU: on those, nil if there are none.
func (p *Placement) leave(cpu int) (others *unix.CPUSet, err error) {
	if !p.known {
		if err := unix.SchedGetaffinity(0, &p.allowed); err != nil {
			return nil, fmt.Errorf("read the tracing thread's CPUs: %w", err)
		}
		p.known, p.now = true, p.allowed
	}
	set := p.allowed
	set.Clear(cpu)
	if set.Count() == 0 {
		return nil, nil
	}
	// EINVAL: none of the others is online any more.
	if err := unix.SchedSetaffinity(0, &set); errors.Is(err, unix.EINVAL) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("move the tracing thread off CPU %d: %w", cpu, err)
	}
	return &set, nil
}

// GiveWay is to be called when a thread was let go, where all CPUs are busy: it has the tracing thread, which runs before all
// others, leave that thread's CPU, if it is there, for as long as there is something left to be done for the hold. Return
// undoes it.
func (p *Placement) GiveWay(cpu int) error {
	if current, err := currentCPU(); err != nil || current != cpu {
		return err
	}
	others, err := p.leave(cpu)
	p.away = others != nil
	return err
}

// Return lets the tracing thread run again where it could before GiveWay.
func (p *Placement) Return() error {
	if !p.away {
		return nil
	}
	p.away = false
	if err := unix.SchedSetaffinity(0, &p.now); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("let the tracing thread run where it could: %w", err)
	}
	return nil
}

func currentCPU() (int, error) {
	var cpu uint32
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return 0, fmt.Errorf("read the current CPU: %w", e)
	}
	return int(cpu), nil
}
