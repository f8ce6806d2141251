package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

const (
	// presentAtOnce entries of a pagemap are read by one call.
	presentAtOnce = 512
	entrySize     = 8
	// presentMost entries are read of a mapping; of a larger one evenly spaced parts stand for all.
	presentMost = 64 * presentAtOnce
	// pagePresent is the bit of an entry that says that the page is there, see pagemap in the kernel's documentation. So
	// are pages that were only read, which count as no resident memory.
	pagePresent = 1 << 63
)

// Pagemap is the kernel's table of a process's pages. It is read so many entries at once: pages are best asked for in
// ascending order, where mappings of a page each follow each other, too.
type Pagemap struct {
	file    *os.File
	first   uint64 // page of the first entry
	read    int    // entries
	entries [entrySize * presentAtOnce]byte
}

// NewPagemap is what an open /proc/PID/pagemap says.
func NewPagemap(file *os.File) *Pagemap { return &Pagemap{file: file} }

// Entry is that of a page, which is an address by the size of pages; ok is false if there is none.
func (p *Pagemap) Entry(page uint64) (entry uint64, ok bool) {
	if page < p.first || page-p.first >= uint64(p.read) {
		n, _ := p.file.ReadAt(p.entries[:], int64(entrySize*page))
		if p.first, p.read = page, n/entrySize; p.read == 0 {
			return 0, false
		}
	}
	return binary.NativeEndian.Uint64(p.entries[entrySize*(page-p.first):]), true
}

// Present is how many bytes of a process's memory are there: the pages that it has touched, and those that the
// kernel has brought in around them. It takes some milliseconds a gigabyte. ok is false if that can't be read.
func Present(pid int) (n int64, ok bool) {
	maps, err := ReadMappings(pid)
	if err != nil || len(maps) == 0 {
		return 0, false
	}
	pagemap, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return 0, false
	}
	defer pagemap.Close()
	pages := NewPagemap(pagemap)
	page := uint64(os.Getpagesize())
	for m := range Mappings(maps) {
		if m.Readable {
			n += int64(presentIn(pages, m.Start/page, m.Limit/page) * page)
		}
	}
	return n, n > 0
}

// presentIn is how many of the pages from first up to limit are there.
func presentIn(pages *Pagemap, first, limit uint64) uint64 {
	step := uint64(presentAtOnce)
	if n := limit - first; n > presentMost {
		step = n / (presentMost / presentAtOnce)
	}
	seen, present := uint64(0), uint64(0)
	for at := first; at < limit; at += step {
		for page := at; page < min(at+presentAtOnce, limit); page++ {
			entry, ok := pages.Entry(page)
			if !ok {
				break
			}
			seen++
			if entry&pagePresent != 0 {
				present++
			}
		}
	}
	if seen == 0 {
		return 0
	}
	return present * (limit - first) / seen
}

// Mapped is how many bytes of memory a process's page faults can have brought in since it began: a fault brings in what lies
// around it of a file, or a huge page where these are allowed. ok is false if that can't be read.
func Mapped(pid int) (n int64, ok bool) {
	var b [1024]byte
	stat, err := Read(fmt.Sprintf("/proc/%d/stat", pid), b[:])
	// State, parent, group, session, terminal, its group, flags, and four counts of faults.
	fields := StatFields(stat)
	if err != nil || len(fields) < 11 {
		return 0, false
	}
	minor, err := strconv.ParseInt(string(fields[7]), 10, 64)
	major, err2 := strconv.ParseInt(string(fields[9]), 10, 64)
	if err != nil || err2 != nil {
		return 0, false
	}
	return (minor + major) * faultBytes(), true
}

// aroundFault are the bytes of a file that the kernel maps at a fault, fault_around_bytes.
const aroundFault = 64 << 10

// faultBytes is perFault, asked once: it is wanted at each look.
var faultBytes = sync.OnceValue(perFault)

// perFault is how many bytes a page fault brings in at most.
func perFault() int64 {
	page := int64(os.Getpagesize())
	huge, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if errors.Is(err, fs.ErrNotExist) || strings.Contains(string(huge), "[never]") {
		return max(aroundFault, page)
	}
	return page * (page / 8) // as many as a table has entries
}
