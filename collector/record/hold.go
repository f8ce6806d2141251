package record

import (
	"time"

	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/sampler/ahead"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// SystemCall ends a hold's reading ahead where the thread makes one.
const SystemCall = "system call"

// Hold is one hold of a thread of which accesses were read ahead. Its observations have its
// number, from 1, by its place among all.
type Hold struct {
	Process  *target.Process
	TID      int
	At       time.Duration // when the thread had stopped, by sampler.Monotonic
	Accesses int           // read ahead
	Touches  int           // of blocks by these
	// Instructions that were read for them.
	Instructions int
	End          string          // why no more were, such as SystemCall
	ReadTime     bool            // the processor's clock was read on the way, and taken to be what it may be
	Window       *Window         // how memory was touched; nil: not known
	Times        *pipeline.Times // how long the processor is foretold to take for it; nil: not known
	Joined       bool            // it was kept to be joined with those of other threads
	Heads        *ahead.Heads    // what comes when; nil: not known
}
