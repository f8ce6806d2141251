package record

import (
	"time"

	"github.com/rdx-profiler/rdx/collector/target"
)

// Stretch is what a thread was about to touch when it was held, as read ahead, by cache lines.
type Stretch struct {
	Process *target.Process
	TID     int
	Hold    int           // its number, from 1, by its place among all
	At      time.Duration // when it began, of the monotonic clock
	// Length is how many instructions were read ahead, and Classified how many touches of blocks are known to
	// be followed by one of the line, or not, as far as that.
	Length, Classified int
	Lines              []LineTouch // by line, and those of a line in order
	PCs                []uint64    // of the instructions
	// Others are the other threads that did not wait for anything when it was held; nil if that is not known, and then
	// Running is how many threads of the process ran at a time, its own among them.
	Others  []int
	Running float64
	// Share is for how much of the time each of the others has a processor.
	Share float64
	// Late is how much less that is as other programs have them.
	Late float64
}

// LineTouch is a touch of a word, or of some of its bytes.
type LineTouch struct {
	Line  uint64 // its number: the address by LineBytes
	At    int32  // number of the instruction
	PC    uint16 // its place in Stretch.PCs
	Word  uint8  // of the line
	Bytes uint8  // of the word, as bits
	Store bool
	// First says that it is one of those classified.
	First bool
}
