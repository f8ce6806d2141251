package ahead

import "github.com/rdx-profiler/rdx/sampler/pipeline"

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
	code     [maxCode]byte
}

const maxCode = 15
