package exact

// sampleStacks are the stacks that the open samples of a ThreadSampler share, one
// for each thread or one for all. They begin empty: what lies below the oldest open
// sample has no part in any distance, and so does not need to be known.
type sampleStacks struct {
	private *PrivateStacks
	shared  bool
	running *privateStack            // that of the thread that runs
	open    map[uint64][]*openSample // by block, of each stack at most one; oldest first
	ending  []*openSample
}

// trimBlocks is how many blocks may be kept while no sample is open.
const trimBlocks = 1 << 16

func newSampleStacks(c ThreadSamplerConfig) (*sampleStacks, error) {
	p, err := NewPrivateStacks(c.BlockBytes)
	return &sampleStacks{private: p, shared: c.Shared, open: map[uint64][]*openSample{}}, err
}

// trim gives up what is known if that is much. No sample may be open.
func (s *sampleStacks) trim() {
	blocks := uint32(0)
	for _, p := range s.private.all {
		blocks += p.order.live
	}
	if blocks > trimBlocks {
		s.private.reset()
		s.running = nil
	}
}

func (s *sampleStacks) stackOf(thread int) *privateStack {
	if s.shared {
		thread = 0
	}
	if s.running == nil || s.running.thread != int32(thread) {
		s.running = s.private.stackOf(int32(thread))
	}
	return s.running
}

// touch brings a block to the top of the thread's stack.
func (s *sampleStacks) touch(thread int, b uint64, write bool) error {
	running := s.stackOf(thread)
	t := Touch{Block: b}
	err := running.touch(&t)
	if !s.shared {
		s.private.share(running, b, write)
	}
	return err
}

// take opens a sample of a block.
func (s *sampleStacks) take(x *openSample, write bool) error {
	s.open[x.Block] = append(s.open[x.Block], x)
	return s.touch(x.owner, x.Block, write)
}

// ended lists the open samples that a touch ends, which it must not have done to
// the stacks yet. It is valid until the next call.
func (s *sampleStacks) ended(thread int, b uint64, write bool) []*openSample {
	s.ending = s.ending[:0]
	for _, x := range s.open[b] {
		if s.shared || x.owner == thread || write {
			s.ending = append(s.ending, x)
		}
	}
	return s.ending
}

// forget closes a sample.
func (s *sampleStacks) forget(x *openSample) {
	kept := s.open[x.Block][:0]
	for _, o := range s.open[x.Block] {
		if o != x {
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 {
		delete(s.open, x.Block)
	} else {
		s.open[x.Block] = kept
	}
}

// above is the number of blocks and holes above an open sample's.
func (s *sampleStacks) above(x *openSample) uint64 {
	running := s.stackOf(x.owner)
	return uint64(running.order.above(*running.index.slot(x.Block)))
}
