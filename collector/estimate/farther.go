package estimate

import (
	"github.com/rdx-profiler/rdx/collector/record"
)

// Some holds read farther than the others. Of what is not reused as near as all read they count when it is, where the
// others' was timed, in caches that the hold had left cold. So what they have counted up to far stands for what the others have
// timed up to there, and only what these have timed to more stands for what comes later.
type farther struct {
	counted float64 // what a reuse that was counted between near and far stands for, besides itself
	later   float64 // what one stands for that was timed to more than far
	fates   map[*record.Observation]fate
}

// fate is what became of an observation by far, where not all holds read so far.
type fate int

const (
	itself    fate = iota // it has a reuse as far as all read, or it is not known: it stands for itself
	byFar                 // others would have left it without a reuse, and it has one by far: read ahead, or timed where that ended sooner
	afterFar              // they would, too, and it has none by far
	timedBy               // of one of the others that was left: timed to far at most, or not followed
	timedMore             // likewise, to more
)

const (
	// fartherBy times as far as other holds read it is compared: those that read farther do all of their first third of accesses.
	fartherBy = 4
	// fewFarther holds must have read farther, and as many must have something left there, for them to stand for the others.
	fewFarther = 4
)

// far is how many accesses what holds that read farther have counted is compared up to.
func (s *stage) far() int { return fartherBy * s.Near }

// newFarther takes what each observation stands for; nil where too few holds read farther. Which these are is drawn, and each tells of
// the accesses of which it would tell if it read no farther: so of all that it would leave without a reuse, wherever it would end, as
// much is reused by far as of what the others leave.
func (s *stage) newFarther(weight func(*record.Observation) float64) *farther {
	if s.Near == 0 || s.alone {
		return nil
	}
	var reused, alive, others, later float64
	holds := make(map[int]bool)
	fates := make(map[*record.Observation]fate, len(s.Seen))
	for _, o := range s.Seen {
		if o.State != record.Done || o.Hold == 0 {
			continue
		}
		if o.Beyond() {
			holds[o.Hold] = true
		}
		fates[o] = s.fateOf(o)
		switch fates[o] {
		case byFar:
			reused += weight(o)
		case afterFar:
			if o.OwnTime() > s.far() {
				alive += o.Weight()
			} else {
				alive += weight(o)
			}
		case timedMore:
			later += weight(o)
			others += o.Weight()
		case timedBy:
			others += o.Weight()
		}
	}
	if len(holds) < fewFarther || !(reused+alive > 0) {
		return nil
	}
	// As if one more hold were split: of few that agree it is not known that all do.
	half := (reused + alive) / float64(2*len(holds))
	share := (reused + half) / (reused + alive + 2*half)
	switch {
	case !(reused > 0) && !(later > 0):
		return nil
	case !(reused > 0):
		return &farther{later: others / later, fates: fates}
	case !(later > 0):
		return &farther{counted: others / reused, fates: fates}
	}
	return &farther{counted: others * share / reused, later: others * (1 - share) / later, fates: fates}
}

// fateOf is that of an observation of a hold.
func (s *stage) fateOf(o *record.Observation) fate {
	far := s.far()
	watched := o.Counted == 0 && !o.NoSlot
	more := func() bool { return watched && int(s.timedTouches(o, o.Native))+o.Lead > far }
	switch beyond := o.Beyond(); {
	case !beyond && o.Soon > 0:
		return itself
	case !beyond && more():
		return timedMore
	case !beyond:
		return timedBy
	case o.Soon > 0 && o.Soon <= far:
		return byFar
	case o.OwnTime() > far || more():
		return afterFar
	case watched:
		return byFar
	}
	return itself
}

// fate is that of an observation; all stand for themselves where too few holds read farther.
func (f *farther) fate(o *record.Observation) fate {
	if f == nil {
		return itself
	}
	return f.fates[o]
}

// standsFor is what an observation stands for, in place of 1.
func (f *farther) standsFor(o *record.Observation) float64 {
	switch f.fate(o) {
	case byFar:
		return 1 + f.counted
	case timedMore:
		return f.later
	case timedBy:
		return 0
	}
	return 1
}
