// Needs: root, watchpoint. What it costs a thread to be watched at all, without a trap.
package sampler

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkCopyWatched reads a file from memory, which the kernel copies by the processor's string instructions, and runs
// a loop without them, in a thread none of whose words is watched, and with a word watched that nothing touches.
func BenchmarkCopyWatched(b *testing.B) {
	if unix.Geteuid() != 0 {
		b.Skip("needs root, to watch")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, err := unix.MemfdCreate("rdx-copy", unix.MFD_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 128<<10)
	for i := range buf {
		buf[i] = 1
	}
	if _, err := unix.Pwrite(fd, buf, 0); err != nil {
		b.Fatal(err)
	}
	word := uint64(uintptr(unsafe.Pointer(&newWords()[0].word)))
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("loop, watched %v", watched), func(b *testing.B) {
			watch(b, watched, word)
			for b.Loop() {
				spin(10_000)
			}
		})
		for _, size := range []int{64, 4 << 10, 128 << 10} {
			b.Run(fmt.Sprintf("read %d bytes, watched %v", size, watched), func(b *testing.B) {
				watch(b, watched, word)
				b.SetBytes(int64(size))
				for b.Loop() {
					if n, err := unix.Pread(fd, buf[:size], 0); n != size || err != nil {
						b.Fatal(n, err)
					}
				}
			})
		}
	}
}

// watch has the benchmark's thread watch a word to its end, if it is to.
func watch(b *testing.B, watched bool, word uint64) {
	runtime.LockOSThread()
	b.Cleanup(runtime.UnlockOSThread)
	if !watched {
		return
	}
	ev, err := openBreakpoint(unix.Gettid(), word, WordSize, breakpointRW, false)
	if err == nil {
		b.Cleanup(func() { ev.Close() })
		err = ev.ioctl(unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// The cost is none where copying takes as long as ever, or not so much longer that it can't be chance, else the
// difference of the lower quartiles, whatever the slowest took.
func TestCostOfByte(t *testing.T) {
	us := func(v ...float64) (out []time.Duration) {
		for _, v := range v {
			out = append(out, time.Duration(v*1000))
		}
		return out
	}
	bare := us(90, 1, 1, 1, 1, 3, 2, 1)
	for _, c := range []struct {
		watched []time.Duration
		want    float64
	}{
		{us(1, 1, 1, 1, 1, 1, 1, 50), 0},
		{us(1.4, 1.4, 1.4, 1.4, 1.4, 1.4, 1.4, 50), 0},
		{us(17, 17, 17, 17, 17, 17, 17, 999), 16},
	} {
		if got := costOfByte(bare, c.watched, 1000); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("bare %v, watched %v: %v ns, want %v", bare, c.watched, got, c.want)
		}
	}
}

// Whether a watched word slows copying is told without failing, and where nothing can be watched that is said, and not that there is no
// cost.
func TestCopyCost(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("needs root, to watch")
	}
	runtime.LockOSThread() // CopyCost watches in this thread
	defer runtime.UnlockOSThread()
	start := time.Now()
	cost, err := CopyCost()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a byte costs %.2f ns more, found in %v", cost, time.Since(start))
	if cost < 0 || math.IsNaN(cost) {
		t.Errorf("a byte costs %v ns", cost)
	}
	word := uint64(uintptr(unsafe.Pointer(&newWords()[0].word)))
	for range NumSlots {
		ev, err := openBreakpoint(unix.Gettid(), word, WordSize, breakpointRW, false)
		if errors.Is(err, unix.ENOSPC) {
			break // another process has the others
		} else if err != nil {
			t.Fatal(err)
		}
		defer ev.Close()
	}
	if cost, err := CopyCost(); !errors.Is(err, ErrNoSlot) || cost != 0 {
		t.Errorf("with all debug registers taken it costs %v ns, %v", cost, err)
	}
}
