package pprofout

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// A debugSource is the debug information of a file, and where other files are that it refers to.
type debugSource struct {
	elf        *elf.File
	names      []string // by which the file is known, for what lies beside it
	debugRoots []debugRoot
	limit      *timeLimit

	data      *dwarf.Data
	idle      map[uint32]bool           // units that data lacks, see loadFor
	whole     *dwarf.Data               // see wholeData
	roots     []dwarf.Offset            // of the units that data has
	units     []unitRange               // see findUnits
	read      map[dwarf.Offset]*unit    // see unitOf
	byAddress map[uint64]staticVariable // see statics
	sections  map[string][]byte
	order     binary.ByteOrder

	lookedForAlt, lookedForPackage bool
	alt                            *alternate
	noAlt                          error // why it is not read, if something is in it
	pack                           *dwoPackage
	badPackage                     error
}

// lookupDWARF finds functions, lines and inlined calls of sorted addresses
// from a file's debug information. A file that has none finds nothing.
//
// It looks at the root of every compile unit that may hold an address, and
// into those that do.
func lookupDWARF(s *debugSource, pcs []uint64, found map[uint64][]model.Line) error {
	s.limit = newTimeLimit(s.elf)
	if err := s.loadFor(pcs); s.data == nil || err != nil {
		return err
	}
	var damaged, apart failures
	done := make(map[uint64]bool)
	r := s.data.Reader()
	unnamed := 0 // by what is shared with other files
	for _, root := range s.roots {
		if len(pcs) == 0 {
			break
		}
		if s.limit.over() {
			return errTooLong
		}
		r.Seek(root)
		cu, err := r.Next()
		if err == nil && cu != nil && (cu.Tag == dwarf.TagCompileUnit || cu.Tag == dwarf.TagSkeletonUnit) {
			var mine []uint64
			mine, err = covered(s.data.Ranges, cu, pcs)
			mine = slices.DeleteFunc(mine, func(pc uint64) bool { return done[pc] })
			if len(mine) > 0 {
				u, errSplit := s.unit(root, cu, mine)
				apart.add(errSplit)
				err = errors.Join(err, u.lookup(found))
				unnamed += u.unnamed
				// Several units can claim an address: each that was compiled
				// with a template or inline function of which the linker kept
				// one copy.
				for pc := range u.chains {
					done[pc] = true
				}
				if len(done) > len(pcs)/2 {
					pcs = slices.DeleteFunc(slices.Clone(pcs), func(pc uint64) bool { return done[pc] })
					clear(done)
				}
			}
		}
		if err != nil {
			damaged.add(fmt.Errorf("compile unit at %#x: %w", root, err))
		}
	}
	err := damaged.err("%d damaged compile units, the first: %w")
	if apart.n > 0 {
		err = errors.Join(err, nameless{apart.err("inlined calls are missing of %d compile units whose split debug information is not to be had, the first: %w")})
	}
	if unnamed > 0 {
		err = errors.Join(err, noNames("%d inlined calls without a name: %w", unnamed, s.noAlt))
	}
	return err
}

// failures are several of one kind.
type failures struct {
	n     int
	first error
}

func (f *failures) add(err error) {
	if err == nil {
		return
	}
	if f.n++; f.n == 1 {
		f.first = err
	}
}

func (f *failures) err(text string) error {
	if f.n == 0 {
		return nil
	}
	return fmt.Errorf(text, f.n, f.first)
}

// unit is what there is of a unit to look addresses up in: without functions if they were left in another file
// that is not there, which the error says.
func (s *debugSource) unit(root dwarf.Offset, cu *dwarf.Entry, pcs []uint64) (*unit, error) {
	u := &unit{source: s, data: s.data, cu: cu, lineCU: cu, ranges: s.data.Ranges, pcs: pcs, rows: map[uint64]position{}, chains: map[uint64][]scope{}}
	if splitName(cu) == "" {
		return u, nil
	}
	half, err := s.split(root, cu)
	if err != nil {
		return u, err
	}
	u.data, u.cu, u.half = half.data, half.cu, half
	u.ranges = func(e *dwarf.Entry) ([][2]uint64, error) { return half.ranges(e, s.order) }
	return u, nil
}

// load reads the sections that a look-up needs; those of variables and
// their types' indexes, about half of the whole, stay on the disk. data is
// nil if there is nothing to read.
func (s *debugSource) load() error { return s.loadFor(nil) }

