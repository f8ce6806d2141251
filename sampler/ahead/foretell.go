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
	last     []int32 // by touch, the access that touches its line last
	code     [maxCode]byte
}

const maxCode = 15

// staysWithin is within how many accesses a line is touched that does not come again and again: some that a loop needs all the time, as of
// its stack, come first when it has been followed for a while, and were used before.
const staysWithin = 512

// findLast finds until when each line is touched in what the last Read has read.
func (l *Locator) findLast() {
	f, touches := &l.foretelling, l.log.touches
	f.last = f.last[:0]
	for _, t := range touches {
		f.last = append(f.last, t.at)
	}
	for i := len(touches) - 1; i >= 0; i-- {
		if prev := touches[i].prev; prev >= 0 {
			f.last[prev] = f.last[i]
		}
	}
}

// lone says of an access that touches its line first whether that does not come again and again, once findLast was called.
func (l *Locator) lone(i int) bool {
	t := l.log.first[i]
	return l.log.block != sampler.LineSize || l.foretelling.last[t]-l.log.touches[t].at < staysWithin
}
