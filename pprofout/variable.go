package pprofout

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"github.com/rdx-profiler/rdx/model"
	"github.com/rdx-profiler/rdx/sampler/objfile"
)

// A result is where code puts what a call has returned.
type result struct {
	kept     []keptIn // registers that have it
	slots    []int64  // of the frame, relative to the register that it is reached by
	static   uint64   // an address of the file, 0 for none
	returned bool     // it is handed on to the caller
}

// keptIn is a register, in DWARF's numbers, that has something from one address to another.
type keptIn struct {
	register uint8
	from, to uint64
}

const (
	resultCode     = 96 // bytes that are looked at behind a call
	resultRegister = 0  // DWARF's number of what a call returns its result in, on x86-64 and arm64
)

// x86Registers are DWARF's numbers of the registers of 64 bits, in the order of x86asm.
var x86Registers = [...]uint8{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

func x86Register(a x86asm.Arg) (uint8, bool) {
	r, ok := a.(x86asm.Reg)
	if !ok || r < x86asm.RAX || r > x86asm.R15 {
		return 0, false
	}
	return x86Registers[r-x86asm.RAX], true
}

// resultOf follows the result of the call that returns to pc through the code behind it, as far as that goes straight on.
func resultOf(code []byte, pc uint64) (out result) {
	now := map[uint8]int{resultRegister: 0} // register -> index in out.kept
	out.kept = []keptIn{{resultRegister, pc, pc}}
	has := func(a x86asm.Arg) bool {
		r, ok := x86Register(a)
		_, known := now[r]
		return ok && known
	}
	for len(code) > 0 && len(now) > 0 {
		i, err := x86asm.Decode(code, 64)
		if err != nil || i.Len == 0 {
			break
		}
		pc += uint64(i.Len)
		code = code[i.Len:]
		switch {
		case i.Op == x86asm.RET:
			_, out.returned = now[resultRegister]
			return out
		case i.Op == x86asm.JMP || i.Op == x86asm.SYSCALL:
			return out
		case i.Op == x86asm.CALL: // a constructor: it keeps rbx, rbp and r12 to r15
			for r := range now {
				if r != 3 && r != 6 && r < 12 {
					delete(now, r)
				}
			}
		case i.Op == x86asm.MOV && has(i.Args[1]):
			if to, ok := x86Register(i.Args[0]); ok {
				now[to] = len(out.kept)
				out.kept = append(out.kept, keptIn{to, pc, pc})
			}
			m, ok := i.Args[0].(x86asm.Mem)
			switch {
			case !ok || m.Index != 0 || m.Segment != 0:
			case m.Base == x86asm.RIP && out.static == 0:
				out.static = pc + uint64(m.Disp)
			case m.Base == x86asm.RBP:
				out.slots = append(out.slots, m.Disp)
			}
		case i.Op == x86asm.CMP || i.Op == x86asm.TEST || i.Op == x86asm.PUSH:
		default:
			if to, ok := i.Args[0].(x86asm.Reg); ok { // it has something else then
				delete(now, wholeRegister(to))
			}
		}
		for _, k := range now {
			out.kept[k].to = pc
		}
	}
	return out
}

// wholeRegister is DWARF's number of the register that this one is, or is a part of.
func wholeRegister(r x86asm.Reg) uint8 {
	for _, first := range []x86asm.Reg{x86asm.RAX, x86asm.EAX, x86asm.AX} {
		if r >= first && r < first+16 {
			return x86Registers[r-first]
		}
	}
	return 0xff
}

// A scopeOf is what DWARF knows at an address: the variables, and from where the frame's are counted.
type scopeOf struct {
	variables []*dwarf.Entry
	base      []byte // an expression
	low       uint64 // where the innermost function begins, 0 if that is not known
}

// variables are those of the functions and blocks that hold an address.
func (u *unit) variables(pc uint64) (out scopeOf, err error) {
	r := u.data.Reader()
	r.Seek(u.cu.Offset)
	if e, err := r.Next(); err != nil || e == nil || !e.Children {
		return out, err
	}
	return out, u.collect(r, []uint64{pc}, false, &out, 0)
}

func (u *unit) collect(r *dwarf.Reader, pc []uint64, within bool, to *scopeOf, nesting int) error {
	if nesting > maxNesting {
		return fmt.Errorf("entries nested more than %d deep", maxNesting)
	}
	for {
		c, err := r.Next()
		if err != nil || c == nil || c.Tag == 0 {
			return err
		}
		if u.source.limit.tick() {
			return errTooLong
		}
		enters, inside := false, within
		switch c.Tag {
		case dwarf.TagVariable, dwarf.TagFormalParameter:
			if within {
				to.variables = append(to.variables, c)
			}
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
			in, err := covered(u.ranges, c, pc)
			if err != nil {
				return err
			}
			whole := c.AttrField(dwarf.AttrLowpc) == nil && c.AttrField(dwarf.AttrRanges) == nil
			enters = len(in) > 0 || c.Tag == dwarf.TagLexDwarfBlock && whole && within
			inside = true
			if base, ok := c.Val(dwarf.AttrFrameBase).([]byte); ok && enters {
				to.base = base
				to.low, _ = c.Val(dwarf.AttrLowpc).(uint64)
			}
		case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType:
			enters = !within
		}
		switch {
		case !enters:
			err = u.skip(r, c)
		case c.Children:
			err = u.collect(r, pc, inside, to, nesting+1)
		}
		if err != nil {
			return err
		}
	}
}

// holds says whether a variable is where a result was put.
func (u *unit) holds(v *dwarf.Entry, base []byte, at *result) bool {
	const opReg0, opRegLast, opFrame, opBreg6, opReg6, opCFA = 0x50, 0x6f, 0x91, 0x76, 0x56, 0x9c
	f := v.AttrField(dwarf.AttrLocation)
	if f == nil {
		return false
	}
	if e, ok := f.Val.([]byte); ok {
		if len(e) < 2 || e[0] != opFrame || len(base) == 0 {
			return false
		}
		c := cursor{b: e[1:]}
		offset := c.sleb()
		if c.err != nil || len(c.b) > 0 {
			return false
		}
		switch {
		case base[0] == opCFA && len(base) == 1:
			offset += 16 // behind what the call and the prologue have pushed
		case base[0] == opReg6 && len(base) == 1:
		case base[0] == opBreg6:
			c := cursor{b: base[1:]}
			offset += c.sleb()
		default:
			return false
		}
		return slices.Contains(at.slots, offset)
	}
	for _, e := range u.locations(f) {
		if len(e.code) != 1 || e.code[0] < opReg0 || e.code[0] > opRegLast {
			continue
		}
		for _, k := range at.kept {
			if k.register == e.code[0]-opReg0 && e.from >= k.from && e.from <= k.to {
				return true
			}
		}
	}
	return false
}

// A location is where a variable is while the program is between two addresses.
type location struct {
	from, to uint64
	code     []byte
}

// locations are those of a list that an attribute refers to; none if it cannot be read.
func (u *unit) locations(f *dwarf.Field) (out []location) {
	at, ok := f.Val.(int64)
	if i, indexed := f.Val.(uint64); indexed { // as debug/dwarf has an index
		at, ok = int64(i), i < 1<<32
	}
	if !ok || at < 0 {
		return nil
	}
	if u.half != nil {
		lists := behind(u.half.locLists, headerSize(u.half.locLists, u.source.order, 12))
		if f.Class == dwarf.ClassLocList && 4*at+4 <= int64(len(lists)) {
			at = int64(u.source.order.Uint32(lists[4*at:]))
			return u.locationList(behind(lists, at), u.half.base)
		}
		return nil // DWARF 4's lists are in a form of their own
	}
	start, _ := u.cu.Val(dwarf.AttrLowpc).(uint64)
	if data := u.source.section(u.source.elf, "loclists"); len(data) > 0 {
		if f.Class == dwarf.ClassLocList {
			base, _ := u.cu.Val(dwarf.AttrLoclistsBase).(int64)
			slot := base + 4*at
			if base <= 0 || slot < 0 || slot+4 > int64(len(data)) {
				return nil
			}
			at = base + int64(u.source.order.Uint32(data[slot:]))
		}
		if at < int64(len(data)) {
			return u.locationList(data[at:], start)
		}
		return nil
	}
	data := u.source.section(u.source.elf, "loc")
	if at >= int64(len(data)) {
		return nil
	}
	return oldLocationList(data[at:], u.source.order, start)
}

// locationList reads one of DWARF 5 (section 7.7.3).
func (u *unit) locationList(data []byte, base uint64) (out []location) {
	c := cursor{b: data}
	number, address := c.uleb, func() uint64 { return c.address(u.source.order) }
	indexed := func() uint64 {
		addr, _ := u.address(number())
		return addr
	}
	for len(out) < 1000 {
		kind := c.skip(1)
		if c.err != nil {
			return out
		}
		var l location
		switch kind[0] {
		case 0:
			return out
		case 1:
			base = indexed()
			continue
		case 6:
			base = address()
			continue
		case 9: // GNU's views
			number()
			number()
			continue
		case 2:
			l.from = indexed()
			l.to = indexed()
		case 3:
			l.from = indexed()
			l.to = l.from + number()
		case 4:
			l.from = base + number()
			l.to = base + number()
		case 5:
		case 7:
			l.from = address()
			l.to = address()
		case 8:
			l.from = address()
			l.to = l.from + number()
		default:
			return out
		}
		n := number()
		if n > uint64(len(c.b)) {
			return out
		}
		l.code = slices.Clone(c.skip(int(n)))
		out = append(out, l)
	}
	return out
}

// oldLocationList reads one of DWARF 4 and before.
func oldLocationList(data []byte, order binary.ByteOrder, base uint64) (out []location) {
	for len(data) >= 16 && len(out) < 1000 {
		from, to := order.Uint64(data), order.Uint64(data[8:])
		data = data[16:]
		switch {
		case from == 0 && to == 0:
			return out
		case from == ^uint64(0):
			base = to
			continue
		}
		if len(data) < 2 || len(data) < 2+int(order.Uint16(data)) {
			return out
		}
		n := int(order.Uint16(data))
		out = append(out, location{base + from, base + to, data[2 : 2+n]})
		data = data[2+n:]
	}
	return out
}

// section is one of debug information that few ask for; empty if there is none or it can't be read.
func (s *debugSource) section(f *elf.File, name string) []byte {
	if data, ok := s.sections[name]; ok {
		return data
	}
	var data []byte
	if sec := f.Section(".debug_" + name); sec != nil && sec.Type != elf.SHT_NOBITS {
		data, _ = objfile.Section(sec, mostDebug)
	}
	s.sections[name] = data
	return data
}

// pointer says whether a variable is one.
func (u *unit) pointer(v *dwarf.Entry) bool {
	data := u.data
	const maxHops = 16 // of origins, typedefs and qualifiers
	for range maxHops {
		off, ok := v.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok {
			if data, v, ok = u.declaration(data, v); !ok {
				return false
			}
			continue
		}
		r := data.Reader()
		r.Seek(off)
		t, err := r.Next()
		if err != nil || t == nil {
			return false
		}
		switch t.Tag {
		case dwarf.TagPointerType, dwarf.TagReferenceType:
			return true
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType:
			v = t
		default:
			return false
		}
	}
	return false
}

// assigned finds the variable to which the result of the call that returns to pc, an address of the file, is assigned: "" if
// that is not to be seen; to is what it points to, nil if that is not known. returned says that it goes to the caller.
func (img *image) assigned(pc uint64) (name string, to dwarf.Type, returned bool) {
	at := result{kept: []keptIn{{resultRegister, pc, pc + 8}}}
	if img.elf.Machine == elf.EM_X86_64 {
		at = resultOf(img.code(pc, resultCode), pc)
	}
	if at.returned {
		return "", nil, true
	}
	if at.static != 0 {
		object, ok := objectOf(img.objects(), at.static)
		if !ok {
			return "", nil, false
		}
		if u := img.unitAt(pc - 1); u != nil {
			to, _ = u.pointeeOf(img, nil, at.static)
		}
		return display(object.Name()), to, false
	}
	u := img.unitAt(pc - 1)
	if u == nil {
		return "", nil, false
	}
	scope, err := u.variables(pc - 1)
	if err != nil {
		return "", nil, false
	}
	for _, v := range slices.Backward(scope.variables) { // the innermost first
		if u.holds(v, scope.base, &at) && u.pointer(v) {
			if name := u.name(v).Function; name != "" {
				return name, pointee(u.typeOf(v)), false
			}
		}
	}
	return "", nil, false
}

// code is what the file has at an address, up to n bytes.
func (img *image) code(pc uint64, n int) []byte {
	for _, p := range img.elf.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && pc >= p.Vaddr && pc-p.Vaddr < p.Filesz {
			out := make([]byte, n)
			n, _ := p.ReadAt(out, int64(pc-p.Vaddr))
			return out[:n]
		}
	}
	return nil
}