// loadFor is load for what is looked up at sorted addresses only: data may lack units that have none of them. nil is for all.
func (s *debugSource) loadFor(pcs []uint64) error {
	f := s.elf
	s.order = f.ByteOrder
	if f.Section(".zdebug_info") != nil {
		return noNames("compressed in the way of before 2015, not read: see objcopy --decompress-debug-sections")
	}
	if s := f.Section(".debug_info"); s == nil || s.Type == elf.SHT_NOBITS {
		return nil
	}
	var err error
	s.sections = map[string][]byte{}
	names := []string{"abbrev", "info", "line", "ranges", "str", "addr", "line_str", "str_offsets", "rnglists"}
	if pcs != nil {
		names = append(names, "aranges")
	}
	for _, name := range names {
		sec := f.Section(".debug_" + name)
		if sec == nil || sec.Type == elf.SHT_NOBITS {
			continue
		}
		if s.sections[name], err = objfile.Section(sec, mostDebug); err != nil {
			return err
		}
	}
	s.idle = idleUnits(s.sections["aranges"], s.order, pcs)
	if s.data, err = newDWARF(s.sections, s.idle, s.order); err != nil {
		return err
	}
	s.roots = unitRoots(s.sections["info"], s.order, s.idle)
	return nil
}

// wholeData has all units.
func (s *debugSource) wholeData() (*dwarf.Data, error) {
	if s.whole == nil {
		d, err := newDWARF(s.sections, nil, s.order)
		if err != nil {
			return nil, err
		}
		s.whole = d
	}
	return s.whole, nil
}

// mostDebug bounds each section of debug information.
const mostDebug = 2 << 30

// unitRoots walks the headers of .debug_info (DWARF 5, section 7.5.1) to the
// offsets of each unit's first entry, but for idle ones. The package dwarf goes from unit to unit
// only by reading what is in between.
func unitRoots(info []byte, order binary.ByteOrder, idle map[uint32]bool) []dwarf.Offset {
	const unitType, splitType, skeleton, splitCompile = 2, 6, 4, 5
	var roots []dwarf.Offset
	for at := 0; at+12 < len(info); {
		size, offsetLen := uint64(order.Uint32(info[at:])), 4
		p := at + 4
		if size == 0xffffffff { // 64-bit DWARF
			size, offsetLen = order.Uint64(info[p:]), 8
			p += 8
		}
		next := uint64(p) + size
		if size == 0 || next > uint64(len(info)) || next < uint64(p) {
			break // damaged; dwarf.New has refused it before
		}
		if p+3 > len(info) {
			break
		}
		version, kind := order.Uint16(info[p:]), info[p+2]
		switch {
		case version < 5:
			p += 2 + offsetLen + 1
		case kind == unitType || kind == splitType:
			p += 4 + offsetLen + 8 + offsetLen
		case kind == skeleton || kind == splitCompile:
			p += 4 + offsetLen + 8
		default:
			p += 4 + offsetLen
		}
		if uint64(p) < next && !idle[uint32(at)] {
			roots = append(roots, dwarf.Offset(p))
		}
		at = int(next)
	}
	return roots
}

