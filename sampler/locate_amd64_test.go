// Needs: ptrace of own children, gcc.
package sampler

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/unwind"
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

// mixed calls itself, and walks memory in steps of its own, with reuses near and
// far.
const mixed = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned long memory[512];
__attribute__((noinline)) static unsigned long down(int n, unsigned long *m)
{
	unsigned long here[4] = {n, n, n, n};
	m[n * 7 % 512]++;
	return n ? down(n - 1, m) + here[n % 4] : m[3];
}
int main(void)
{
	unsigned long sum = 0;
	puts("ready");
	fflush(stdout);
	for (unsigned i = 0;; i++) {
		sum += down(i % 9, memory + 3);
		for (int k = 0; k < 13; k++)
			memory[(i + k * 5) % 512] += sum;
		memcpy(memory + i % 100, memory + 200, 40);
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
	look    func(tid int) error // in place of Ahead
}

func (l *locating) Hold(tid int, signal unix.Signal) (ours, running bool) {
	if signal != unix.SIGURG {
		return false, false
	}
	if l.look != nil {
		l.found <- l.look(tid)
		return true, !l.locator.InSyscall
	}
	l.skip = l.skip*5%257 + 1
	_, err := l.locator.Ahead(l.pid, tid, []int{l.skip}, 64, 8, func(n int) int { return n - 1 })
	l.found <- err
	return true, !l.locator.InSyscall
}

// Where there are fewer accesses ahead than wanted, one of those there are is
// taken, wherever it is.
func TestAheadOfSparseAccesses(t *testing.T) {
	holdOften(t, sparse, &locating{locator: NewLocator(), skip: 7})
}

// Of several uses of one hold each is found as it is alone.
func TestSeveralUses(t *testing.T) {
	h := &locating{locator: NewLocator()}
	one := NewLocator()
	first := func(int) int { return 0 }
	r := rand.New(rand.NewPCG(3, 4))
	reuses, steps, stacks := 0, 0, 0
	h.look = func(tid int) error {
		skips := make([]int, 8)
		for i := range skips {
			skips[i] = r.IntN(256)
		}
		block := 8 << (3 * r.IntN(2))
		all, err := h.locator.Ahead(h.pid, tid, skips, 255, block, first)
		if err != nil {
			return err
		}
		if all.Open > 0 != (all.Reuse == 0) {
			return fmt.Errorf("of %d open uses the one with a reuse after %d is to be watched", all.Open, all.Reuse)
		}
		open := all.Open
		for i, f := range slices.Insert(all.Others, all.Index, all.Followed) {
			if f.Reuse == 0 {
				open--
			}
			alone, err := one.Ahead(h.pid, tid, skips[i:i+1], 255, block, first)
			if err != nil {
				return err
			}
			want := alone.Followed
			if i != all.Index {
				want.Use.Next = 0
			}
			if f.Use != want.Use || f.Word != want.Word || f.Reuse != want.Reuse || f.Distinct != want.Distinct || f.ReusePC != want.ReusePC || f.After != want.After {
				return fmt.Errorf("use %d after %d accesses is %+v, alone %+v", i, skips[i], f, want)
			}
			if !sameStack(f.Stack, want.Stack) || !sameStack(f.ReuseStack, want.ReuseStack) {
				return fmt.Errorf("use %d: other stacks than alone", i)
			}
			if len(f.Stack.Stack.Data) > 0 { // not before it is known that there is no userfaultfd
				stacks++
			}
			if f.Reuse > 0 {
				reuses++
				if f.Use.PC != f.ReusePC {
					steps++
				}
			}
		}
		if open != 0 {
			return fmt.Errorf("%d uses more are open than there are", open)
		}
		return nil
	}
	holdOften(t, mixed, h)
	if reuses < 300 || steps < 30 || stacks < 300 {
		t.Errorf("%d reuses, %d of them by other instructions, %d stacks: too few to tell", reuses, steps, stacks)
	}
}

// sameStack compares as much as both have copied.
func sameStack(a, b *unwind.Snapshot) bool {
	if a == nil || b == nil {
		return a == b
	}
	n := min(len(a.Stack.Data), len(b.Stack.Data))
	return a.Regs == b.Regs && a.Stack.Base == b.Stack.Base && bytes.Equal(a.Stack.Data[:n], b.Stack.Data[:n])
}

// holdOften runs a program and holds it some hundred times.
func holdOften(t *testing.T, source string, h *locating) {
	target, _ := startReady(t, source)
	defer target.Wait()
	defer target.Process.Kill()
	pid := target.Process.Pid
	h.watcher, h.pid, h.found = watcher{make(chan int, 10)}, pid, make(chan error)
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
