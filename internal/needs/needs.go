// Package needs skips tests of what a machine does not have, and says so.
package needs

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/trace"
)

// Watchpoints skips the test where a hardware watchpoint does not fire, as on virtual machines whose hypervisor keeps the debug
// registers to itself. What can't be opened, for want of rights or of a free register, is for the test to meet.
func Watchpoints(t testing.TB) {
	t.Helper()
	if err := silent(); err != nil {
		t.Skip("needs watchpoints: ", err)
	}
}

// KernelCopies skips the test where the kernel's own accesses to a watched word can't be told from the thread's.
func KernelCopies(t testing.TB) {
	t.Helper()
	if !TellsCopies() {
		t.Skip("needs x86-64 and Linux 6.11: earlier a trap that a BPF program swallows counts towards the event's limit")
	}
}

// TellsCopies says whether they can.
func TellsCopies() bool {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return runtime.GOARCH == "amd64" && (major > 6 || major == 6 && minor >= 11)
}

// Engine is the folder of the engine that make engine has built, which lies in bin below the root; without one the test
// is skipped.
func Engine(t testing.TB, root string) string {
	t.Helper()
	built, err := filepath.Abs(filepath.Join(root, "bin", "valgrind"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("RDX_ENGINE", built)
	engine, err := trace.FindEngine()
	if err != nil {
		t.Skip(err)
	}
	return engine
}

// silent says that a watchpoint could be had, and did not fire.
var silent = sync.OnceValue(func() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	defer unix.Munmap(page)
	word := (*atomic.Uint64)(unsafe.Pointer(&page[0]))
	const readOrWrite, touches = 3, 100
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_BREAKPOINT, Bp_type: readOrWrite, Ext1: uint64(uintptr(unsafe.Pointer(word))), Ext2: 8,
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for range touches {
		word.Add(1)
	}
	var count [8]byte
	if n, err := unix.Read(fd, count[:]); err != nil || n != len(count) {
		return nil
	}
	if binary.NativeEndian.Uint64(count[:]) > 0 {
		return nil
	}
	return fmt.Errorf("one was set on a word that was touched %d times, and did not fire: its hypervisor or emulator has none", touches)
})
