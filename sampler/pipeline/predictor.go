package pipeline

// predictor foretells branches as processors do, by what came of them after the same history: the longest history
// that was met decides (Seznec and Michaud, A case for partially tagged geometric history length branch prediction,
// JILP 8, 2006, in small). It learns over all stretches that were read, which are few: it is worse than a
// processor's where a program is seen for the first time.
type predictor struct {
	base    [tableSize]int8
	tables  [len(histories)][tableSize]entry
	targets [tableSize]uint64 // of indirect branches
	history uint64            // the last branches, one bit each
}

// histories are their lengths in branches.
var histories = [...]uint{4, 12, 32}

const tableSize = 1 << 13

type entry struct {
	tag   uint16
	count int8 // from -4: not taken, to 3: taken
	used  uint8
}

func fold(pc, history uint64) uint64 {
	h := (pc ^ pc>>17) * 0x9e3779b97f4a7c15
	h ^= history * 0xc2b2ae3d27d4eb4f
	return h ^ h>>29
}

// conditional says whether the branch is foretold rightly, and learns.
func (p *predictor) conditional(pc uint64, taken bool) (right bool) {
	base := &p.base[fold(pc, 0)%tableSize]
	foretold := *base >= 0
	var by *entry
	provider := -1
	var at [len(histories)]*entry
	var tags [len(histories)]uint16
	for i, length := range histories {
		h := fold(pc, p.history&(1<<length-1)|1<<length)
		at[i], tags[i] = &p.tables[i][h%tableSize], uint16(h>>40)
		if at[i].tag == tags[i] && at[i].used > 0 {
			by, provider = at[i], i
		}
	}
	if by != nil {
		foretold = by.count >= 0
		by.count = learn(by.count, taken, 4)
		by.used = min(by.used+1, 3)
	} else {
		*base = learn(*base, taken, 4)
	}
	right = foretold == taken
	if !right { // the next longer history may tell
		for i := provider + 1; i < len(histories); i++ {
			if e := at[i]; e.used <= 1 {
				*e = entry{tag: tags[i], used: 1, count: learn(0, taken, 4) - 1}
				if taken {
					e.count = 0
				}
				break
			} else {
				e.used--
			}
		}
	}
	p.history = p.history<<1 | bit(taken)
	return right
}

// indirect likewise, by its target.
func (p *predictor) indirect(pc, target uint64) (right bool) {
	at := &p.targets[fold(pc, p.history&(1<<12-1))%tableSize]
	right = *at == target
	*at = target
	p.history = p.history<<2 | target>>4&3
	return right
}

// learn moves a counter of so many steps either way.
func learn(count int8, taken bool, steps int8) int8 {
	if taken {
		return min(count+1, steps-1)
	}
	return max(count-1, -steps)
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
