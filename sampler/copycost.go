package sampler

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// copied is read at a time, as the kernel copies it, from memory: long enough that beginning to is nothing beside it.
	copied     = 64 << 10
	copyRounds = 12
	// slowed is how much longer copying must take to be more than chance. Where a watched word slows it, it is by 8 times and more.
	slowed = 1.5
)

// CopyCost measures how much longer the kernel takes to copy a byte for a thread that watches a word, which nothing
// touches, in nanoseconds; 0 where that makes no difference. It is the difference of the lower quartiles of some reads
// with and without, by the calling goroutine's thread, in turns: a millisecond altogether. ErrNoSlot says that no debug register is free,
// so that it is not known.
func CopyCost() (perByte float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fail := func(err error) (float64, error) {
		return 0, fmt.Errorf("measure what a watched word costs copying: %w", err)
	}
	fd, err := unix.MemfdCreate("rdx-copy", unix.MFD_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	buf, err := unix.Mmap(-1, 0, copied, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fail(err)
	}
	defer unix.Munmap(buf)
	if n, err := unix.Pwrite(fd, buf, 0); err != nil || n < len(buf) {
		return fail(errors.Join(err, fmt.Errorf("wrote %d of %d bytes", n, len(buf))))
	}
	word := uint64(uintptr(unsafe.Pointer(&newWords()[0].word)))
	var elapsed [2][]time.Duration // bare, watched
	for range copyRounds {
		for watched := range elapsed {
			one, err := readOnce(fd, buf, watched == 1, word)
			if err != nil {
				return fail(err)
			}
			elapsed[watched] = append(elapsed[watched], one)
		}
	}
	return costOfByte(elapsed[0], elapsed[1], len(buf)), nil
}

// readOnce is how long it takes to read buf's length, with the word watched or not, once it has been read so before.
func readOnce(fd int, buf []byte, watched bool, word uint64) (elapsed time.Duration, err error) {
	if watched {
		ev, err := openBreakpoint(unix.Gettid(), word, WordSize, breakpointRW, false)
		if errors.Is(err, unix.ENOSPC) {
			return 0, ErrNoSlot
		} else if err != nil {
			return 0, err
		}
		defer ev.Close()
		if err := ev.ioctl(unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return 0, err
		}
	}
	for range 2 {
		start := Monotonic()
		n, err := unix.Pread(fd, buf, 0)
		elapsed = Monotonic() - start
		if err != nil || n < len(buf) {
			return 0, errors.Join(err, fmt.Errorf("read %d of %d bytes", n, len(buf)))
		}
	}
	return elapsed, nil
}

// costOfByte is the difference of the lower quartiles by the bytes, 0 if it may be chance. It sorts both.
func costOfByte(bare, watched []time.Duration, bytes int) float64 {
	slices.Sort(bare)
	slices.Sort(watched)
	b, w := float64(bare[len(bare)/4]), float64(watched[len(watched)/4])
	if w < slowed*b {
		return 0
	}
	return (w - b) / float64(bytes)
}
