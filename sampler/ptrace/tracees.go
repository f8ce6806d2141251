package ptrace

// tracees are the threads that are traced, and whose they are. None of what it does takes longer the more there are.
type tracees struct {
	of map[int]int              // the process of a thread
	in map[int]map[int]struct{} // the threads of a process
	// mended are those whose call a signal that the target ignores would have ended: whenever tracing ends there may be
	// one on its way, and it would end the call then.
	mended map[int]struct{}
}

func newTracees() tracees {
	return tracees{make(map[int]int), make(map[int]map[int]struct{}), make(map[int]struct{})}
}

func (t *tracees) add(tid, pid int) {
	t.remove(tid)
	t.of[tid] = pid
	if t.in[pid] == nil {
		t.in[pid] = make(map[int]struct{}, 1)
	}
	t.in[pid][tid] = struct{}{}
}

func (t *tracees) remove(tid int) {
	pid, ok := t.of[tid]
	if !ok {
		return
	}
	delete(t.of, tid)
	delete(t.mended, tid)
	if delete(t.in[pid], tid); len(t.in[pid]) == 0 {
		delete(t.in, pid)
	}
}

// removeAll forgets a process.
func (t *tracees) removeAll(pid int) {
	for tid := range t.in[pid] {
		delete(t.of, tid)
		delete(t.mended, tid)
	}
	delete(t.in, pid)
}

func (t *tracees) process(tid int) (pid int, ok bool) {
	pid, ok = t.of[tid]
	return pid, ok
}

// any says whether a thread of the process is traced.
func (t *tracees) any(pid int) bool { return len(t.in[pid]) > 0 }

func (t *tracees) len() int { return len(t.of) }

func (t *tracees) clear() {
	clear(t.of)
	clear(t.in)
	clear(t.mended)
}
