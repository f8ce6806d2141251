package collector

// othersRunning counts the threads of the group that run at the moment, beside t, which is held: those
// that don't wait for anything, but not more than have a CPU then. The profiler itself may have taken another one's CPU just now, so
// that who has one tells less. The process's CPU clock would need tens of milliseconds, for it learns of a thread that runs only
// once a tick of the kernel (1 to 10 ms), and many processes do not live as long. ok is false for threads that are watched by CPU, who are too many to be asked.
func (g *group) othersRunning(t *thread, cpus int, runs func(pid, tid int) bool) (n int, ok bool) {
	if g.byCPU {
		return 0, false
	}
	g.beside = g.beside[:0]
	for _, m := range g.members {
		if m != t && runs(t.process.PID, m.tid) {
			g.beside = append(g.beside, m.tid)
		}
	}
	return min(len(g.beside), max(cpus-1, 0)), true
}
