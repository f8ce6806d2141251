package exact

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// leastHuge is how much memory is worth asking for large pages, in bytes.
const leastHuge = 4 << 20

// huge asks the kernel to take memory in large pages: of a table of which all is written to, to take them one by one
// costs more than what is written. Where there are none that is all.
func huge[T any](s []T) []T {
	size := uintptr(len(s)) * unsafe.Sizeof(*new(T))
	if size < leastHuge {
		return s
	}
	first := unsafe.SliceData(s)
	page := uintptr(unix.Getpagesize())
	skip := -uintptr(unsafe.Pointer(first)) % page
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(first)), size)[skip:(size-skip)/page*page+skip], unix.MADV_HUGEPAGE)
	return s
}
