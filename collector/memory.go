package collector

import (
	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/proc"
)

// memory is how much memory processes had at most. To look takes milliseconds, so that a goroutine of its own does, which
// nobody waits for while a thread may be held.
type memory struct {
	// By PID, in bytes: the most that was there, and what faults had brought in before and until the last look. They are the
	// goroutine's until it has ended.
	most, before, mapped map[int]int64

	attached bool // those of the first look were there before
	looks    int
	ask      chan []int
	done     chan struct{}
	next     int // ticks until it is asked again
}

// memoryTicks lie between two looks, but for the first ones.
const memoryTicks = 20

// newMemory looks at processes that are attached to, or start.
func newMemory(attached bool) *memory {
	m := &memory{attached: attached, most: make(map[int]int64), before: make(map[int]int64), mapped: make(map[int]int64), ask: make(chan []int, 1), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for pids := range m.ask {
			m.look(pids)
		}
	}()
	return m
}

func (m *memory) look(pids []int) {
	for _, pid := range pids {
		if n, ok := proc.Present(pid); ok {
			m.most[pid] = max(m.most[pid], n)
		}
		n, ok := proc.Mapped(pid)
		if !ok {
			delete(m.mapped, pid) // what it has mapped since the last look is not known
			continue
		}
		if m.mapped[pid] = n; m.looks == 0 && m.attached {
			m.before[pid] = n
		}
	}
	m.looks++
}

// tick asks for a look now and then, if none is under way.
func (m *memory) tick(processes *target.Set) {
	if m.next--; m.next > 0 {
		return
	}
	m.next = memoryTicks
	select {
	case m.ask <- pidsOf(processes):
	default:
	}
}

func pidsOf(processes *target.Set) (pids []int) {
	for _, p := range processes.Alive {
		pids = append(pids, p.Via)
	}
	return pids
}

// close ends the goroutine.
func (m *memory) close() {
	close(m.ask)
	<-m.done
}

// end takes a last look, when no thread is held any more, and returns the most that the processes had, added up, and how much
// they can have had in all, one after the other; each is 0 if that is not known of one.
func (m *memory) end(processes *target.Set) (present, touched int64) {
	m.close()
	all := true
	for _, p := range processes.All() {
		m.look([]int{p.Via})
		n := m.most[p.Via]
		if n == 0 {
			return 0, 0
		}
		mapped, ok := m.mapped[p.Via]
		all = all && ok
		present += n
		touched += n + mapped - m.before[p.Via]
	}
	if !all {
		touched = 0
	}
	return present, touched
}
