package ahead

import (
	"github.com/rdx-profiler/rdx/sampler"
	"github.com/rdx-profiler/rdx/sampler/pipeline"
)

// mostForetold instructions of a window are passed through the model of the processor: it is done on the tracing thread, and
// holds of other threads wait meanwhile.
const mostForetold = 3072

// rowStep is how far apart the accesses of a row may be, in bytes, for prefetchers to follow it.
const rowStep = 2048

// inRow says of an access, once Seen was called, whether it is in a row of steady strides that prefetchers follow.
func (l *Locator) inRow(i int) bool {
	d, ok := l.sights.stride(l.log.all, int32(i))
	return ok && d <= rowStep && d >= -rowStep
}

// foretelling are the buffers of Foretell.
type foretelling struct {
	accesses []pipeline.Access
	begins   []int32 // by touch, the first of its line
	last     []int32 // by first touch of a line, the access that touches it last
	code     [maxCode]byte
}

const maxCode = 15

// staysWithin is within how many accesses a line is touched that does not come again and again: some that a loop needs all the time, as of
// its stack, come first when it has been followed for a while, and were used before.
const staysWithin = 512

// findStays finds how long each line is touched in what the last Read has read.
func (l *Locator) findStays() {
	f, touches := &l.foretelling, l.log.touches
	f.begins, f.last = room(f.begins, len(touches))[:len(touches)], room(f.last, len(touches))[:len(touches)]
	for i, t := range touches {
		f.begins[i] = int32(i)
		if t.prev >= 0 {
			f.begins[i] = f.begins[t.prev]
		}
		f.last[f.begins[i]] = t.at
	}
}

// lone says whether the line of an access does not come again and again, once findStays was called.
func (l *Locator) lone(i int) bool {
	f := &l.foretelling
	begin := f.begins[l.log.first[i]]
	return l.log.block != sampler.LineSize || f.last[begin]-l.log.touches[begin].at < staysWithin
}
