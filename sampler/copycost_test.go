// Needs: root, watchpoint. What it costs a thread to be watched at all, without a trap.
package sampler

import (
	"fmt"
	"runtime"
	"testing"
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
	ev, err := openEvent(unix.Gettid(), word, wordSize, breakpointRW)
	if err == nil {
		b.Cleanup(func() { ev.Close() })
		err = ev.Enable()
	}
	if err != nil {
		b.Fatal(err)
	}
}