// covered is those of the sorted addresses that lie in an entry's ranges.
func covered(rangesOf func(*dwarf.Entry) ([][2]uint64, error), e *dwarf.Entry, pcs []uint64) ([]uint64, error) {
	ranges, err := rangesOf(e)
	if err != nil {
		return nil, err
	}
	ranges = slices.DeleteFunc(ranges, func(r [2]uint64) bool { return r[0] == 0 || r[0] >= r[1] }) // a function that the linker dropped
	slices.SortFunc(ranges, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	var in []uint64
	for _, r := range ranges {
		if len(in) > 0 {
			r[0] = max(r[0], in[len(in)-1]+1) // they may overlap
		}
		from, _ := slices.BinarySearch(pcs, r[0])
		to, _ := slices.BinarySearch(pcs, r[1])
		if from < to {
			in = append(in, pcs[from:to]...)
		}
	}
	return in, nil
}

type position struct {
	file string
	line int
}

// A scope is a function, or a call that was inlined into the scope before it.
type scope struct {
	entry *dwarf.Entry
	call  position // where the inlined call was
}

// A unit is one compile unit and what is looked up in it.
type unit struct {
	source  *debugSource
	data    *dwarf.Data
	cu      *dwarf.Entry
	lineCU  *dwarf.Entry // has the lines, in the source
	half    *splitUnit   // that data and cu are of; nil of a whole unit
	ranges  func(*dwarf.Entry) ([][2]uint64, error)
	pcs     []uint64 // sorted
	files   []*dwarf.LineFile
	rows    map[uint64]position
	chains  map[uint64][]scope // outermost first
	unnamed int                // inlined calls, their names being in a file that is not there
}

func (u *unit) lookup(found map[uint64][]model.Line) error {
	errLines := u.readLines()
	// Functions inside of others are rare (Fortran, GNU C), and reading every
	// body for their sake takes long: only if something is missing.
	errScopes := u.readFunctions(false)
	if len(u.chains) < len(u.pcs) {
		errScopes = errors.Join(errScopes, u.readFunctions(true))
	}
	for _, pc := range u.pcs {
		at, hasLine := u.rows[pc]
		chain := u.chains[pc]
		if len(chain) == 0 {
			if hasLine {
				found[pc] = []model.Line{{File: at.file, Line: at.line}}
			}
			continue
		}
		var lines []model.Line
		for i := len(chain) - 1; i >= 0; i-- {
			l := u.name(chain[i].entry)
			l.File, l.Line = at.file, at.line
			if l.Function == "" && i > 0 {
				l.Function = "[inlined, name not found]"
				u.unnamed++
			}
			lines = append(lines, l)
			at = chain[i].call
		}
		found[pc] = lines
	}
	return errors.Join(errLines, errScopes)
}

// readLines runs the line number program once for all addresses.
func (u *unit) readLines() error {
	lr, err := u.source.data.LineReader(u.lineCU)
	if err != nil || lr == nil {
		return err
	}
	u.files = lr.Files()
	u.mendName()
	var prev, row dwarf.LineEntry
	inSequence, dropped := false, false
	for {
		if err := lr.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if u.source.limit.tick() {
			return errTooLong
		}
		if !inSequence {
			dropped = row.Address == 0
		} else if !dropped && prev.Address < row.Address {
			i, _ := slices.BinarySearch(u.pcs, prev.Address)
			for ; i < len(u.pcs) && u.pcs[i] < row.Address; i++ {
				at := position{line: prev.Line}
				if prev.File != nil {
					at.file = prev.File.Name
				}
				u.rows[u.pcs[i]] = at
			}
		}
		prev, inSequence = row, !row.EndSequence
	}
	u.files = lr.Files() // the program can add some
	return nil
}

// mendName undoes what debug/dwarf does to the unit's own file in DWARF 5 if
// its name is absolute, as clang writes it: the directory is put before it all
// the same.
func (u *unit) mendName() {
	name, _ := u.cu.Val(dwarf.AttrName).(string)
	dir, _ := u.lineCU.Val(dwarf.AttrCompDir).(string)
	if !path.IsAbs(name) || dir == "" {
		return
	}
	for _, f := range u.files {
		if f != nil && f.Name == path.Join(dir, name) {
			f.Name = name
		}
	}
}

// readFunctions finds each address's function; deep looks into functions that
// do not hold it too.
func (u *unit) readFunctions(deep bool) error {
	r := u.data.Reader()
	r.Seek(u.cu.Offset)
	if e, err := r.Next(); err != nil || !e.Children {
		return err
	}
	for depth := 1; depth > 0; {
		e, err := r.Next()
		if err != nil || e == nil {
			return err
		}
		if u.source.limit.tick() {
			return errTooLong
		}
		switch e.Tag {
		case 0:
			depth--
			continue
		case dwarf.TagSubprogram:
			in, err := covered(u.ranges, e, u.pcs)
			if err != nil {
				return err
			}
			if len(in) > 0 {
				if err := u.enter(r, e, in, nil, position{}, 0); err != nil {
					return err
				}
				continue
			}
			if !deep {
				if err := u.skip(r, e); err != nil {
					return err
				}
				continue
			}
		case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType:
		default:
			if !deep {
				if err := u.skip(r, e); err != nil {
					return err
				}
				continue
			}
		}
		if e.Children {
			depth++
		}
	}
	return nil
}

// maxNesting bounds the recursion into blocks and inlined calls: a damaged
// file must not exhaust the stack.
const maxNesting = 1000

// enter records e as the next scope of the addresses in it and reads its
// children.
func (u *unit) enter(r *dwarf.Reader, e *dwarf.Entry, pcs []uint64, outer []scope, call position, nesting int) error {
	if nesting > maxNesting {
		return fmt.Errorf("entries nested more than %d deep", maxNesting)
	}
	chain := outer
	if e.Tag != dwarf.TagLexDwarfBlock {
		chain = append(slices.Clip(outer), scope{e, call})
		for _, pc := range pcs {
			u.chains[pc] = chain
		}
	}
	if !e.Children {
		return nil
	}
	for {
		c, err := r.Next()
		if err != nil {
			return err
		}
		if c == nil || c.Tag == 0 {
			return nil
		}
		if u.source.limit.tick() {
			return errTooLong
		}
		inside := pcs
		outer := chain
		switch c.Tag {
		case dwarf.TagInlinedSubroutine, dwarf.TagSubprogram:
			if inside, err = covered(u.ranges, c, pcs); err != nil {
				return err
			}
			if c.Tag == dwarf.TagSubprogram {
				outer = nil
			}
		case dwarf.TagLexDwarfBlock:
			// A block without ranges of its own is still a parent.
			if c.AttrField(dwarf.AttrLowpc) != nil || c.AttrField(dwarf.AttrRanges) != nil {
				if inside, err = covered(u.ranges, c, pcs); err != nil {
					return err
				}
			}
		default:
			inside = nil
		}
		if len(inside) == 0 {
			if err := u.skip(r, c); err != nil {
				return err
			}
			continue
		}
		if err := u.enter(r, c, inside, outer, u.callSite(c), nesting+1); err != nil {
			return err
		}
	}
}

// skip goes to the entry after e's children. dwarf's own function for it
// recurses, as deep as the file says.
func (u *unit) skip(r *dwarf.Reader, e *dwarf.Entry) error {
	if !e.Children {
		return nil
	}
	if next, ok := e.Val(dwarf.AttrSibling).(dwarf.Offset); ok && next > e.Offset {
		r.Seek(next)
		return nil
	}
	for depth := 1; depth > 0; {
		c, err := r.Next()
		if err != nil || c == nil {
			return err
		}
		if u.source.limit.tick() {
			return errTooLong
		}
		if c.Tag == 0 {
			depth--
		} else if c.Children {
			depth++
		}
	}
	return nil
}

func (u *unit) callSite(e *dwarf.Entry) position {
	var p position
	if n, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
		p.line = int(n)
	}
	if i, ok := e.Val(dwarf.AttrCallFile).(int64); ok && i >= 0 && i < int64(len(u.files)) && u.files[i] != nil {
		p.file = u.files[i].Name
	}
	return p
}

