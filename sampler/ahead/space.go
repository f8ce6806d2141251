package ahead

import (
	"slices"
	"sort"

	"github.com/rdx-profiler/rdx/proc"
)

// A space is what is mapped in a process, and how that changes on a replay's way:
// where the kernel would put what the thread has it map.
type space struct {
	mapped []extent // in order, what touches is one; below the stack
	heap   extent   // that brk moves; empty if there is none
	fresh  []extent // mapped on the way: zero
	above  bool     // the stack has been seen
}

// extent is addresses from start to limit.
type extent struct{ start, limit uint64 }

func (s *space) reset() { *s = space{mapped: s.mapped[:0], fresh: s.fresh[:0]} }

// add adds a mapping, in order.
func (s *space) add(m proc.Mapping) {
	switch {
	case s.above || string(m.Name) == "[stack]":
		s.above = true
		return
	case string(m.Name) == "[heap]":
		s.heap = extent{m.Start, m.Limit}
	}
	if last := len(s.mapped) - 1; last >= 0 && s.mapped[last].limit == m.Start {
		s.mapped[last].limit = m.Limit
		return
	}
	s.mapped = append(s.mapped, extent{m.Start, m.Limit})
}

// isFresh says whether an address was mapped on the way.
func (s *space) isFresh(addr uint64) bool {
	return slices.ContainsFunc(s.fresh, func(e extent) bool { return e.start <= addr && addr < e.limit })
}

// renew makes pages that were just mapped zero.
func (s *space) renew(m *machine, e extent) {
	s.fresh = append(s.fresh, e)
	m.Forget(e.start, e.limit)
}

// setBreak does brk(to).
func (s *space) setBreak(m *machine, to uint64) (result uint64, ok bool) {
	switch {
	case s.heap.limit == 0 || to != 0 && to < s.heap.start:
		return 0, false
	case to == 0:
		return s.heap.limit, true
	}
	if end := pageUp(to); end > s.heap.limit {
		s.renew(m, extent{s.heap.limit, end})
	}
	s.heap.limit = pageUp(to)
	return to, true
}

// hugePage is the size from which on where memory is put depends on how large pages
// can be.
const hugePage = 2 << 20

// mapAnywhere does mmap of so many bytes of memory anywhere: in the highest gap that
// they fit into.
func (s *space) mapAnywhere(m *machine, size uint64) (addr uint64, ok bool) {
	if size = pageUp(size); size == 0 || size >= hugePage {
		return 0, false
	}
	for i := len(s.mapped) - 1; i > 0; i-- {
		if s.mapped[i].start-s.mapped[i-1].limit < size {
			continue
		}
		addr = s.mapped[i].start - size
		s.renew(m, extent{addr, s.mapped[i].start})
		if s.mapped[i].start = addr; s.mapped[i-1].limit == addr {
			s.mapped[i-1].limit = s.mapped[i].limit
			s.mapped = slices.Delete(s.mapped, i, i+1)
		}
		return addr, true
	}
	return 0, false
}

// unmap does munmap(start, size). What was there is forgotten when something else is
// mapped there.
func (s *space) unmap(start, size uint64) {
	limit := start + pageUp(size)
	first := sort.Search(len(s.mapped), func(i int) bool { return s.mapped[i].limit > start })
	last := first
	var rest []extent
	for ; last < len(s.mapped) && s.mapped[last].start < limit; last++ {
		e := s.mapped[last]
		if e.start < start {
			rest = append(rest, extent{e.start, start})
		}
		if e.limit > limit {
			rest = append(rest, extent{limit, e.limit})
		}
	}
	s.mapped = slices.Replace(s.mapped, first, last, rest...)
}

func pageUp(n uint64) uint64 { return (n + pageSize - 1) &^ (pageSize - 1) }
