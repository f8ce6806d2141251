// Needs: ptrace of own children, gcc.
package sampler

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sparse touches memory once in some three hundred instructions.
const sparse = `#include <stdio.h>
volatile unsigned long memory[64];
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (unsigned long sum = 0, i = 0;; i++) {
		for (int k = 0; k < 100; k++) {
			sum = sum * 6364136223846793005 + i;
			__asm__ volatile("" : "+r"(sum));
		}
		memory[i % 64] = sum;
	}
}
`

// locating looks ahead at every hold.
type locating struct {
	watcher
	pid     int
	locator *Locator
	skip    int
	found   chan error
}

func (l *locating) Hold(tid int, signal unix.Signal) (ours, running bool) {
	if signal != unix.SIGURG {
		return false, false
	}
	l.skip = l.skip*5%257 + 1
	_, err := l.locator.Ahead(l.pid, tid, l.skip, 64, 8, func(n int) int { return n - 1 })
	l.found <- err
	return true, !l.locator.InSyscall
}

// Where there are fewer accesses ahead than wanted, one of those there are is
// taken, wherever it is.
func TestAheadOfSparseAccesses(t *testing.T) {
	target, _ := startReady(t, sparse)
	defer target.Wait()
	defer target.Process.Kill()
	pid := target.Process.Pid
	h := &locating{watcher: watcher{make(chan int, 10)}, pid: pid, locator: NewLocator(), skip: 7, found: make(chan error)}
	tr, err := NewTracer(h, false)
	if err != nil {
		t.Fatal(err)
	}
	tr.Do(func() { err = tr.Seize(pid) })
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if err := unix.Tgkill(pid, pid, unix.SIGURG); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-h.found:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("not held")
		}
	}
	tr.Detach()
}
