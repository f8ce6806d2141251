package pprofout

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// Attributes of split units as GCC had them before DWARF 5 (its wiki, "DebugFission").
const (
	attrGNUDwoName    = dwarf.Attr(0x2130)
	attrGNUDwoID      = dwarf.Attr(0x2131)
	attrGNURangesBase = dwarf.Attr(0x2132)
	attrGNUAddrBase   = dwarf.Attr(0x2133)
)

// splitName is the file in which the compiler left all of a unit but its lines and addresses
// (DWARF 5, section 3.1.3), "" of a whole unit.
func splitName(cu *dwarf.Entry) string {
	for _, a := range []dwarf.Attr{dwarf.AttrDwoName, attrGNUDwoName} {
		if name, ok := cu.Val(a).(string); ok {
			return name
		}
	}
	return ""
}

// A splitUnit is what was left in such a file.
type splitUnit struct {
	data     *dwarf.Data
	cu       *dwarf.Entry
	version  int
	rangesOf []byte // the section that its ranges are in, from where they are counted
	addrs    []byte // its addresses in the program
	locLists []byte // the lists of its variables' places, DWARF 5's only
	base     uint64 // of ranges
}

// splitParts are the sections of a unit in a .dwo file, or of one among others in a .dwp.
type splitParts struct{ info, abbrev, str, strOffsets, rngLists, locLists []byte }

// split finds the other half of a unit: in a package beside the program, else in a file of its own. One of another
// compilation is not taken.
func (s *debugSource) split(root dwarf.Offset, cu *dwarf.Entry) (*splitUnit, error) {
	id, ok := s.splitID(root, cu)
	if !ok {
		return nil, errors.New("split unit without a number")
	}
	parts, err := s.packed(id)
	if err != nil || parts == nil {
		dir, _ := cu.Val(dwarf.AttrCompDir).(string)
		name := splitName(cu)
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		var errFile error
		if parts, errFile = s.dwoFile(name); errFile != nil {
			return nil, errors.Join(err, fmt.Errorf("%s: %w", name, errFile))
		}
	}
	return s.join(parts, id, cu)
}

// splitID is by which both halves know each other: at the end of the unit's header, before DWARF 5 an attribute.
func (s *debugSource) splitID(root dwarf.Offset, cu *dwarf.Entry) (uint64, bool) {
	if cu.Tag == dwarf.TagSkeletonUnit {
		if info := s.sections["info"]; root >= 8 && int(root) <= len(info) {
			return s.order.Uint64(info[root-8:]), true
		}
		return 0, false
	}
	id, ok := cu.Val(attrGNUDwoID).(int64)
	return uint64(id), ok
}

// dwoFile reads a .dwo file, below the target's root or ours.
func (s *debugSource) dwoFile(name string) (*splitParts, error) {
	f, err := s.openELF(name)
	if err != nil {
		return nil, err
	}
	var p splitParts
	for at, section := range p.names() {
		if sec := f.Section(section); sec != nil {
			if *at, err = objfile.Section(sec, mostDebug); err != nil {
				return nil, err
			}
		}
	}
	return &p, nil
}

func (p *splitParts) names() map[*[]byte]string {
	return map[*[]byte]string{&p.info: ".debug_info.dwo", &p.abbrev: ".debug_abbrev.dwo", &p.str: ".debug_str.dwo",
		&p.strOffsets: ".debug_str_offsets.dwo", &p.rngLists: ".debug_rnglists.dwo", &p.locLists: ".debug_loclists.dwo"}
}

// openELF opens an ELF file at the first place that has one of that name.
func (s *debugSource) openELF(name string) (*elf.File, error) {
	err := error(errors.New("no such file"))
	for _, in := range s.debugRoots {
		r, errOpen := in.Open(name)
		if errOpen != nil {
			continue
		}
		f, errELF := objfile.Open(r)
		if errELF == nil {
			return f, nil
		}
		err = errELF
	}
	return nil, err
}