// nameVariable finds the variable that a block is assigned to where it is allocated, beyond functions that only hand it on, and
// what that points to.
func (s *symbolizer) nameVariable(site []*model.Location, b Binaries) (name string, to dwarf.Type) {
	const mostSites = 10000 // the others are known by their functions alone
	if s.sites++; s.sites > mostSites {
		return "", nil
	}
	for i, l := range site {
		function := ""
		if len(l.Lines) > 0 {
			function = l.Lines[0].Function
		}
		if handsOn(site, i, function) || !l.Mapping.IsFile() {
			continue
		}
		returned := false
		s.withKept(l.Mapping, b, func(img *image) error {
			if pc, ok := img.vaddr(l.Mapping, l.Address-1); ok {
				name, to, returned = img.assigned(pc + 1)
			}
			return nil
		})
		if !returned {
			return name, to
		}
	}
	return "", nil
}

// withKept is withImage for a file that is asked for again and again. What is wrong with it, its functions' names have told.
func (s *symbolizer) withKept(m *model.Mapping, b Binaries, f func(*image) error) {
	k := keyOf(m)
	img, known := s.kept[k]
	if s.kept == nil {
		s.kept = map[fileKey]*image{}
	}
	if !known {
		s.kept[k] = nil // until it has been read
		s.withImage(m, b, func(read *image) error { s.kept[k] = read; return nil })
		img = s.kept[k]
	}
	if img == nil {
		return
	}
	defer func() {
		if recover() != nil { // as in withImage
			s.kept[k] = nil
		}
	}()
	f(img)
}
