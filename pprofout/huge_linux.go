package pprofout

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// leastHuge is how much memory is worth asking for large pages, in bytes.
const leastHuge = 16 << 20

// huge asks the kernel to take memory that will all be written to in large pages: most of the time in which
// a large profile was read it was taken page by page. It returns the slice; where there are none that is all.
func huge[T any](s []T) []T {
	size := uintptr(cap(s)) * unsafe.Sizeof(*new(T))
	if size < leastHuge {
		return s
	}
	first := unsafe.SliceData(s)
	page := uintptr(unix.Getpagesize())
	skip := -uintptr(unsafe.Pointer(first)) % page
	unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(first)), size)[skip:(size-skip)/page*page+skip], unix.MADV_HUGEPAGE)
	return s
}
