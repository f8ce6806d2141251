package target

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rdx-profiler/rdx/proc"
)

// Modes are how long a process has run in user mode and in the kernel, and how often it went there for a page that was in memory
// or was made for it.
type Modes struct {
	User, Kernel time.Duration
	Faults       int64
}

// clockTick is the unit of times in /proc, USER_HZ.
const clockTick = 10 * time.Millisecond

// modesOf reads minflt, utime and stime of /proc/PID/stat, the 8th, 12th and 13th field after the command. ok is false if the process is gone.
func modesOf(pid int) (m Modes, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return m, false
	}
	fields := proc.StatFields(b)
	if len(fields) < 13 {
		return m, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		return n
	}
	return Modes{time.Duration(number(11)) * clockTick, time.Duration(number(12)) * clockTick, number(7)}, true
}

func (m Modes) add(o Modes) Modes {
	return Modes{m.User + o.User, m.Kernel + o.Kernel, m.Faults + o.Faults}
}
func (m Modes) since(o Modes) Modes {
	return Modes{m.User - o.User, m.Kernel - o.Kernel, m.Faults - o.Faults}
}

// modesEvery is how often they are read: what a process does after the last time before it exits is not known.
const modesEvery = 200 * time.Millisecond

// ReadModes reads the process's, unless it was done lately.
func (p *Process) ReadModes(now time.Duration) {
	if now-p.modesRead < modesEvery {
		return
	}
	first := p.modesRead == 0 // not before: many processes end sooner, and their start waits for nothing
	p.modesRead = now
	switch m, ok := modesOf(p.PID); {
	case !ok:
	case first:
		p.modesBegan = m
	default:
		p.modes = m.since(p.modesBegan)
	}
}

// Modes are those of all processes since they were first read.
func (s *Set) Modes() Modes {
	sum := s.modesEnded
	for _, p := range s.Alive {
		sum = sum.add(p.modes)
	}
	return sum
}

// UserTime is the CPU time of the target's processes in user mode, as far as
// it can be read.
func (s *Set) UserTime() time.Duration {
	var sum time.Duration
	for pid := range s.Alive {
		m, _ := modesOf(pid)
		sum += m.User
	}
	return sum
}
