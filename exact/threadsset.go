package exact

// blockSet is a set of block numbers: a hash table with linear probing whose
// memory is kept for its next use. The zero value is empty.
type blockSet struct {
	keys    []uint64 // a power of two; 0 is a free entry
	n       int      // entries in keys
	hasZero bool     // block 0 is in the set
}

const minSet = 64

func (s *blockSet) len() uint64 {
	if s.hasZero {
		return uint64(s.n) + 1
	}
	return uint64(s.n)
}

// at is the index of b, or that of the free entry where it would go.
func (s *blockSet) at(b uint64) int {
	mask := len(s.keys) - 1
	i := int(hashBlock(b)) & mask
	for s.keys[i] != 0 && s.keys[i] != b {
		i = (i + 1) & mask
	}
	return i
}

// add reports whether b is new.
func (s *blockSet) add(b uint64) bool {
	if b == 0 {
		isNew := !s.hasZero
		s.hasZero = true
		return isNew
	}
	if 4*(s.n+1) > 3*len(s.keys) {
		s.grow()
	}
	i := s.at(b)
	if s.keys[i] == b {
		return false
	}
	s.keys[i] = b
	s.n++
	return true
}

func (s *blockSet) grow() {
	old := s.keys
	s.keys = make([]uint64, max(minSet, 2*len(old)))
	for _, b := range old {
		if b != 0 {
			s.keys[s.at(b)] = b
		}
	}
}

// remove reports whether b was in the set.
func (s *blockSet) remove(b uint64) bool {
	if b == 0 {
		had := s.hasZero
		s.hasZero = false
		return had
	}
	if s.n == 0 {
		return false
	}
	i := s.at(b)
	if s.keys[i] != b {
		return false
	}
	s.n--
	// Close the gap: an entry may move back to it unless its own place lies
	// (cyclically) after the gap.
	mask := len(s.keys) - 1
	for j := (i + 1) & mask; s.keys[j] != 0; j = (j + 1) & mask {
		home := int(hashBlock(s.keys[j])) & mask
		if (j-home)&mask >= (j-i)&mask {
			s.keys[i] = s.keys[j]
			i = j
		}
	}
	s.keys[i] = 0
	return true
}

func (s *blockSet) each(f func(b uint64)) {
	if s.hasZero {
		f(0)
	}
	if s.n == 0 {
		return
	}
	for _, b := range s.keys {
		if b != 0 {
			f(b)
		}
	}
}

// reset empties the set. The memory of a set that was large once is given up
// when it has been mostly empty.
func (s *blockSet) reset() {
	if s.n > 0 {
		if len(s.keys) > 1024 && s.n < len(s.keys)/64 {
			s.keys = nil
		} else {
			clear(s.keys)
		}
	}
	s.n, s.hasZero = 0, false
}
