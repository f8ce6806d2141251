package pprofout

import (
	"debug/elf"
	"strings"
	"time"
)

// errTooLong: the file's debug information takes longer to read than any of its size should.
var errTooLong = noNames("it takes too long for its size: the rest is not read")

// timeLimit bounds the CPU time that reading a file's debug information may take, by its
// size: a small file can say the same again and again.
type timeLimit struct {
	end   time.Duration // of CPU time of this process
	ticks int
	is    bool
}

const (
	limitBase    = 3 * time.Second
	limitPerMiB  = time.Second // it reads some 50 MiB a second
	ticksPerLook = 4096
)

func newTimeLimit(f *elf.File) *timeLimit {
	var size uint64
	for _, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".debug_") {
			size += min(s.FileSize, mostDebug)
		}
	}
	return &timeLimit{end: processTime() + limitBase + time.Duration(float64(size)/(1<<20)*float64(limitPerMiB))}
}

// allow gives the time for so many bytes more.
func (l *timeLimit) allow(size uint64) {
	l.end += time.Duration(float64(min(size, mostDebug)) / (1 << 20) * float64(limitPerMiB))
}

// tick is for each small piece of work; it says whether there has been too much of it.
func (l *timeLimit) tick() bool {
	if l.ticks++; l.ticks%ticksPerLook != 0 {
		return l.is
	}
	return l.over()
}

// over is tick at once.
func (l *timeLimit) over() bool {
	l.is = l.is || processTime() > l.end
	return l.is
}