// name follows a function's entry to those that declare it, which may be in a file shared with others.
func (u *unit) name(e *dwarf.Entry) model.Line {
	var l model.Line
	var plain string
	data := u.data
	text := func(attr dwarf.Attr) (string, bool) {
		if s, ok := e.Val(attr).(string); ok {
			return s, true
		}
		if off, ok := offsetIn(e, attr, dwarf.ClassStringAlt); ok {
			if alt, err := u.source.alternate(); err == nil {
				return alt.text(off), true
			}
		}
		return "", false
	}
	const maxHops = 8 // out-of-line copy, abstract instance, declaration in a class
	for range maxHops {
		if s, ok := text(dwarf.AttrLinkageName); ok && l.SystemName == "" {
			l.SystemName = s
		}
		if s, ok := text(dwarf.AttrName); ok && plain == "" {
			plain = s
		}
		if n, ok := e.Val(dwarf.AttrDeclLine).(int64); ok && l.StartLine == 0 {
			l.StartLine = int(n)
		}
		var ok bool
		if data, e, ok = u.declaration(data, e); !ok {
			break
		}
	}
	if l.SystemName == "" {
		l.SystemName = plain
	}
	l.Function = display(l.SystemName)
	if l.Function == l.SystemName && plain != "" {
		l.Function = plain // not mangled: another label for a C function, such as __GI_memcpy
	}
	return l
}

// declaration is the entry that one refers to for what it does not say itself, and the data that it is in.
func (u *unit) declaration(data *dwarf.Data, e *dwarf.Entry) (*dwarf.Data, *dwarf.Entry, bool) {
	for _, attr := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		next, ok := e.Val(attr).(dwarf.Offset)
		if off, shared := offsetIn(e, attr, dwarf.ClassReferenceAlt); shared {
			alt, err := u.source.alternate()
			if err != nil {
				return data, e, false
			}
			data, next, ok = alt.data, dwarf.Offset(off), true
		}
		if !ok {
			continue
		}
		decl, err := entryAt(data, next)
		if err != nil && data == u.source.data && len(u.source.idle) > 0 { // it may be of an idle unit
			if data, err = u.source.wholeData(); err == nil {
				decl, err = entryAt(data, next)
			}
		}
		if err != nil || decl == nil {
			return data, e, false
		}
		return data, decl, true
	}
	return data, e, false
}

func entryAt(data *dwarf.Data, at dwarf.Offset) (*dwarf.Entry, error) {
	r := data.Reader()
	r.Seek(at)
	return r.Next()
}
