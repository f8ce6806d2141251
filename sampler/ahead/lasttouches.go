package ahead

// lastTouches is by block the index of its last touch: a hash table that is emptied at no cost, and asked and
// told at once, as a thread is held meanwhile.
type lastTouches struct {
	slots []lastTouch // a power of two, half of them in use at most
	used  int
	round uint32
}

type lastTouch struct {
	block uint64
	touch int32
	round uint32 // of another one it is free
}

const firstLastTouches = 4096

func (l *lastTouches) reset() {
	l.used = 0
	if l.round++; l.round == 0 { // what is left of that long ago would count again
		clear(l.slots)
		l.round = 1
	}
}

// swap sets a block's last touch and returns the one before, -1 if there was none.
func (l *lastTouches) swap(block uint64, touch int) (before int) {
	if 2*l.used >= len(l.slots) {
		l.grow()
	}
	s := l.find(block)
	if s.round == l.round {
		before, s.touch = int(s.touch), int32(touch)
		return before
	}
	*s = lastTouch{block, int32(touch), l.round}
	l.used++
	return -1
}

// at is a block's last touch, -1 if there was none.
func (l *lastTouches) at(block uint64) int {
	if l.used > 0 {
		if s := l.find(block); s.round == l.round {
			return int(s.touch)
		}
	}
	return -1
}

// hashOf is a number's Fibonacci hash: Knuth, The Art of Computer Programming, volume 3, section 6.4. Its upper bits are the better ones.
func hashOf(n uint64) uint64 { return n * 0x9e3779b97f4a7c15 }

// find is the block's slot, or the free one where it belongs.
func (l *lastTouches) find(block uint64) *lastTouch {
	mask := uint64(len(l.slots) - 1)
	for i := hashOf(block) >> 32; ; i++ {
		if s := &l.slots[i&mask]; s.round != l.round || s.block == block {
			return s
		}
	}
}

// reserve makes room for so many blocks.
func (l *lastTouches) reserve(blocks int) {
	for len(l.slots) < 2*blocks {
		l.grow()
	}
	clear(l.slots)
}

func (l *lastTouches) grow() {
	old := l.slots
	l.slots = make([]lastTouch, max(2*len(old), firstLastTouches))
	if l.round == 0 {
		l.round = 1
	}
	for _, s := range old {
		if s.round == l.round {
			*l.find(s.block) = s
		}
	}
}
