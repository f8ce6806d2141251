package web

import (
	"cmp"
	"debug/elf"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"

	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// instruction is a line of a disassembly.
type instruction struct {
	Offset string  `json:"offset"` // in the file
	Text   string  `json:"text"`
	Sites  []int32 `json:"sites"` // of Data.Sites that are here
}

const (
	mostCode    = 32 << 10 // bytes that are shown at once
	mostSymbols = 64 << 20 // bytes of a symbol table
	reach       = 512      // bytes around a site where no symbol tells a function's ends
)

// serveCode answers with the instructions around a site. The program is read as source is: only below
// the roots, and only if it is the one that was profiled.
func (s *Server) serveCode(w http.ResponseWriter, r *http.Request) {
	a, ok := s.asked(w, r)
	if !ok {
		return
	}
	d, err := s.dataOf(a)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k, err := strconv.Atoi(r.URL.Query().Get("site"))
	if err != nil || k < 0 || k >= len(d.Sites) {
		http.Error(w, "there is no such place", http.StatusBadRequest)
		return
	}
	s.answer(w, r, fmt.Sprintf("code %d %s %d %d", a.i, a.stack, k, a.version), func() (any, error) { return codeAt(d.Sites, k, s.o.Source) })
}

// codeAt is the function around a site.
func codeAt(sites []site, at int, source *Source) ([]instruction, error) {
	x := sites[at]
	f, obj, err := source.program(x.Mapping, x.m.File, x.m.BuildID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	offset, err := strconv.ParseUint(x.Offset, 16, 64)
	if err != nil {
		return nil, err
	}
	seg := segmentOf(obj, func(p *elf.Prog) bool { return offset >= p.Off && offset-p.Off < p.Filesz })
	if seg == nil {
		return nil, fmt.Errorf("%s has no code at %s", x.Mapping, x.Offset)
	}
	here := map[uint64][]int32{}
	from := offset
	for i, y := range sites {
		o, err := strconv.ParseUint(y.Offset, 16, 64)
		if err != nil || y.m.File != x.m.File || y.m.BuildID != x.m.BuildID {
			continue
		}
		here[o] = append(here[o], int32(i))
		if o < from && offset-o < reach {
			from = o // an instruction begins there for sure
		}
	}
	to := from + reach
	if start, end, ok := functionAt(obj, offset-seg.Off+seg.Vaddr); ok {
		from, to = start-seg.Vaddr+seg.Off, end-seg.Vaddr+seg.Off
	}
	if offset-from > mostCode/2 {
		from = offset // of a huge function what comes from here on
	}
	to = min(to, from+mostCode, seg.Off+seg.Filesz)
	if from < seg.Off || from >= to {
		return nil, fmt.Errorf("%s has no code at %s", x.Mapping, x.Offset)
	}
	code := make([]byte, to-from)
	n, err := f.ReadAt(code, int64(from))
	if n == 0 {
		return nil, fmt.Errorf("%s: %w", x.Mapping, err)
	}
	return disassemble(obj.Machine, code[:n], from, from-seg.Off+seg.Vaddr, here)
}

// program opens a program that was profiled, if it lies below a root and is the very one. said is what it is called in errors.
func (s *Source) program(said, file, buildID string) (*os.File, *elf.File, error) {
	f, _, err := s.open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not below a folder of --source", said)
	}
	obj, err := objfile.Open(f)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", said, err)
	}
	if id, err := objfile.BuildID(obj); buildID == "" || err != nil || id != buildID {
		f.Close()
		return nil, nil, fmt.Errorf("%s is not known to be the program that was profiled: its build ID is another, or there is none", said)
	}
	return f, obj, nil
}

// segmentOf is the one with code that has a place, nil if there is none.
func segmentOf(obj *elf.File, has func(p *elf.Prog) bool) *elf.Prog {
	for _, p := range obj.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && has(p) {
			return p
		}
	}
	return nil
}

// functionAt is the symbol of the code that has an address.
func functionAt(f *elf.File, addr uint64) (start, end uint64, ok bool) {
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		symbols, err := objfile.Symbols(f, kind, mostSymbols)
		if err != nil {
			continue
		}
		for s := range symbols {
			if s.Type() == elf.STT_FUNC && s.Size > 0 && s.Value <= addr && addr-s.Value < s.Size {
				return s.Value, s.Value + s.Size, true
			}
		}
	}
	return 0, 0, false
}

func disassemble(m elf.Machine, code []byte, offset, addr uint64, here map[uint64][]int32) ([]instruction, error) {
	var decode func(b []byte, pc uint64) (string, int)
	switch m {
	case elf.EM_X86_64:
		decode = func(b []byte, pc uint64) (string, int) {
			i, err := x86asm.Decode(b, 64)
			if err != nil || i.Len <= 0 {
				return "(bad)", 1
			}
			return x86asm.IntelSyntax(i, pc, nil), i.Len
		}
	case elf.EM_AARCH64:
		decode = func(b []byte, pc uint64) (string, int) {
			i, err := arm64asm.Decode(b)
			if err != nil {
				return "(not known)", 4
			}
			return strings.ToLower(arm64asm.GNUSyntax(i)), 4
		}
	default:
		return nil, fmt.Errorf("code of %v is not shown", m)
	}
	var out []instruction
	for at := 0; at < len(code); {
		text, n := decode(code[at:], addr+uint64(at))
		o := offset + uint64(at)
		x := instruction{Offset: fmt.Sprintf("%x", addr+uint64(at)), Text: text, Sites: []int32{}}
		for k := range uint64(n) { // an address that lies within, too
			x.Sites = append(x.Sites, here[o+k]...)
		}
		slices.Sort(x.Sites)
		out = append(out, x)
		at += n
	}
	return out, nil
}

// mostListings is how many listings of instructions a report has inside.
const mostListings = 20

// addCode adds the instructions of the sites without source whose samples have most accesses.
func (d *Data) addCode(profile int, stack string, source *Source, add func(id string, v any) error) error {
	if source == nil {
		return nil
	}
	weight := make([]float64, len(d.Sites))
	for i, a := range d.Cells.Accesses {
		site := d.Cells.ReuseAt[i]
		if site < 0 {
			site = d.Cells.UseAt[i]
		}
		if site >= 0 && d.source[d.PlaceTable.File[d.Sites[site].Place]] == "" {
			weight[site] += a
		}
	}
	order := make([]int, len(weight))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight[b], weight[a]) })
	for _, k := range order[:min(mostListings, len(order))] {
		if !(weight[k] > 0) {
			break
		}
		list, err := codeAt(d.Sites, k, source)
		if err != nil {
			continue
		}
		if err := add(fmt.Sprintf("code?profile=%d&stack=%s&site=%d", profile, stack, k), list); err != nil {
			return err
		}
	}
	return nil
}
