package unwind

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// A Table is the call frame information of one ELF file. Entries are read when
// they are first needed, so that a large file costs no more than the
// functions of it that were seen. A Table is for one goroutine at a time.
type Table struct {
	// Go: the file is of the Go compiler, whose code keeps frame pointers and
	// whose .debug_frame doesn't tell where they are saved.
	Go bool

	r      io.ReaderAt
	loads  []elf.ProgHeader
	hdr    header
	index  []span // if there is no header
	frames []section
	cies   map[uint64]*cie
	rows   map[uint64]*row // by address; nil where there is none
}

// section of the file in memory. eh: .eh_frame, else .debug_frame.
type section struct {
	data []byte
	addr uint64
	eh   bool
}

// span is the code of one entry.
type span struct {
	start, end uint64
	section    int
	at         int // of the entry in the section
}

// header is .eh_frame_hdr: a table of functions for binary search.
type header struct {
	table []byte // pairs of 4 bytes: start of the code, address of the entry
	addr  uint64 // of the header, that both are relative to
}

// maxCFI bounds what is read of one file's tables.
const maxCFI = 256 << 20

// NewTable reads what says where the entries of an ELF file are. It is no
// error if the file has none.
func NewTable(r io.ReaderAt, arch *Arch) (t *Table, err error) {
	defer recoverMalformed(&err)
	f, err := objfile.Open(r)
	if err != nil {
		return nil, fmt.Errorf("read unwind tables: %w", err)
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != arch.machine || f.ByteOrder.String() != "LittleEndian" {
		return nil, fmt.Errorf("read unwind tables: a file for %v %v", f.Class, f.Machine)
	}
	t = &Table{r: r, cies: make(map[uint64]*cie), rows: make(map[uint64]*row)}
	t.Go = f.Section(".gopclntab") != nil || f.Section(".data.rel.ro.gopclntab") != nil
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			t.loads = append(t.loads, p.ProgHeader)
		}
	}
	found, err := t.readHeader(f)
	if err != nil {
		return nil, err
	}
	if !found {
		if err := t.readSection(f, ".eh_frame", true); err != nil {
			return nil, err
		}
	}
	if !t.Go {
		if err := t.readSection(f, ".debug_frame", false); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(t.index, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return t, nil
}

// Address of the code at an offset of the file, where that is loaded as code.
func (t *Table) Address(offset uint64) (addr uint64, ok bool) {
	for _, p := range t.loads {
		if p.Flags&elf.PF_X != 0 && offset >= p.Off && offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

// readHeader reads .eh_frame_hdr, found by its program header: section headers
// may be stripped. found is false if it can't be searched.
func (t *Table) readHeader(f *elf.File) (found bool, err error) {
	for _, p := range f.Progs {
		if p.Type != elf.PT_GNU_EH_FRAME || p.Filesz > maxCFI {
			continue
		}
		b, err := objfile.Segment(p, maxCFI)
		if err != nil {
			return false, fmt.Errorf("read .eh_frame_hdr: %w", err)
		}
		c := &cursor{b: b, addr: p.Vaddr}
		version, frameEnc, countEnc, tableEnc := c.u8(), c.u8(), c.u8(), c.u8()
		if version != 1 || countEnc == encOmit || tableEnc != encDataRel|encS4 {
			return false, nil
		}
		c.pointer(frameEnc, p.Vaddr)
		n := c.pointer(countEnc, p.Vaddr)
		if n > uint64(len(b))/8 {
			return false, malformed(fmt.Sprintf("%d functions in a header of %d bytes", n, len(b)))
		}
		t.hdr = header{c.take(8 * n), p.Vaddr}
		return n > 0, nil
	}
	return false, nil
}

// readSection reads a whole section and indexes its entries.
func (t *Table) readSection(f *elf.File, name string, eh bool) error {
	s := f.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil
	}
	data, err := objfile.Section(s, maxCFI)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	frame := section{data, s.Addr, eh}
	number := len(t.frames)
	t.frames = append(t.frames, frame)
	for c := (&cursor{b: data, addr: s.Addr}); !c.done(); {
		at := c.pos
		body, id, idAt, long := entry(c)
		if body == nil || frame.isCIE(id, long) {
			continue
		}
		e, err := t.cie(frame.cieAddr(id, idAt), frame)
		if err != nil {
			continue // an augmentation that is not known; others may be
		}
		fde := parseFDE(body, e)
		if fde.end > fde.start {
			t.index = append(t.index, span{fde.start, fde.end, number, at})
		}
	}
	return nil
}

func (s *section) isCIE(id uint64, long bool) bool {
	if s.eh {
		return id == 0
	}
	return id == 0xffffffff && !long || id == 1<<64-1
}

// cieAddr: the id is in .eh_frame a distance back, in .debug_frame an offset.
func (s *section) cieAddr(id, idAt uint64) uint64 {
	if s.eh {
		return idAt - id
	}
	return s.addr + id
}

// entryAt returns the cursor of an entry at an address of the file: in the
// section, or read from the file if that is not in memory.
func (t *Table) entryAt(addr uint64, s section) (*cursor, error) {
	if s.data != nil {
		if addr < s.addr || addr-s.addr >= uint64(len(s.data)) {
			return nil, malformed(fmt.Sprintf("entry at %#x is outside of its section", addr))
		}
		off := addr - s.addr
		return &cursor{b: s.data[off:], addr: addr}, nil
	}
	var head [4]byte
	if err := t.read(addr, head[:]); err != nil {
		return nil, err
	}
	c := &cursor{b: head[:]}
	n := c.u32()
	if n > maxEntry { // 64-bit DWARF included, which nobody writes to .eh_frame
		return nil, malformed(fmt.Sprintf("entry of %d bytes", n))
	}
	b := make([]byte, 4+n)
	if err := t.read(addr, b); err != nil {
		return nil, err
	}
	return &cursor{b: b, addr: addr}, nil
}

// maxEntry bounds one function's entry.
const maxEntry = 1 << 20

// read reads the file at an address it is loaded at.
func (t *Table) read(addr uint64, b []byte) error {
	for _, p := range t.loads {
		if addr >= p.Vaddr && addr-p.Vaddr+uint64(len(b)) <= p.Filesz {
			_, err := t.r.ReadAt(b, int64(addr-p.Vaddr+p.Off))
			return err
		}
	}
	return malformed(fmt.Sprintf("address %#x is not in the file", addr))
}

func (t *Table) cie(addr uint64, s section) (e *cie, err error) {
	defer recoverMalformed(&err)
	if e := t.cies[addr]; e != nil {
		return e, nil
	}
	c, err := t.entryAt(addr, s)
	if err != nil {
		return nil, err
	}
	body, id, _, long := entry(c)
	if body == nil || !s.isCIE(id, long) {
		return nil, malformed(fmt.Sprintf("no common information at %#x", addr))
	}
	e = parseCIE(body, long)
	t.cies[addr] = e
	return e, nil
}

// errNoInfo: the file says nothing of that address.
var errNoInfo = errors.New("no call frame information")

// fde finds the entry of the function with a code address of the file.
func (t *Table) fde(pc uint64) (f *fde, err error) {
	defer recoverMalformed(&err)
	s := section{eh: true}
	addr, ok := t.hdr.find(pc)
	if ok {
		if f, err := t.parse(addr, s); err != nil || pc < f.end {
			return f, err
		}
	}
	i := sort.Search(len(t.index), func(i int) bool { return t.index[i].start > pc }) - 1
	if i < 0 || pc >= t.index[i].end {
		return nil, errNoInfo
	}
	s = t.frames[t.index[i].section]
	return t.parse(s.addr+uint64(t.index[i].at), s)
}

// parse reads the entry at an address.
func (t *Table) parse(addr uint64, s section) (*fde, error) {
	c, err := t.entryAt(addr, s)
	if err != nil {
		return nil, err
	}
	body, id, idAt, long := entry(c)
	if body == nil || s.isCIE(id, long) {
		return nil, malformed(fmt.Sprintf("no function's entry at %#x", addr))
	}
	e, err := t.cie(s.cieAddr(id, idAt), s)
	if err != nil {
		return nil, err
	}
	return parseFDE(body, e), nil
}

// find returns the address of the entry of the last function that does not
// begin behind pc.
func (h *header) find(pc uint64) (addr uint64, ok bool) {
	at := func(i int) uint64 {
		c := cursor{b: h.table[4*i:]}
		return h.addr + uint64(int32(c.u32()))
	}
	i := sort.Search(len(h.table)/8, func(i int) bool { return at(2*i) > pc }) - 1
	if i < 0 {
		return 0, false
	}
	return at(2*i + 1), true
}

// row returns the unwind table's line for a code address of the file.
func (t *Table) row(pc uint64) (r *row, err error) {
	if r, ok := t.rows[pc]; ok {
		if r == nil {
			return nil, errNoInfo
		}
		return r, nil
	}
	defer recoverMalformed(&err)
	f, err := t.fde(pc)
	if err == nil {
		r = f.at(pc)
	} else if !errors.Is(err, errNoInfo) {
		return nil, err
	}
	if len(t.rows) > maxRows {
		clear(t.rows)
	}
	t.rows[pc] = r
	return r, err
}

// maxRows is as many as are remembered.
const maxRows = 1 << 14
