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
	if !p.known {
		if err := unix.SchedGetaffinity(0, &p.allowed); err != nil {
			return fmt.Errorf("read the tracing thread's CPUs: %w", err)
		}
		p.known = true
	}
	others := p.allowed
	others.Clear(cpu)
	if others.Count() == 0 {
		return nil
	}
	// EINVAL: none of the others is online any more.
	if err := unix.SchedSetaffinity(0, &others); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("move the tracing thread off CPU %d: %w", cpu, err)
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
