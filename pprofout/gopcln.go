package pprofout

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// lookupPCLN finds functions and lines in the table that the Go runtime needs
// itself and that is therefore there even in stripped programs. It does not
// tell what was inlined: the line is that of the innermost function, the name
// that of the outermost.
func lookupPCLN(f *elf.File, pcs []uint64, found map[uint64][]model.Line) error {
	var table *elf.Section
	for _, s := range f.Sections {
		if strings.HasSuffix(s.Name, ".gopclntab") { // .data.rel.ro.gopclntab in some PIEs
			table = s
		}
	}
	text := f.Section(".text")
	if table == nil || text == nil {
		return nil
	}
	data, err := objfile.Section(table, mostDebug)
	if err != nil {
		return err
	}
	// Offsets in the table are from the start of Go's own code, which is that
	// of the section unless C code was linked in before it.
	start := text.Addr
	if len(data) >= 8 && f.Class == elf.ELFCLASS64 && len(data) >= 32 {
		if v := f.ByteOrder.Uint64(data[24:]); v >= text.Addr && v-text.Addr < text.Size {
			start = v
		}
	}
	if syms, err := objfile.Symbols(f, elf.SHT_SYMTAB, mostSymbols); err == nil {
		for s := range syms {
			if s.Type() != elf.STT_SECTION && s.Name() == "runtime.text" {
				start = s.Value
			}
		}
	}
	tab, err := newPCLN(data, f.ByteOrder, start)
	if err != nil {
		return err
	}
	tab.limit = newTimeLimit(f)
	for _, pc := range pcs {
		if l, ok := tab.line(pc); ok {
			found[pc] = []model.Line{l}
		}
		if tab.limit.is {
			return errTooLong
		}
	}
	return nil
}

// pcln is a function table (runtime/symtab.go, cmd/link/internal/ld/pcln.go). debug/gosym reads all names of one
// at once, and names may overlap: those of 600 kB are five gigabytes then. This reads what is asked for.
type pcln struct {
	order                       binary.ByteOrder
	version                     int    // of Go: 12, 116 or 118
	pointer, field              uint64 // bytes of a pointer, and of what functions are listed by
	quantum                     uint64
	start                       uint64 // what addresses are from
	n                           uint64 // functions
	functions, data, names, pcs []byte
	units, files                []byte
	limit                       *timeLimit
}

var errUnknownPCLN = errors.New("written by a version of Go that is not known here")

func newPCLN(b []byte, order binary.ByteOrder, start uint64) (*pcln, error) {
	if len(b) < 16 || b[4] != 0 || b[5] != 0 || b[7] != 4 && b[7] != 8 {
		return nil, errUnknownPCLN
	}
	t := &pcln{order: order, quantum: uint64(b[6]), pointer: uint64(b[7]), field: uint64(b[7])}
	word := func(n uint64) uint64 { return t.word(tail(b, 8+n*t.pointer), t.pointer) }
	part := func(n uint64) []byte { return tail(b, word(n)) }
	t.n = word(0)
	switch order.Uint32(b) {
	case 0xfffffffb:
		t.version, t.data, t.names, t.pcs = 12, b, b, b
		t.functions = tail(b, 8+t.pointer)
		t.files = tail(b, t.word(tail(t.functions, (2*t.n+1)*t.field), 4))
	case 0xfffffffa:
		t.version, t.names, t.units, t.files, t.pcs, t.data = 116, part(2), part(3), part(4), part(5), part(6)
		t.functions = t.data
	case 0xfffffff0, 0xfffffff1:
		t.version, t.names, t.units, t.files, t.pcs, t.data = 118, part(3), part(4), part(5), part(6), part(7)
		t.functions, t.field, t.start = t.data, 4, start
	default:
		return nil, errUnknownPCLN
	}
	if t.n == 0 || t.n > uint64(len(t.functions))/(2*t.field) {
		return nil, fmt.Errorf("damaged: %d functions in %d bytes", t.n, len(b))
	}
	return t, nil
}

// tail of some bytes, none if it begins behind them.
func tail(b []byte, from uint64) []byte { return b[min(from, uint64(len(b))):] }

// word is 0 if there are not enough bytes.
func (t *pcln) word(b []byte, size uint64) uint64 {
	switch {
	case uint64(len(b)) < size:
		return 0
	case size == 4:
		return uint64(t.order.Uint32(b))
	default:
		return t.order.Uint64(b)
	}
}

// entry of a function, or the end of the last.
func (t *pcln) entry(i uint64) uint64 {
	return t.word(tail(t.functions, 2*i*t.field), t.field) + t.start
}

func (t *pcln) line(pc uint64) (l model.Line, ok bool) {
	i := uint64(sort.Search(int(t.n)+1, func(i int) bool { return t.entry(uint64(i)) > pc }))
	if i == 0 || i > t.n {
		return l, false
	}
	f := tail(t.data, t.word(tail(t.functions, (2*(i-1)+1)*t.field), t.field))
	first := t.pointer // of the function's words
	if t.version >= 118 {
		first = 4
	}
	word := func(n uint64) uint64 { return t.word(tail(f, first+(n-1)*4), 4) }
	entry := t.word(f, first) + t.start
	l.Function = upToZero(t.names, word(1))
	l.SystemName = l.Function
	l.Line = int(t.value(word(6), entry, pc))
	if n := int(t.value(word(6), entry, entry)); n <= l.Line {
		l.StartLine = n
	}
	file := t.value(word(5), entry, pc)
	switch {
	case t.version == 12 && file > 0:
		l.File = upToZero(t.data, t.word(tail(t.files, 4*uint64(file)), 4))
	case t.version > 12 && file >= 0:
		if at := t.word(tail(t.units, 4*(word(8)+uint64(file))), 4); at != 1<<32-1 {
			l.File = upToZero(t.files, at)
		}
	}
	return l, l.Function != ""
}

// value is what a table of steps has for an address, -1 if nothing.
func (t *pcln) value(at, pc, target uint64) int32 {
	b := tail(t.pcs, at)
	value := int32(-1)
	for first := true; !t.limit.tick(); first = false {
		up, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		if n <= 0 || up == 0 && !first {
			break
		}
		far, n := binary.Uvarint(b)
		if b = b[max(n, 0):]; n <= 0 {
			break
		}
		value += int32(uint32(up>>1) ^ -uint32(up&1))
		if pc += far * t.quantum; target < pc {
			return value
		}
	}
	return -1
}

// upToZero is the text at a place.
func upToZero(b []byte, at uint64) string {
	b = tail(b, at)
	b = b[:min(len(b), mostPerfMapName)]
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}
