package ptrace

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/clock"
)

// The guard watches over the tracing thread. Nothing that it calls may block, by
// construction; should something do so after all, threads of the target would stand still
// as long as this process lives. A tracer can't be made to let go by another thread: only its end
// sets them free. So the guard says what was the matter, and ends the process.

const (
	// guardLimit is how long the tracing thread may be at one piece of work. It does some
	// microseconds at a time.
	guardLimit = time.Second
	guardEvery = 100 * time.Millisecond
)

// pulse is what the guard goes by.
type pulse struct {
	idle  atomic.Bool   // the thread waits for events
	beats atomic.Uint64 // each time that it turns to something new
	tid   int
}

// Beat says that the tracing thread gets on. Who does much at a time in it calls it
// between the pieces.
func (t *Tracer) Beat() { t.pulse.beats.Add(1) }

// await marks f as waiting for work.
func (t *Tracer) await(f func()) {
	t.pulse.idle.Store(true)
	f()
	t.pulse.idle.Store(false)
	t.Beat()
}

// guard runs until tracing has ended. Time in which the guard or the thread itself had no CPU
// doesn't count: the whole process may have been stopped, or the machine.
func (t *Tracer) guard() {
	ticker := time.NewTicker(guardEvery)
	defer ticker.Stop()
	var seen uint64
	var stuck, waited time.Duration
	last := clock.Monotonic()
	for {
		select {
		case <-t.done:
			return
		case <-ticker.C:
		}
		now, beats := clock.Monotonic(), t.pulse.beats.Load()
		passed := now - last
		last = now
		if t.pulse.idle.Load() || beats != seen {
			seen, stuck, waited = beats, 0, 0
			continue
		}
		before := waited
		waited = waitedForCPU(t.pulse.tid)
		if passed > 3*guardEvery || before == 0 || waited-before > passed/2 {
			continue
		}
		if stuck += passed; stuck >= guardLimit && t.pulse.beats.Load() == beats && !t.pulse.idle.Load() {
			t.stuck(fmt.Sprintf("the tracing thread has been at one thing for %.1f s (%s): this process ends, so that the target runs on; there is no profile",
				stuck.Seconds(), doing(t.pulse.tid)))
			stuck = 0
		}
	}
}

// endProcess says why, if anybody listens, and frees all threads.
func endProcess(why string) {
	said := make(chan struct{})
	go func() { // standard error may be a full pipe
		fmt.Fprintln(os.Stderr, "rdx:", why)
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(guardEvery):
	}
	unix.Exit(1)
}

// waitedForCPU is how long a thread of ours was ready to run and did not, at least 1 ns.
func waitedForCPU(tid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", tid))
	if f := strings.Fields(string(b)); err == nil && len(f) > 1 {
		if ns, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			return time.Duration(ns + 1)
		}
	}
	return 1
}

// doing says what a thread of ours is at.
func doing(tid int) string {
	read := func(name string) string {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/%s", tid, name))
		return strings.TrimSpace(string(b))
	}
	state := "state unknown"
	if _, rest, ok := strings.Cut(read("stat"), ") "); ok && rest != "" {
		state = "state " + rest[:1]
	}
	if call, _, _ := strings.Cut(read("syscall"), " "); call != "" && call != "running" {
		state += ", system call " + call
	}
	if where := read("wchan"); where != "" && where != "0" {
		state += ", in " + where
	}
	return state
}
