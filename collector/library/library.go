// Package library holds what a session reads of its targets' files: programs and libraries
// that are mapped, and the tables in which JIT compilers name their code. Goroutines
// of its own open and read them. A file system may take its time, or never answer; whoever asks
// the library waits for neither, least of all the thread that holds the target's.
//
// All names come from the target, see sampler/safeopen.
//
// The package is rdx's own and may change.
package library

import (
	"sync"
	"time"

	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// A Library does what it is asked for in the order of asking, a few things at a
// time. Its methods may be called by any goroutine, if they don't say otherwise.
type Library struct {
	patience *safeopen.Patience

	mu      sync.Mutex
	queue   []func()
	workers int
	settled *sync.Cond
	roots   map[string]*safeopen.Root // of mount namespaces that have been seen

	held    map[Key]*File // of the goroutine that calls Hold and Release
	refused int           // files not held, being too many; likewise
}

const (
	mostWorkers = 4
	// mostFiles are held open at a time. A program may map any number.
	mostFiles = 4096
	// mostRoots are kept for processes that end before their files are opened.
	mostRoots = 64
)

// Patience is how long the library waits for an answer of a file system.
const Patience = 3 * time.Second

// New returns an empty library.
func New() *Library {
	l := &Library{patience: safeopen.NewPatience(Patience), roots: make(map[string]*safeopen.Root), held: make(map[Key]*File)}
	l.settled = sync.NewCond(&l.mu)
	return l
}

// Do has f done by a goroutine of the library, and does not wait for it.
func (l *Library) Do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, f)
	if l.workers < mostWorkers {
		l.workers++
		go l.work()
	}
}

func (l *Library) work() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		f := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.mu.Unlock()
		f()
		l.mu.Lock()
	}
	l.workers--
	l.settled.Broadcast()
}

// Settle waits until all that was asked for is done, at most so long; false if it is not.
func (l *Library) Settle(most time.Duration) bool {
	late := false
	t := time.AfterFunc(most, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.settled.Broadcast()
	})
	defer t.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !late && (len(l.queue) > 0 || l.workers > 0) {
		l.settled.Wait()
	}
	return len(l.queue) == 0 && l.workers == 0
}

// Refused is how many files were not opened, being too many.
func (l *Library) Refused() int { return l.refused }

// Close lets all files go, without waiting for it. Call it where Hold may be called.
func (l *Library) Close() {
	for _, f := range l.held {
		f.close()
	}
	clear(l.held)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.roots {
		r.Close()
	}
	clear(l.roots)
}
