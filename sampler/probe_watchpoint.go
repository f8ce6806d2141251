package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watchpoints is what the hardware watchpoints of this machine and kernel do,
// as tried out in a thread of rdx itself.
type Watchpoints struct {
	Free    int   `json:"free"`    // a thread can have, beside those others use
	Lengths []int `json:"lengths"` // bytes that one can watch
	// WholeLine: one watches all of a cache line and nothing beside it, by AMD's
	// range breakpoints. WhyNot says what is in the way.
	WholeLine bool   `json:"whole_line"`
	WhyNot    string `json:"why_not,omitempty"`
	// LimitHonoured: the event goes silent after the traps it was armed for.
	LimitHonoured bool `json:"limit_honoured"`
	// Rearms: a second arming of the same event works, too.
	Rearms bool `json:"rearms"`
	// Revives: one does whose period is set anew besides.
	Revives bool `json:"revives"`
	// Moves: one that is parked can be moved, and traps there as often as it is asked to, and nowhere else.
	Moves bool `json:"moves"`
	// Copies: the kernel's own accesses to a watched word, as it copies for a system call, trap and are told from the thread's,
	// and leave the limit as it is.
	Copies bool `json:"copies"`
	// TrapsPerArm is the mean number of traps an event armed for one takes
	// when the word is touched again and again.
	TrapsPerArm float64 `json:"traps_per_arm"`
}

// ErrForeignIDs says that the kernel numbers threads differently.
var ErrForeignIDs = errors.New("the kernel knows rdx's threads by other numbers: rdx runs in a PID namespace of its own " +
	"(in a container: use the host's, docker run --pid=host or hostPID: true)")

// ErrNoWatchpoints says that this machine has none, whatever its kernel believes.
var ErrNoWatchpoints = errors.New("a watched word was touched and the watchpoint did not fire " +
	"(an emulator or hypervisor without debug registers? see its settings)")

const (
	probeArms    = 50
	probeTouches = 10
	probeBytes   = 4096 // the longest watchpoint there is
	probeFree    = 64
)

// ProbeWatchpoints tries out what watchpoints can do here. It takes some ten
// milliseconds and about a thousand traps.
func (k *Kernel) ProbeWatchpoints() (Watchpoints, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var w Watchpoints
	tid := unix.Gettid()
	// Outside of Go's heap and stacks: it must not move, and nothing else may
	// touch it.
	page, err := unix.Mmap(-1, 0, probeBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return w, fmt.Errorf("probe watchpoints: %w", err)
	}
	defer unix.Munmap(page)
	word := (*atomic.Uint64)(unsafe.Pointer(&page[0]))
	addr := uint64(uintptr(unsafe.Pointer(word)))
	unknown, err := k.Stats()
	if err != nil {
		return w, err
	}
	index, t, err := k.AddThread(tid)
	if err != nil {
		return w, fmt.Errorf("probe watchpoints: %w", err)
	}
	defer k.RemoveThread(index)

	tried, err := k.tryArming(tid, t, word)
	if err != nil {
		return w, err
	}
	if tried.limited == 0 {
		after, err := k.Stats()
		if err != nil {
			return w, err
		}
		if after.Unknown > unknown.Unknown {
			return w, fmt.Errorf("probe watchpoints: %w", ErrForeignIDs)
		}
		return w, fmt.Errorf("probe watchpoints: %w", ErrNoWatchpoints)
	}
	if err := watchesLine(t, page, func(addr uint64, traps int) (*Watchpoint, error) {
		return k.ArmLine(tid, 0, addr, traps)
	}); err != nil {
		w.WhyNot = err.Error()
	} else {
		w.WholeLine = true
	}
	if err := k.forget(); err != nil {
		return w, err
	}
	w.TrapsPerArm = float64(tried.limited) / probeArms
	// A stray second report of one access is tolerated, as on arm64 under
	// preemption; a limit that is ignored shows as ten.
	w.LimitHonoured = w.TrapsPerArm < 1.5
	w.Rearms = tried.again > probeArms/2
	// Once each; one that did not go silent again would come ten times as often.
	w.Revives = tried.revived > probeArms/2 && tried.revived < probeArms*3/2
	k.revives, k.rearms = w.Revives, w.Rearms
	if w.Copies, err = k.tryCopying(tid, t, page); err != nil {
		return w, err
	}
	k.copies = w.Copies
	w.Moves, err = k.tryMoving(tid, t, page)
	if err = errors.Join(err, k.forget()); err != nil {
		return w, err
	}
	return w, w.tryLengths(tid, addr)
}

// armings are the traps that came of so many armings of each kind.
type armings struct{ limited, again, revived int }

// tryArming arms a watchpoint anew, again when it has reached its limit, and once more.
func (k *Kernel) tryArming(tid int, t *Thread, word *atomic.Uint64) (n armings, err error) {
	addr := uint64(uintptr(unsafe.Pointer(word)))
	for range probeArms {
		before := t.Traps
		p, err := k.Arm(tid, 0, addr, 1)
		if errors.Is(err, ErrNoSlot) {
			return n, fmt.Errorf("probe watchpoints: %w (others watch memory on all threads: end debuggers, perf's mem: events and other profilers)", err)
		} else if err != nil {
			return n, fmt.Errorf("probe watchpoints: %w", err)
		}
		touchWord(word, probeTouches)
		first := t.Traps - before
		err = p.refresh(1)
		touchWord(word, probeTouches)
		second := t.Traps - before - first
		n.limited += int(first)
		if err == nil {
			n.again += int(second)
			if second == 0 {
				err = startAgain(p.fd) // what is left of the second arming
			} else if err = p.refresh(1); err == nil {
				err = startAgain(p.fd)
			}
		}
		touchWord(word, probeTouches)
		if third := t.Traps - before - first - second; err == nil {
			n.revived += int(third)
		}
		p.Close()
	}
	return n, nil
}

