package hotset

import (
	"math"
	"time"

	"github.com/rdx-profiler/rdx/collector/target"
	"github.com/rdx-profiler/rdx/model"
)

const (
	// apart is how long holds are one after the other to count by themselves: the next one may find the first one's work unfinished.
	apart = 100 * time.Millisecond
	// mostBlocks and mostPages are noted, the first ones: what is not is outside of all sets.
	mostBlocks, mostPages = 1 << 17, 1 << 15
	pageBytes             = 4096
)

// Sets are those of one session. The zero value is ready once Block is set.
type Sets struct {
	Block         int // bytes of a block, a power of two up to a page
	blocks, pages seen
	part          uint32 // of the session, from 1
	since         time.Duration
}

// seen is by process and block in how many parts of the session it was touched, and in which last.
type seen struct {
	of map[*target.Process]map[uint64]touched
	n  int // blocks
}

type touched struct{ parts, last uint32 }

// perPage is how many blocks a page has.
func (s *Sets) perPage() uint64 { return max(uint64(pageBytes/max(s.Block, 1)), 1) }

// Add notes the blocks that were read ahead in a hold at such a time.
func (s *Sets) Add(p *target.Process, at time.Duration, blocks []uint64) {
	if s.part == 0 || at-s.since >= apart {
		s.part, s.since = s.part+1, at
	}
	perPage := s.perPage()
	ofBlocks, ofPages := s.blocks.process(p), s.pages.process(p)
	before := uint64(math.MaxUint64)
	for _, b := range blocks {
		s.blocks.add(ofBlocks, b, s.part, mostBlocks)
		if page := b / perPage; page != before {
			before = page
			s.pages.add(ofPages, page, s.part, mostPages)
		}
	}
}

// Known says whether a hold has touched the block.
func (s *Sets) Known(p *target.Process, block uint64) bool {
	_, ok := s.blocks.of[p][block]
	return ok
}

// process is what is seen of one.
func (m *seen) process(p *target.Process) map[uint64]touched {
	if m.of == nil {
		m.of = make(map[*target.Process]map[uint64]touched)
	}
	of := m.of[p]
	if of == nil {
		of = make(map[uint64]touched)
		m.of[p] = of
	}
	return of
}

// add notes a block of a process.
func (m *seen) add(of map[uint64]touched, block uint64, part uint32, most int) {
	t, ok := of[block]
	if t.last == part || !ok && m.n >= most {
		return
	}
	if !ok {
		m.n++
	}
	of[block] = touched{t.parts + 1, part}
}

// Levels are sets of more and more blocks, each within the next: first the single blocks that most parts of the session have
// touched, and if all are in, and there is room, whole pages likewise.
type Levels struct {
	*Sets
	levels []level
}

// level is a set of so many blocks at most.
type level struct {
	most uint64
	// parts that must have touched a block, or a page, for it to be in it.
	blocks, pages uint32
}

// levels there are: the largest set has as many blocks as noted pages have.
const levels = 2*21 + 1

// Levels are those by what was added so far.
func (s *Sets) Levels() *Levels {
	l := &Levels{Sets: s}
	blocks, pages := s.blocks.byParts(), s.pages.byParts()
	for k := range levels {
		v := level{most: model.HotSetBlocks(k), pages: none}
		var n uint64
		if v.blocks, n = blocks.least(v.most, 1); v.blocks == 1 {
			v.pages, _ = pages.least(v.most-n, s.perPage())
		}
		l.levels = append(l.levels, v)
	}
	return l
}

// byParts is how many are touched in so many parts of the session.
type byParts []uint64

func (m *seen) byParts() (n byParts) {
	for _, of := range m.of {
		for _, t := range of {
			for int(t.parts) >= len(n) {
				n = append(n, 0)
			}
			n[t.parts]++
		}
	}
	return n
}

// none is more parts than there are.
const none = math.MaxUint32

// least is in how many parts one was touched at least that is among the first that have room, each of so many blocks; and how
// many blocks these are.
func (n byParts) least(room, each uint64) (parts uint32, blocks uint64) {
	parts = none
	for k := len(n) - 1; k > 0; k-- {
		if blocks+n[k]*each > room {
			break
		}
		parts, blocks = uint32(k), blocks+n[k]*each
	}
	return parts, blocks
}

// Of is how many blocks the smallest set has that a block of a hold is in by the others, 0 of none.
func (l *Levels) Of(p *target.Process, block uint64) uint64 {
	blocks, pages := others(l.blocks.of[p][block]), others(l.pages.of[p][block/l.perPage()])
	for _, v := range l.levels {
		if blocks >= v.blocks || pages >= v.pages {
			return v.most
		}
	}
	return 0
}

// others are the parts that touched it but for one.
func others(t touched) uint32 { return max(t.parts, 1) - 1 }
