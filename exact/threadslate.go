package exact

import "github.com/rdx-profiler/rdx/model"

// The Parallel mode of a ThreadSampler: each open sample has sets of the blocks
// that each thread has touched since.

// analyzeSets shows a touch to the open samples.
func (s *ThreadSampler) analyzeSets(a *model.Access, thread int, b uint64, f func(*ThreadSample)) {
	done := false
	for i, x := range s.open {
		kind := model.Censored // still open
		if s.config.Shared {
			kind = s.touchShared(x, thread, b)
		} else {
			kind = s.touchPrivate(x, thread, b, a.Op == model.Store)
		}
		if kind != model.Censored {
			s.finish(x, kind, a, f)
			s.open[i] = nil
			done = true
		}
	}
	if done {
		s.keep(func(x *openSample) bool { return x != nil })
	}
}

func (s *ThreadSampler) touchShared(x *openSample, thread int, b uint64) model.Kind {
	if b == x.Block {
		s.mergeAll(x)
		return model.Reuse
	}
	if thread != x.owner {
		x.other(thread).add(b)
	} else {
		x.set.add(b)
	}
	return model.Censored
}

// touchPrivate is the case distinction of section 3.2: of the touches that are
// new to the set each fills a hole, if there is one. Other threads' writes count
// from the next merge on.
func (s *ThreadSampler) touchPrivate(x *openSample, thread int, b uint64, write bool) model.Kind {
	switch {
	case thread == x.owner && b == x.Block:
		if !s.mergeAll(x) {
			return model.Invalidated
		}
		return model.Reuse
	case thread == x.owner:
		if x.set.add(b) && x.holes > 0 {
			x.holes--
		}
	case write:
		x.other(thread).add(b)
	}
	return model.Censored
}

func (x *openSample) other(thread int) *blockSet {
	for len(x.others) <= thread {
		x.others = append(x.others, blockSet{})
	}
	return &x.others[thread]
}

// mergeAll brings the threads' sets together. It is false if that shows that
// the sampled block has been invalidated.
func (s *ThreadSampler) mergeAll(x *openSample) bool {
	if !s.config.Parallel {
		return true
	}
	if !s.config.Shared {
		return x.mergeWrites()
	}
	for i := range x.others {
		x.others[i].each(func(b uint64) { x.set.add(b) })
		x.others[i].reset()
	}
	return true
}

// mergeWrites applies the other threads' writes to the distance set.
func (x *openSample) mergeWrites() bool {
	valid := true
	for i := range x.others {
		x.others[i].each(func(b uint64) {
			if b == x.Block {
				valid = false
			} else if x.set.remove(b) {
				x.holes++
			}
		})
		x.others[i].reset()
	}
	return valid
}