// tryCopying has the kernel write to a watched word, and says whether that traps, and whether the thread itself then traps as often
// as asked for.
func (k *Kernel) tryCopying(tid int, t *Thread, page []byte) (bool, error) {
	if runtime.GOARCH != "amd64" {
		return false, nil // elsewhere a watchpoint fires before the access, and the kernel would have to step over its own
	}
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return false, fmt.Errorf("probe watchpoints: %w", err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	word := (*atomic.Uint64)(unsafe.Pointer(&page[0]))
	p, err := arm(k.obj.programs[trapProgram(0)], tid, uint64(uintptr(unsafe.Pointer(word))), WordSize, breakpointRW, 2, true)
	if err != nil {
		return false, nil // no right to see the kernel's
	}
	defer p.Close()
	copied := atomic.LoadUint32(&t.Slots[0].Copied)
	var other [WordSize]byte
	if _, err := unix.Write(fds[1], other[:]); err != nil {
		return false, fmt.Errorf("probe watchpoints: %w", err)
	}
	if _, err := unix.Read(fds[0], page[:WordSize]); err != nil {
		return false, fmt.Errorf("probe watchpoints: %w", err)
	}
	if atomic.LoadUint32(&t.Slots[0].Copied) == copied {
		return false, nil
	}
	before := t.Traps
	touchWord(word, probeTouches)
	return t.Traps-before == 2, nil
}

// tryMoving moves a watchpoint to and fro, with a trap left of the last place, and with none left where that may be, and says
// whether each time it trapped where it was, as often as it was to, nowhere else, and not while it was parked.
func (k *Kernel) tryMoving(tid int, t *Thread, page []byte) (moves bool, err error) {
	words := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&page[0])), 2)
	trapsOf := func(word, touches int) int {
		before := t.Traps
		touchWord(&words[word], touches)
		return int(t.Traps - before)
	}
	at, traps := 0, 2
	p, err := k.Arm(tid, 0, uint64(uintptr(unsafe.Pointer(&words[at]))), traps)
	if err != nil {
		return false, fmt.Errorf("probe watchpoints: %w", err)
	}
	defer p.Close()
	for i := range probeArms / 2 {
		touches, want := probeTouches, traps
		if i%2 == 0 || !k.rearms {
			touches, want = 1, 1
		}
		if trapsOf(1-at, probeTouches) != 0 || trapsOf(at, touches) != want || p.Park() != nil || trapsOf(at, 1)+trapsOf(1-at, 1) != 0 {
			return false, nil
		}
		at, traps = 1-at, 2+i/2%2
		if p.Move(uint64(uintptr(unsafe.Pointer(&words[at]))), traps) != nil {
			return false, nil
		}
	}
	return true, nil
}

// tryLengths opens breakpoints of all lengths, and as many at once as there are.
func (w *Watchpoints) tryLengths(tid int, addr uint64) error {
	// Lengths above a word are AMD's range breakpoints.
	for length := 1; length <= probeBytes; length *= 2 {
		if p, err := openBreakpoint(tid, addr, length, breakpointRW, false); err == nil {
			w.Lengths = append(w.Lengths, length)
			p.Close()
		}
	}
	for w.Free < probeFree {
		p, err := openBreakpoint(tid, addr+uint64(WordSize*w.Free), WordSize, breakpointRW, false)
		if errors.Is(err, unix.ENOSPC) {
			break
		} else if err != nil {
			return fmt.Errorf("probe watchpoints: %w", err)
		}
		defer p.Close()
		w.Free++
	}
	return nil
}

// watchesLine arms a watchpoint on the second of three lines, and says what is wrong
// if not each of its words fires it once, or a word beside it does: a range that
// a hypervisor cuts short would make reuses late, and nobody would know.
func watchesLine(t *Thread, page []byte, armLine func(addr uint64, traps int) (*Watchpoint, error)) error {
	words := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&page[0])), 3*LineSize/WordSize)
	// More traps than should come, for those that should not to be seen.
	p, err := armLine(uint64(uintptr(unsafe.Pointer(&page[LineSize]))), 2*len(words))
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return fmt.Errorf("the processor or its hypervisor offers no range breakpoints (%w)", errno)
	} else if err != nil {
		return err
	}
	defer p.Close()
	for i := range words {
		want := uint32(0)
		if i/(LineSize/WordSize) == 1 {
			want = 1
		}
		before := t.Traps
		touchWord(&words[i], 1)
		if got := t.Traps - before; got != want {
			return fmt.Errorf("a watchpoint on a whole line fires %d times at byte %d of it, want %d", got, i*WordSize-LineSize, want)
		}
	}
	return nil
}

// touchWord reads the word n times: a plain load, but one that the compiler keeps.
//
//go:noinline
func touchWord(word *atomic.Uint64, n int) {
	for range n {
		word.Load()
	}
}

// Usable says whether a session may rely on these watchpoints, and the error
// what is wrong: one that does not go silent would slow its thread a
// thousandfold.
func (w Watchpoints) Usable() error {
	if !w.LimitHonoured {
		return fmt.Errorf("watchpoints of this kernel do not go silent after the accesses they were armed for "+
			"(%.1f traps where 1 was asked for), which would slow the target beyond use; please report the kernel's version", w.TrapsPerArm)
	}
	return nil
}
