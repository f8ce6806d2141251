package pprofout

import (
	"cmp"
	"container/heap"
	"debug/elf"
	"iter"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// mostSymbols bounds a symbol table and its names, in bytes.
const mostSymbols = 1 << 30

// lookupSymbols names sorted addresses from a symbol table. An address that
// has lines but lacks the outermost function's name gets that.
func lookupSymbols(f *elf.File, syms iter.Seq[objfile.Symbol], pcs []uint64, found map[uint64][]model.Line) {
	var around []objfile.Symbol              // an address
	last := make([]objfile.Symbol, len(pcs)) // the last symbol that starts between it and the one before
	starts := make([]bool, len(pcs))
	for s := range syms {
		if !isCode(f, &s) {
			continue
		}
		from, _ := slices.BinarySearch(pcs, s.Value)
		if from == len(pcs) {
			continue
		}
		if !starts[from] || s.Value > last[from].Value || s.Value == last[from].Value && better(&s, &last[from]) {
			last[from], starts[from] = s, true
		}
		if pcs[from]-s.Value < s.Size {
			around = append(around, s)
		}
	}
	slices.SortFunc(around, func(a, b objfile.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	var open symbolHeap // those that begin at or before the address, the best first
	var before *objfile.Symbol
	for i, pc := range pcs {
		for len(around) > 0 && around[0].Value <= pc {
			heap.Push(&open, &around[0])
			around = around[1:]
		}
		for len(open) > 0 && pc-open[0].Value >= open[0].Size {
			heap.Pop(&open) // it holds none of the addresses to come either
		}
		if starts[i] {
			before = &last[i]
		}
		var s *objfile.Symbol
		if len(open) > 0 {
			s = open[0]
		} else if before != nil && before.Size == 0 {
			// Hand-written code often has no size: it goes to the next symbol,
			// at most to the end of its section.
			if sec := f.Sections[before.Section]; pc-sec.Addr < sec.Size {
				s = before
			}
		}
		if s == nil {
			continue
		}
		name, _, _ := strings.Cut(s.Name(), "@") // symbol version
		lines := found[pc]
		if len(lines) == 0 {
			lines = []model.Line{{}}
		}
		outer := &lines[len(lines)-1]
		outer.SystemName, outer.Function = name, display(name)
		found[pc] = lines
	}
}

// symbolHeap has the best symbol first.
type symbolHeap []*objfile.Symbol

func (h symbolHeap) Len() int           { return len(h) }
func (h symbolHeap) Less(i, j int) bool { return better(h[i], h[j]) }
func (h symbolHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *symbolHeap) Push(x any)        { *h = append(*h, x.(*objfile.Symbol)) }
func (h *symbolHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func isCode(f *elf.File, s *objfile.Symbol) bool {
	if s.Section == elf.SHN_UNDEF || int(s.Section) >= len(f.Sections) {
		return false
	}
	switch s.Type() {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return s.Name() != ""
	case elf.STT_NOTYPE:
		// A label in assembly; "$x" and the like only mark arm's instruction sets.
		name := s.Name()
		return f.Sections[s.Section].Flags&elf.SHF_EXECINSTR != 0 && name != "" && !strings.HasPrefix(name, "$")
	}
	return false
}

// better says whether a is the better name for an address than b, of which
// both hold it: the innermost, else the one that is meant to be used.
func better(a, b *objfile.Symbol) bool {
	if a.Value != b.Value {
		return a.Value > b.Value
	}
	rank := func(s *objfile.Symbol) int {
		switch s.Bind() {
		case elf.STB_GLOBAL:
			return 0
		case elf.STB_WEAK:
			return 1
		}
		return 2
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra < rb
	}
	under := func(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }
	na, nb := a.Name(), b.Name()
	if ua, ub := under(na), under(nb); ua != ub {
		return ua < ub
	}
	return na < nb
}
