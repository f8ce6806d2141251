package record

import (
	"github.com/rdx-profiler/rdx/model"
)

// Window is what was read ahead in a hold shows of how memory is touched.
type Window struct {
	Epoch        *Epoch
	Stack        int // in callstack.Table: where the thread was held
	Instructions int
	Accesses     int
	Counted      int // of these, that the sites are of
	Sites        []Site

	// Held is what the thread was held at, of which Accesses is 1; Wait says whether it waits for memory, and the others are
	// as of ahead.Held.
	Held                         Site
	Wait                         model.Wait
	Near, Chases, Apart, Streams float64
}

// Site is what one instruction did in a window in one pattern.
type Site struct {
	PC     uint64
	Op     model.Op
	Manner model.Manner
	Stride int64
	Data   model.Data // of one of its accesses
	Within uint64     // how far that is into Block
	Block  int        // in callstack.Table: where data's block was allocated, plus one; 0: not known

	Accesses, Fetches, Used, Written int
}