// join makes one of both halves. The package dwarf knows no split units: it gets the addresses and strings from where
// this unit's begin, so that what it takes for missing bases, zero, is right.
func (s *debugSource) join(p *splitParts, id uint64, skeleton *dwarf.Entry) (*splitUnit, error) {
	s.limit.allow(uint64(len(p.info)) + uint64(len(p.abbrev)))
	version, roots := unitVersion(p.info, s.order), unitRoots(p.info, s.order, nil)
	u := &splitUnit{version: version, addrs: s.sections["addr"], rangesOf: p.rngLists, locLists: p.locLists}
	addrBase := dwarf.AttrAddrBase
	strOffsets := p.strOffsets
	if version < 5 {
		addrBase = attrGNUAddrBase
		from, _ := skeleton.Val(attrGNURangesBase).(int64)
		u.rangesOf = behind(s.sections["ranges"], from)
		standardForms(p.abbrev)
	} else {
		u.rangesOf = behind(p.rngLists, headerSize(p.rngLists, s.order, 12))
		strOffsets = behind(strOffsets, headerSize(strOffsets, s.order, 8))
	}
	from, _ := skeleton.Val(addrBase).(int64)
	u.addrs = behind(u.addrs, from)
	u.base, _ = skeleton.Val(dwarf.AttrLowpc).(uint64)
	var err error
	if u.data, err = dwarf.New(p.abbrev, nil, nil, p.info, nil, nil, nil, p.str); err != nil {
		return nil, err
	}
	for name, b := range map[string][]byte{".debug_addr": u.addrs, ".debug_str_offsets": strOffsets, ".debug_rnglists": u.rangesOf} {
		if err := u.data.AddSection(name, b); err != nil {
			return nil, err
		}
	}
	half := debugSource{sections: map[string][]byte{"info": p.info}, order: s.order}
	for _, root := range roots {
		r := u.data.Reader()
		r.Seek(root)
		cu, err := r.Next()
		if err != nil || cu == nil || cu.Tag != dwarf.TagCompileUnit {
			continue // types
		}
		got, ok := uint64(0), false
		if version < 5 {
			got, ok = half.splitID(root, cu)
		} else if root >= 8 {
			got, ok = s.order.Uint64(p.info[root-8:]), true
		}
		if ok && got == id {
			u.cu = cu
			return u, nil
		}
	}
	return nil, errors.New("it is of another compilation")
}

// unitVersion is the DWARF version of the first unit.
func unitVersion(info []byte, order binary.ByteOrder) int {
	at := 4
	if len(info) >= 4 && order.Uint32(info) == math.MaxUint32 {
		at = 12
	}
	if at+2 > len(info) {
		return 0
	}
	return int(order.Uint16(info[at:]))
}

// behind is what there is of a section from an offset on.
func behind(b []byte, off int64) []byte {
	if off < 0 || off > int64(len(b)) {
		return nil
	}
	return b[off:]
}

// headerSize is that of a table with 32-bit offsets, or 8 more of one with 64.
func headerSize(b []byte, order binary.ByteOrder, size int64) int64 {
	if len(b) >= 4 && order.Uint32(b) == math.MaxUint32 {
		return size + 8
	}
	return size
}

// standardForms writes the forms of indirect addresses and strings, in place, as DWARF 5 has them.
func standardForms(abbrev []byte) {
	const gnuAddrIndex, gnuStrIndex, addrx, strx, implicitConst = 0x1f01, 0x1f02, 0x1b, 0x1a, 0x21
	c := cursor{b: abbrev}
	for c.err == nil && len(c.b) > 0 {
		if c.uleb() == 0 {
			continue // end of a table
		}
		c.uleb() // tag
		c.skip(1)
		for c.err == nil {
			attr := c.uleb()
			at := c.b
			form := c.uleb()
			if attr == 0 && form == 0 {
				break
			}
			switch {
			case form == implicitConst:
				c.uleb()
			case form == gnuAddrIndex && len(at)-len(c.b) == 2:
				at[0], at[1] = addrx|0x80, 0
			case form == gnuStrIndex && len(at)-len(c.b) == 2:
				at[0], at[1] = strx|0x80, 0
			}
		}
	}
}

// cursor reads bytes one after the other.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) uleb() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

