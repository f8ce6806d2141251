// Needs: ptrace of own children, gcc.
package ahead

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/sampler/operand"
	"github.com/rdx-profiler/rdx/sampler/ptrace"
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
	holdsNothing
	pid     int
	locator *Locator
	found   chan error
	look    func(tid int) error // in place of Read
}

func (l *locating) Hold(tid int, signal unix.Signal) (ours, running bool) {
	if signal != unix.SIGURG {
		return false, false
	}
	if l.look != nil {
		l.found <- l.look(tid)
		return true, !l.locator.InSyscall
	}
	_, err := l.locator.Read(l.pid, tid, Window{First: 64, Most: 128, Block: 8}, func(n int) int { return n - 1 })
	l.found <- err
	return true, !l.locator.InSyscall
}

// Where there are fewer accesses ahead than wanted, one of those there are is
// taken, wherever it is.
func TestAheadOfSparseAccesses(t *testing.T) {
	holdOften(t, sparse, &locating{locator: NewLocator()})
}

// What is told of a hold when its thread runs on is what a reading of its own, told of while the thread
// is held, says.
func TestTell(t *testing.T) {
	h := &locating{locator: NewLocator()}
	again := NewLocator()
	first := func(int) int { return 0 }
	reuses, steps, stacks, opens := 0, 0, 0, 0
	var before func() error // of the hold before
	h.look = func(tid int) error {
		if before != nil {
			if err := before(); err != nil {
				return err
			}
		}
		w := Window{First: 100, Most: 300, Block: 8 << (3 * (opens % 2))}
		ahead, err := again.Read(h.pid, tid, w, first)
		if err != nil {
			return err
		}
		again.Settle(&ahead)
		watched, others, err := again.Tell(nil, first)
		if err != nil {
			return err
		}
		told := append([]Followed{watched}, others...)
		if _, err := h.locator.Read(h.pid, tid, w, first); err != nil {
			return err
		}
		before = func() error {
			watched, others, err := h.locator.Tell(nil, first)
			if err != nil {
				return err
			}
			later := append([]Followed{watched}, others...)
			if len(later) != len(told) {
				return fmt.Errorf("%d told of, want %d", len(later), len(told))
			}
			for i, f := range later {
				want := told[i]
				if f.Stack != nil && len(f.Stack.Stack.Data)+len(f.Stack.Stack.Above) > 0 { // not before it is known that there is no userfaultfd
					stacks++
				}
				if !sameStack(f.Stack, want.Stack) || !sameStack(f.ReuseStack, want.ReuseStack) {
					return fmt.Errorf("use %d has other stacks", i)
				}
				f.Stack, f.ReuseStack, want.Stack, want.ReuseStack = nil, nil, nil, nil
				if !reflect.DeepEqual(f, want) {
					return fmt.Errorf("use %d is %+v, want %+v", i, f, want)
				}
				if f.Reuse > 0 {
					reuses++
					if f.Use.PC != f.ReusePC {
						steps++
					}
				}
			}
			return nil
		}
		if ahead.Open > 0 {
			opens++
			if watched.Word != ahead.Word || watched.Use.PC != ahead.Use.PC || watched.Share != ahead.Share || watched.Reuse != 0 {
				return fmt.Errorf("told of %+v, to be watched is %+v", watched, ahead.Followed)
			}
		}
		return nil
	}
	holdOften(t, mixed, h)
	if reuses < 300 || steps < 30 || stacks < 300 || opens < 30 {
		t.Errorf("%d reuses, %d of them by other instructions, %d stacks, %d holds with a use that is open: too few to tell", reuses, steps, stacks, opens)
	}
}

// sameStack compares as much as both have copied.
func sameStack(a, b *unwind.Snapshot) bool {
	if a == nil || b == nil {
		return a == b
	}
	ofA, ofB := slices.Concat(a.Stack.Data, a.Stack.Above), slices.Concat(b.Stack.Data, b.Stack.Above)
	n := min(len(ofA), len(ofB))
	return a.Regs == b.Regs && a.Stack.Base == b.Stack.Base && bytes.Equal(ofA[:n], ofB[:n])
}

// holdOften runs a program and holds it some hundred times.
func holdOften(t *testing.T, source string, h *locating) {
	target, _, _ := startProgram(t, source)
	defer target.Wait()
	defer target.Process.Kill()
	pid := target.Process.Pid
	h.holdsNothing, h.pid, h.found = holdsNothing{make(chan int, 10)}, pid, make(chan error)
	tr, err := ptrace.NewTracer(h, false)
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

// An access that led to where something else precedes it in memory.
func TestAccessing(t *testing.T) {
	code := slices.Concat(
		make([]byte, maxInst),
		[]byte{0xe8, 14, 0, 0, 0},                              // 15: call 34
		[]byte{0x48, 0x8b, 0x45, 0xc3},                         // 20: mov -0x3d(%rbp), %rax: ends like a return
		[]byte{0x89, 0x07},                                     // 24: mov %eax, (%rdi)
		[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, // 26: ... ret
		[]byte{0x90},                                           // 34
	)
	base := uint64(uintptr(unsafe.Pointer(&code[0])))
	l := NewLocator()
	pid := unix.Getpid()
	called := &unwind.Snapshot{Stack: unwind.Stack{Base: 4096, Data: binary.LittleEndian.AppendUint64(nil, base+20)}}
	for _, c := range []struct {
		name  string
		ip    uint64
		after *unwind.Snapshot
		want  Accessing
	}{
		{"load", 24, nil, Accessing{PC: 20}},
		{"load, deeper", 24, called, Accessing{PC: 20}},
		{"store", 26, nil, Accessing{PC: 24, Store: true}},
		{"return", 20, nil, Accessing{PC: 15}},
		{"call", 34, called, Accessing{PC: 15, Store: true, Called: true}},
		{"call, stack unknown", 34, nil, Accessing{PC: 34}},
	} {
		got := l.Accessing(pid, base+c.ip, c.after)
		got.PC -= base
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	runtime.KeepAlive(code)
}

// Of the instructions of real code, decoded from the beginnings of its functions on, those
// that access memory are found from where they end. Other instructions end like shorter ones
// that are none, in nine of ten cases.
func TestBefore(t *testing.T) {
	m := &targetMemory{pid: unix.Getpid()}
	all, right, stores := 0, 0, 0
	for pc := reflect.ValueOf(fmt.Appendf).Pointer(); all < 20_000; {
		f := runtime.FuncForPC(pc)
		if f == nil {
			t.Fatalf("%d instructions: no function at %#x", all, pc)
		}
		code, err := m.code(uint64(pc))
		if err != nil {
			t.Fatal(err)
		}
		in, err := operand.DecodeX86(code)
		next := pc + uintptr(in.Len)
		if g := runtime.FuncForPC(next); err != nil || g == nil || g.Entry() != f.Entry() {
			// At the padding, or at what is not decoded: go on with the next function.
			for pc++; runtime.FuncForPC(pc).Entry() == f.Entry(); pc++ {
			}
			continue
		}
		if in.Touches() && in.Branch == operand.BranchNone && pc > f.Entry() {
			all++
			got := m.before(uint64(next))
			if got.PC == uint64(pc) {
				right++
				if got.Store == (in.Stores() && !in.Loads()) {
					stores++
				}
			}
		}
		pc = next
	}
	t.Logf("%d of %d found", right, all)
	if right < all*995/1000 || stores < right {
		t.Errorf("%d of %d instructions that access memory are found from their ends, %d of them as load or store as they are", right, all, stores)
	}
}
