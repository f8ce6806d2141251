package ahead

import "github.com/rdx-profiler/rdx/sampler"

// Farther says whether a session's holds read farther than usual: where nearly all of them touch fewer lines than the first cache has,
// all that is not reused in them may hit it or not. It is settled for all holds to come, by those before, and not for each by what it
// touches: else those that miss would end sooner than others, and what is not seen of them would be taken to be as of those.
type Farther struct {
	lines      int // in the first cache and a part more, so that none is taken to be there still that is not; 0: nothing is settled
	holds, few int // that read so far, and those of them that touched fewer
	on         bool
}

// fewestHolds settle it.
const fewestHolds = 8

// Begin has it settled, for a first cache of so many bytes.
func (f *Farther) Begin(cache int64) { f.lines = int(cache/sampler.LineSize) * 5 / 4 }

// Begun says whether it is.
func (f *Farther) Begun() bool { return f.lines > 0 }

// Settling says whether more holds are to be noted.
func (f *Farther) Settling() bool { return f.Begun() && !f.on }

// On says whether holds read farther from here on.
func (f *Farther) On() bool { return f.on }

// Note takes how many lines a hold has touched behind what it tells of; complete says that it has read as far as it takes.
func (f *Farther) Note(lines int, complete bool) {
	if !f.Begun() || !complete {
		return
	}
	if f.holds++; lines < f.lines {
		f.few++
	}
	f.on = f.on || f.holds >= fewestHolds && 4*f.few > 3*f.holds
}