// sleb reads a signed LEB128 number.
func (c *cursor) sleb() (v int64) {
	for shift := 0; ; shift += 7 {
		b := c.skip(1)
		if c.err != nil {
			return 0
		}
		if shift < 64 {
			v |= int64(b[0]&0x7f) << shift
		}
		if b[0] < 0x80 {
			if b[0]&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// address reads one of eight bytes, 0 if there are fewer.
func (c *cursor) address(order binary.ByteOrder) uint64 {
	if b := c.skip(8); c.err == nil {
		return order.Uint64(b)
	}
	return 0
}

func (c *cursor) skip(n int) []byte {
	if n > len(c.b) {
		c.fail()
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) fail() { c.b, c.err = nil, errors.New("cut off") }

// A dwoPackage is a .dwp file: the split units of a whole program (DWARF 5, section 7.3.5).
type dwoPackage struct {
	sections map[string]io.ReaderAt
	sizes    map[string]uint64
	str      []byte
	rows     map[uint64]int // by the units' numbers
	columns  []uint32       // which section each is of
	offsets  []uint32       // a row a unit
	lengths  []uint32
	version  int
}

// Sections as an index of a package has them, by version.
var packageColumns = map[int]map[uint32]string{
	2: {1: ".debug_info.dwo", 3: ".debug_abbrev.dwo", 6: ".debug_str_offsets.dwo"},
	5: {1: ".debug_info.dwo", 3: ".debug_abbrev.dwo", 5: ".debug_loclists.dwo", 6: ".debug_str_offsets.dwo", 8: ".debug_rnglists.dwo"},
}

// packed is a unit of the package beside the program or its debug file, nil if there is none.
func (s *debugSource) packed(id uint64) (*splitParts, error) {
	if !s.lookedForPackage {
		s.lookedForPackage = true
		for _, name := range s.names {
			for _, name := range []string{name + ".dwp", strings.TrimSuffix(name, ".debug") + ".dwp"} {
				f, err := s.openELF(name)
				if err != nil {
					continue
				}
				if s.pack, s.badPackage = readPackage(f); s.badPackage != nil {
					s.badPackage = fmt.Errorf("%s: %w", name, s.badPackage)
				}
				break
			}
			if s.pack != nil {
				break
			}
		}
	}
	if s.pack == nil {
		return nil, s.badPackage
	}
	return s.pack.unit(id)
}

func readPackage(f *elf.File) (*dwoPackage, error) {
	sec := f.Section(".debug_cu_index")
	if sec == nil {
		return nil, errors.New("has no index")
	}
	b, err := objfile.Section(sec, mostDebug)
	if err != nil {
		return nil, err
	}
	if len(b) < 16 {
		return nil, errors.New("its index is cut off")
	}
	p := &dwoPackage{sections: map[string]io.ReaderAt{}, sizes: map[string]uint64{}, rows: map[uint64]int{}}
	word := func(i int) uint32 { return f.ByteOrder.Uint32(b[4*i:]) }
	p.version = int(f.ByteOrder.Uint16(b)) // of four bytes in version 2
	columns, units, slots := uint64(word(1)), uint64(word(2)), uint64(word(3))
	if packageColumns[p.version] == nil {
		return nil, fmt.Errorf("index version %d is not known", p.version)
	}
	if 16+12*slots+4*columns+8*columns*units > uint64(len(b)) || units > slots {
		return nil, errors.New("its index is cut off")
	}
	hashes, rows := b[16:], b[16+8*slots:]
	for i := range slots {
		if row := f.ByteOrder.Uint32(rows[4*i:]); row != 0 && uint64(row) <= units {
			p.rows[f.ByteOrder.Uint64(hashes[8*i:])] = int(row) - 1
		}
	}
	rest := rows[4*slots:]
	take := func(n uint64) []uint32 {
		out := make([]uint32, n)
		for i := range out {
			out[i] = f.ByteOrder.Uint32(rest[4*i:])
		}
		rest = rest[4*n:]
		return out
	}
	p.columns, p.offsets, p.lengths = take(columns), take(columns*units), take(columns*units)
	for _, name := range packageColumns[p.version] {
		if sec := f.Section(name); sec != nil && sec.Flags&elf.SHF_COMPRESSED == 0 && sec.Type != elf.SHT_NOBITS {
			p.sections[name], p.sizes[name] = sec, sec.Size
		} else if sec != nil {
			whole, err := objfile.Section(sec, mostDebug)
			if err != nil {
				return nil, err
			}
			p.sections[name], p.sizes[name] = bytes.NewReader(whole), uint64(len(whole))
		}
	}
	if sec := f.Section(".debug_str.dwo"); sec != nil {
		if p.str, err = objfile.Section(sec, mostDebug); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// unit is what the package has of one.
func (p *dwoPackage) unit(id uint64) (*splitParts, error) {
	row, ok := p.rows[id]
	if !ok {
		return nil, nil
	}
	parts := &splitParts{str: p.str}
	names := parts.names()
	for i, column := range p.columns {
		name := packageColumns[p.version][column]
		off, size := uint64(p.offsets[row*len(p.columns)+i]), uint64(p.lengths[row*len(p.columns)+i])
		for at, n := range names {
			if n != name {
				continue
			}
			if off+size > p.sizes[name] || p.sections[name] == nil {
				return nil, fmt.Errorf("package: %s of a unit is cut off", name)
			}
			if size == 0 {
				continue
			}
			var last [1]byte // room is made when there is a last byte
			if _, err := p.sections[name].ReadAt(last[:], int64(off+size-1)); err != nil {
				return nil, fmt.Errorf("package: %w", err)
			}
			*at = make([]byte, size)
			if _, err := p.sections[name].ReadAt(*at, int64(off)); err != nil && !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("package: %w", err)
			}
		}
	}
	return parts, nil
}

// ranges are those of an entry of the split half: of a list, which counts from the skeleton's base.
func (u *splitUnit) ranges(e *dwarf.Entry, order binary.ByteOrder) ([][2]uint64, error) {
	var off int64
	switch v := e.Val(dwarf.AttrRanges).(type) {
	case int64:
		off = v
	case uint64: // by index: resolved
		off = int64(v)
	default:
		return u.data.Ranges(e)
	}
	c := cursor{b: behind(u.rangesOf, off)}
	if u.version < 5 {
		return c.rangeList(u.base, order)
	}
	return c.rangeList5(u.base, u.addrs, order)
}

// rangeList reads a list of before DWARF 5 (DWARF 4, section 2.17.3).
func (c *cursor) rangeList(base uint64, order binary.ByteOrder) (out [][2]uint64, err error) {
	for {
		b := c.skip(16)
		if c.err != nil {
			return nil, c.err
		}
		from, to := order.Uint64(b), order.Uint64(b[8:])
		switch {
		case from == 0 && to == 0:
			return out, nil
		case from == math.MaxUint64:
			base = to
		default:
			out = append(out, [2]uint64{base + from, base + to})
		}
	}
}

// rangeList5 reads one of DWARF 5 (section 7.25).
func (c *cursor) rangeList5(base uint64, addrs []byte, order binary.ByteOrder) (out [][2]uint64, err error) {
	addr := func() uint64 { return c.address(order) }
	indexed := func() uint64 {
		i := c.uleb()
		if i >= uint64(len(addrs))/8 {
			c.fail()
			return 0
		}
		return order.Uint64(addrs[8*i:])
	}
	for {
		op := c.skip(1)
		if c.err != nil {
			return nil, c.err
		}
		switch op[0] {
		case 0: // end
			return out, nil
		case 1:
			base = indexed()
		case 2:
			from := indexed()
			out = append(out, [2]uint64{from, indexed()})
		case 3:
			from := indexed()
			out = append(out, [2]uint64{from, from + c.uleb()})
		case 4:
			from := c.uleb()
			out = append(out, [2]uint64{base + from, base + c.uleb()})
		case 5:
			base = addr()
		case 6:
			from := addr()
			out = append(out, [2]uint64{from, addr()})
		case 7:
			from := addr()
			out = append(out, [2]uint64{from, from + c.uleb()})
		default:
			return nil, fmt.Errorf("range list: entry of kind %d", op[0])
		}
	}
}
