package collector

import (
	"fmt"
	"os"
	"time"
)

// collectRegisters takes what a job has brought, if it is done.
func (s *groupWatches) collectRegisters() {
	if j := s.registers.collect(); j != nil {
		s.putRegisters(j)
	}
}

// tendRegisters is called often, and begins a job when it is time.
func (s *groupWatches) tendRegisters() {
	if s.registers == nil {
		return
	}
	s.collectRegisters()
	s.registers.begin(time.Now(), onlineCPUs)
}

func (s *groupWatches) putRegisters(j *registerJob) {
	r := s.registers
	if j.closed != nil {
		s.account.fail(j.closed)
	}
	if r.put(j) {
		// What is waited for may have been written on the new CPU since it was last looked.
		for slot := range s.byCPU.slots {
			if w := &s.byCPU.slots[slot]; w.owner != nil {
				s.vacate(w.owner.group, slot)
			}
		}
	}
	if refused := r.refusal(); refused != nil {
		s.account.warn(fmt.Sprintf("processes of more than %d threads are watched by debug registers of all CPUs, and some are taken: %v "+
			"(end debuggers, perf's mem: events and other profilers of the machine, or use --stack own; asked for again every %v; until then nothing is watched, only read ahead of)",
			1+fewThreads, refused, registersEvery))
	}
}

// count counts the CPUs.
func (s *groupWatches) count() error {
	cpus, err := onlineCPUs()
	s.cpus = len(cpus)
	return err
}

// many says whether so many other threads are watched by CPU.
func (s *groupWatches) many(others int) bool { return others > fewThreads && others > s.cpus }

// expectMany takes the registers before the target is touched, if it has many threads
// by now.
func (s *groupWatches) expectMany(pid int) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil || !s.many(len(tasks)-1) {
		return nil // Seize says what is wrong
	}
	if err := s.shareByCPU(); err != nil {
		return err
	}
	s.putRegisters(s.registers.atOnce(onlineCPUs))
	return nil
}

// shareByCPU makes the slots that all processes of many threads share, for they share
// the registers of the CPUs, and has these taken. All threads have so many fewer of
// their own.
func (s *groupWatches) shareByCPU() error {
	if s.byCPU != nil {
		return nil
	}
	s.registers = newRegisters(registersOf(s.kernel), s.cfg.Slots, s.cfg.Stack)
	number, shared, err := s.kernel.AddGroup(s.registers.slots)
	if err == nil {
		err = s.kernel.SetCPUGroup(number)
	}
	if err != nil {
		return err
	}
	s.byCPU = &shares{number: number, shared: shared}
	for _, g := range s.groupOf {
		if !g.byCPU {
			for slot := s.registers.slots; slot < len(g.slots); slot++ {
				s.vacate(g, slot)
			}
			g.shared.Num = min(g.shared.Num, cpuSlots)
		}
	}
	return nil
}

// watchByCPU has a group, which has got many threads, watched by CPU from here on.
func (s *groupWatches) watchByCPU(g *group) error {
	for slot := range g.slots {
		s.vacate(g, slot)
	}
	if err := s.shareByCPU(); err != nil {
		return err
	}
	s.kernel.RemoveGroup(g.number)
	g.turnToCPUs(s.byCPU)
	s.tendRegisters()
	return nil
}
