package pprofout

import (
	"os"
	"runtime"
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
	stop, _ = ahead(wholePages(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size)))
	return s, stop
}

func wholePages(b []byte) []byte {
	size, page := uintptr(len(b)), uintptr(unix.Getpagesize())
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % page
	return b[skip : (size-skip)/page*page+skip]
}

// takenPerByte is about how many bytes of memory are taken, besides its records, to read and show a byte of a large profile.
const takenPerByte = 16

// fence is never written to, so that no memory is taken for it.
//
//lint:ignore U1000 it is there to take addresses up
var fence []byte

// LargePagesFor has what showing the profile of a file takes of the heap come in large pages: page by page it took a fifth of the
// CPU time until it was shown. It is for programs that have hardly begun, as it makes room that is given back by a collection:
// Go gives out the lowest memory that is free.
func LargePagesFor(file string) {
	const most = 1 << 30
	fi, err := os.Stat(file)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() < leastHuge/takenPerByte {
		return
	}
	room := make([]byte, takenPerByte*min(fi.Size(), most/takenPerByte))
	// Records shall not begin in the room: what was given back is cleared before it is given out.
	fence = make([]byte, 4<<20)
	unix.Madvise(wholePages(room), unix.MADV_HUGEPAGE)
	runtime.KeepAlive(room)
	runtime.GC()
}

// ahead takes pages on a goroutine, which stop ends: done is closed then.
func ahead(pages []byte) (stop func(), done <-chan struct{}) {
	unix.Madvise(pages, unix.MADV_HUGEPAGE)
	var stopped atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for len(pages) > 0 && !stopped.Load() {
			// What is there already stays as it is. Kernels before 5.14 can't.
			n := min(len(pages), leastHuge)
			if unix.Madvise(pages[:n], unix.MADV_POPULATE_WRITE) != nil {
				return
			}
			pages = pages[n:]
		}
	}()
	return func() { stopped.Store(true) }, ended
}

// room is memory that is not Go's, so that it can be given back at once: the garbage collector would have to look through all
// records first. Where there is none of that kind, or little is wanted, it is Go's.
type room struct {
	bytes []byte
	stop  func()          // taking it; nil of Go's
	done  <-chan struct{} // once that has ended
}

// outside is room for n bytes, which are taken as by huge.
func outside(n int) room {
	if n < leastHuge {
		return room{bytes: make([]byte, n)}
	}
	bytes, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil { // as it is limited, say
		return room{bytes: make([]byte, n)}
	}
	stop, done := ahead(bytes)
	return room{bytes, stop, done}
}

// has says whether data are in memory that can be given back.
func (r *room) has(data []byte) bool {
	return r.stop != nil && unsafe.SliceData(data) == unsafe.SliceData(r.bytes)
}

// drop gives back the whole large pages before the end of bytes, which are in the room, and says how many bytes that are.
func (r *room) drop(bytes []byte) (n int) {
	const large = 2 << 20
	r.stop()
	from := uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
	end := (from + uintptr(len(bytes))) &^ (large - 1)
	skip := -from % uintptr(unix.Getpagesize())
	if from+skip >= end {
		return 0
	}
	unix.Madvise(bytes[skip:end-from], unix.MADV_DONTNEED)
	return int(end - from)
}

func (r *room) free() {
	if r.stop != nil {
		r.stop()
		<-r.done
		unix.Munmap(r.bytes)
	}
}
