package proc

import (
	"encoding/binary"
	"fmt"
	"os"
)

const (
	// presentAtOnce entries of a pagemap are read by one call.
	presentAtOnce = 512
	// presentMost entries are read of a mapping; of a larger one evenly spaced parts stand for all.
	presentMost = 64 * presentAtOnce
	// pagePresent is the bit of an entry that says that the page is there, see pagemap in the kernel's documentation. So
	// are pages that were only read, which count as no resident memory.
	pagePresent = 1 << 63
)

// Present is how many bytes of a process's memory are there: the pages that it has touched, and those that the
// kernel has brought in around them. It takes some milliseconds a gigabyte. ok is false if that can't be read.
func Present(pid int) (bytes int64, ok bool) {
	maps, err := ReadMappings(pid)
	if err != nil || len(maps) == 0 {
		return 0, false
	}
	pagemap, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return 0, false
	}
	defer pagemap.Close()
	page := uint64(os.Getpagesize())
	for m := range Mappings(maps) {
		if m.Readable {
			bytes += int64(presentIn(pagemap, m.Start/page, m.Limit/page) * page)
		}
	}
	return bytes, bytes > 0
}

// presentIn is how many of the pages from first up to limit are there.
func presentIn(pagemap *os.File, first, limit uint64) uint64 {
	var entries [8 * presentAtOnce]byte
	step := uint64(presentAtOnce)
	if pages := limit - first; pages > presentMost {
		step = pages / (presentMost / presentAtOnce)
	}
	seen, present := uint64(0), uint64(0)
	for at := first; at < limit; at += step {
		n, _ := pagemap.ReadAt(entries[:8*min(presentAtOnce, limit-at)], int64(8*at))
		for i := 0; i+8 <= n; i += 8 {
			seen++
			if binary.NativeEndian.Uint64(entries[i:])&pagePresent != 0 {
				present++
			}
		}
	}
	if seen == 0 {
		return 0
	}
	return present * (limit - first) / seen
}
