package pprofout

import (
	"debug/elf"
	"slices"
	"strings"

	"github.com/rdx-profiler/rdx/model"
)

// lookupSymbols names sorted addresses from a symbol table. An address that
// has lines but lacks the outermost function's name gets that.
func lookupSymbols(f *elf.File, syms []elf.Symbol, pcs []uint64, found map[uint64][]model.Line) {
	holds := make([]*elf.Symbol, len(pcs)) // the best symbol around each address
	last := make([]*elf.Symbol, len(pcs))  // the last symbol that starts between it and the one before
	for i := range syms {
		s := &syms[i]
		if !isCode(f, s) {
			continue
		}
		from, _ := slices.BinarySearch(pcs, s.Value)
		if from < len(pcs) && (last[from] == nil || s.Value > last[from].Value || s.Value == last[from].Value && better(s, last[from])) {
			last[from] = s
		}
		for j := from; j < len(pcs) && pcs[j]-s.Value < s.Size; j++ {
			if better(s, holds[j]) {
				holds[j] = s
			}
		}
	}
	var before *elf.Symbol
	for i, pc := range pcs {
		if last[i] != nil {
			before = last[i]
		}
		s := holds[i]
		if s == nil && before != nil && before.Size == 0 {
			// Hand-written code often has no size: it goes to the next symbol,
			// at most to the end of its section.
			if sec := f.Sections[before.Section]; pc-sec.Addr < sec.Size {
				s = before
			}
		}
		if s == nil {
			continue
		}
		name, _, _ := strings.Cut(s.Name, "@") // symbol version
		lines := found[pc]
		if len(lines) == 0 {
			lines = []model.Line{{}}
		}
		outer := &lines[len(lines)-1]
		outer.SystemName, outer.Function = name, display(name)
		found[pc] = lines
	}
}

func isCode(f *elf.File, s *elf.Symbol) bool {
	if s.Section == elf.SHN_UNDEF || int(s.Section) >= len(f.Sections) || s.Name == "" {
		return false
	}
	switch elf.ST_TYPE(s.Info) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return true
	case elf.STT_NOTYPE:
		// A label in assembly; "$x" and the like only mark arm's instruction sets.
		return f.Sections[s.Section].Flags&elf.SHF_EXECINSTR != 0 && !strings.HasPrefix(s.Name, "$")
	}
	return false
}

// better says whether a is the better name for an address than b, of which
// both hold it: the innermost, else the one that is meant to be used.
func better(a, b *elf.Symbol) bool {
	if b == nil {
		return true
	}
	if a.Value != b.Value {
		return a.Value > b.Value
	}
	rank := func(s *elf.Symbol) int {
		switch elf.ST_BIND(s.Info) {
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
	if ua, ub := under(a.Name), under(b.Name); ua != ub {
		return ua < ub
	}
	return a.Name < b.Name
}
