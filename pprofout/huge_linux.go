package pprofout

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leastHuge is how much memory is worth asking for large pages, in bytes.
const leastHuge = 16 << 20

// huge asks the kernel to take memory that will all be written to in large pages, and to take them now, while what is
// written is found on another core: most of the time in which a large profile was read they were taken one by one.
// stop ends that; it returns the slice as well. Where there are none that is all.
func huge[T any](s []T) (same []T, stop func()) {
	size := uintptr(cap(s)) * unsafe.Sizeof(*new(T))
	if size < leastHuge {
		return s, func() {}
	}
	first := unsafe.SliceData(s)
	page := uintptr(unix.Getpagesize())
	skip := -uintptr(unsafe.Pointer(first)) % page
	pages := unsafe.Slice((*byte)(unsafe.Pointer(first)), size)[skip : (size-skip)/page*page+skip]
	unix.Madvise(pages, unix.MADV_HUGEPAGE)
	var stopped atomic.Bool
	go func() {
		for len(pages) > 0 && !stopped.Load() {
			// What is there already stays as it is. Kernels before 5.14 can't.
			n := min(len(pages), leastHuge)
			if unix.Madvise(pages[:n], unix.MADV_POPULATE_WRITE) != nil {
				return
			}
			pages = pages[n:]
		}
	}()
	return s, func() { stopped.Store(true) }
}
