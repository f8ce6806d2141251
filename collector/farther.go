package collector

import (
	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler"
)

// farther says whether holds read on beyond timedBurst: where nearly all of them touch fewer lines than the first cache has, all that
// is not reused in them may hit it or not. It is settled for all holds to come, by those before, and not for each by what it touches: else
// those that miss would end sooner than others, and what is not seen of them would be taken to be as of those.
type farther struct {
	lines      int // in the first cache and a part more, so that none is taken to be there still that is not; 0: nothing is settled
	holds, few int // that read so far, and those of them that touched fewer
	on         bool
}

// fewestHolds settle it.
const fewestHolds = 8

// usualCache is the first one where none is named, in bytes.
const usualCache = 48 << 10

// begin says what the first cache is.
func (f *farther) begin(caches []model.Cache) {
	size := int64(usualCache)
	if len(caches) > 0 {
		size = caches[0].Size
	}
	f.lines = int(size/sampler.LineSize) * 5 / 4
}

// note takes how many lines a hold has touched; complete says that it has read so far.
func (f *farther) note(lines int, complete bool) {
	if f.lines == 0 || !complete {
		return
	}
	if f.holds++; lines < f.lines {
		f.few++
	}
	f.on = f.on || f.holds >= fewestHolds && 4*f.few > 3*f.holds
}
