package pprofout

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"github.com/rdx-profiler/rdx/model"
)

// nameMembers says what threads take from each other, and what instructions fetch: which members of which struct. That is by the type of the variable, where the
// datum is static and the unit of the instruction declares it, or else by that of the pointer that the instruction goes by.
func (s *symbolizer) nameMembers(p *model.Profile, b Binaries) {
	type side struct {
		pc      *model.Location
		mapping *model.Mapping // of static data
		addr    uint64
	}
	of := func(stack []*model.Location, d *model.Data, behind uint64) (k side) {
		if len(stack) == 0 || !stack[0].Mapping.IsFile() {
			return k
		}
		k.pc = stack[0]
		if d != nil && d.Kind == model.DataStatic && d.Mapping.File == k.pc.Mapping.File {
			k.mapping, k.addr = d.Mapping, d.Address+behind
		}
		return k
	}
	known := map[side]string{}
	var asked questions
	ask := func(k side) {
		if _, ok := known[k]; ok || k.pc == nil || len(known) >= mostMembers {
			return
		}
		known[k] = ""
		asked = append(asked, question{k.pc.Mapping, func(img *image) error {
			if pc, ok := img.vaddr(k.pc.Mapping, k.pc.Address); ok {
				known[k] = img.member(pc, k.addr)
			}
			return nil
		}})
	}
	sides := func(r *model.Record) (use, written side) {
		w := r.Words()
		return of(r.Use, r.Data, 0), of(r.Reuse, r.Data, w.Written-w.Address)
	}
	var shared []*model.Record
	for i := range p.Records {
		if r := &p.Records[i]; sharing(r.Kind) {
			use, written := sides(r)
			ask(use)
			ask(written)
			shared = append(shared, r)
		}
	}
	// Those that fetch most first: not all may be named.
	var order []*model.Touch
	for i := range p.Touches {
		if t := &p.Touches[i]; t.Fetches > 0 {
			order = append(order, t)
		}
	}
	slices.SortStableFunc(order, func(a, b *model.Touch) int { return cmp.Compare(b.Fetches, a.Fetches) })
	for _, t := range order {
		ask(of(t.Use, t.Data, 0))
	}
	inParts, tell := partsOf(p)
	s.answer(append(asked, inParts...), b)
	tell()
	for _, r := range shared {
		use, written := sides(r)
		w := r.Words()
		w.Member, w.WrittenMember = known[use], known[written]
		r.SetWords(w)
	}
	for _, t := range order {
		m := known[of(t.Use, t.Data, 0)]
		if to := s.pointsTo[t.Data]; m == "" && to != nil && to.Size() > 0 { // a block has one or more of what it is assigned to
			m = memberOf(to, "", int64(t.Within%uint64(to.Size())))
		}
		if strings.Contains(m, " of ") { // an array's element is no member
			t.Member = m
		}
	}
}

// questions are about files.
type questions []question

type question struct {
	of  *model.Mapping
	ask func(*image) error
}

// answer asks one file after the other, and lets each go: the debug information of all of them may be several times the rest of rdx's memory.
func (s *symbolizer) answer(asked questions, b Binaries) {
	files := map[fileKey]questions{}
	var order []fileKey
	for _, q := range asked {
		k := keyOf(q.of)
		if files[k] == nil {
			order = append(order, k)
		}
		files[k] = append(files[k], q)
	}
	for _, k := range order {
		for _, q := range files[k] {
			s.withKept(q.of, b, q.ask)
		}
		delete(s.kept, k)
	}
}

// mostMembers are looked up of a profile: each takes walking a unit.
const mostMembers = 2000

// unitAt is the unit that holds an address of the file; nil if none is known, or it is split from the file and not to be had.
func (img *image) unitAt(pc uint64) *unit {
	s := img.debugInfo()
	if s.data == nil {
		return nil
	}
	if s.units == nil {
		s.findUnits()
	}
	i, _ := slices.BinarySearchFunc(s.units, pc+1, func(u unitRange, pc uint64) int { return cmp.Compare(u.from, pc) })
	if i == 0 || pc >= s.units[i-1].to {
		return nil
	}
	return s.unitOf(&s.units[i-1])
}

// unitOf is the unit of a range, which is kept: its other half may be large. nil if that is not to be had.
func (s *debugSource) unitOf(r *unitRange) *unit {
	u, known := s.read[r.root]
	if known {
		return u
	}
	u, err := s.unit(r.root, r.cu, nil)
	if err != nil {
		u = nil
	}
	if s.read == nil {
		s.read = map[dwarf.Offset]*unit{}
	}
	s.read[r.root] = u
	return u
}

// unitRange is a part of a unit's code.
type unitRange struct {
	from, to uint64
	root     dwarf.Offset
	cu       *dwarf.Entry
}

// findUnits finds whose code is where.
func (s *debugSource) findUnits() {
	s.units = []unitRange{}
	for _, root := range s.roots {
		r := s.data.Reader()
		r.Seek(root)
		cu, err := r.Next()
		if s.limit.tick() {
			return
		}
		if err != nil || cu == nil || cu.Tag != dwarf.TagCompileUnit && cu.Tag != dwarf.TagSkeletonUnit {
			continue
		}
		ranges, err := s.data.Ranges(cu)
		if err != nil {
			continue
		}
		for _, r := range ranges {
			if r[0] > 0 && r[0] < r[1] { // else a function that the linker dropped
				s.units = append(s.units, unitRange{r[0], r[1], root, cu})
			}
		}
	}
	slices.SortStableFunc(s.units, func(a, b unitRange) int { return cmp.Compare(a.from, b.from) })
}

// debugInfo is the file's, for what is asked of single addresses.
func (img *image) debugInfo() *debugSource {
	if img.variables == nil {
		file := img.elf
		if img.debug != nil {
			file = img.debug.elf
		}
		s := &debugSource{elf: file, names: img.names, debugRoots: img.debugRoots, limit: newTimeLimit(file)}
		if s.load() != nil {
			s.data = nil
		}
		img.variables = s
	}
	return img.variables
}

// member names what the instruction at pc touches: a member of a struct, or an element of an array, "" if that is not to be seen. addr is
// that of static data, else 0.
func (img *image) member(pc, addr uint64) string {
	u := img.unitAt(pc)
	if u == nil {
		return ""
	}
	scope, err := u.variables(pc)
	if err != nil {
		return ""
	}
	if addr != 0 {
		if object, ok := objectOf(img.objects(), addr); ok {
			if v := u.static(scope.variables, object.Value, object.Name()); v != nil {
				return memberOf(u.typeOf(v), display(u.name(v).Function), int64(addr-object.Value))
			}
		}
	}
	if img.elf.Machine != elf.EM_X86_64 {
		return ""
	}
	t, offset := u.operand(img, pc, scope)
	return memberOf(t, "", offset)
}

// static finds the variable that begins at an address, in a scope or outside of functions. Another unit's has no address here.
func (u *unit) static(scope []*dwarf.Entry, addr uint64, symbol string) (found *dwarf.Entry) {
	is := func(v *dwarf.Entry) bool {
		if at, ok := u.addressOf(v); ok {
			return at == addr
		}
		link, _ := v.Val(dwarf.AttrLinkageName).(string)
		name, _ := v.Val(dwarf.AttrName).(string)
		return v.Val(dwarf.AttrLocation) == nil && (link == symbol || link == "" && name == symbol)
	}
	for _, v := range scope {
		if is(v) {
			return v
		}
	}
	u.eachStatic(func(v *dwarf.Entry) bool {
		if is(v) {
			found = v
		}
		return found != nil
	})
	return found
}

// eachStatic calls f with the unit's variables outside of functions until it returns true.
func (u *unit) eachStatic(f func(*dwarf.Entry) bool) {
	r := u.data.Reader()
	r.Seek(u.cu.Offset)
	if e, err := r.Next(); err != nil || e == nil || !e.Children {
		return
	}
	for depth := 0; depth >= 0 && !u.source.limit.tick(); {
		e, err := r.Next()
		switch {
		case err != nil || e == nil:
			return
		case e.Tag == 0:
			depth--
		case e.Tag == dwarf.TagVariable && f(e):
			return
		case e.Tag == dwarf.TagNamespace && e.Children:
			depth++
		default:
			if u.skip(r, e) != nil {
				return
			}
		}
	}
}

// addressOf is where a variable is that has one place.
func (u *unit) addressOf(v *dwarf.Entry) (addr uint64, ok bool) {
	const opAddr, opAddrx, opGNUAddrIndex = 0x03, 0xa1, 0xfb
	e, _ := v.Val(dwarf.AttrLocation).([]byte)
	switch {
	case len(e) == 9 && e[0] == opAddr:
		return u.source.order.Uint64(e[1:]), true
	case len(e) > 1 && (e[0] == opAddrx || e[0] == opGNUAddrIndex):
		c := cursor{b: e[1:]}
		i := c.uleb()
		addr, ok = u.address(i)
		return addr, ok && c.err == nil && len(c.b) == 0
	}
	return 0, false
}

// address is that of an index.
func (u *unit) address(i uint64) (addr uint64, ok bool) {
	var all []byte
	if u.half != nil {
		all = u.half.addrs
	} else {
		first, _ := u.cu.Val(dwarf.AttrAddrBase).(int64)
		all = behind(u.source.section(u.source.elf, "addr"), first)
	}
	if i >= uint64(len(all))/8 {
		return 0, false
	}
	return u.source.order.Uint64(all[8*i:]), true
}

// typeOf is a variable's type, nil if it can't be read.
func (u *unit) typeOf(v *dwarf.Entry) dwarf.Type {
	data := u.data
	const maxHops = 8 // of origins
	for range maxHops {
		if off, ok := v.Val(dwarf.AttrType).(dwarf.Offset); ok {
			t, err := data.Type(off)
			if err != nil {
				return nil
			}
			return t
		}
		var ok bool
		if data, v, ok = u.declaration(data, v); !ok {
			return nil
		}
	}
	return nil
}

// operand finds the type that the pointer points to by which the instruction at pc goes, and how far behind that it goes.
func (u *unit) operand(img *image, pc uint64, scope scopeOf) (t dwarf.Type, offset int64) {
	const longest = 16 // bytes
	i, err := x86asm.Decode(img.code(pc, longest), 64)
	if err != nil {
		return nil, 0
	}
	at := result{}
	for _, a := range i.Args {
		if m, ok := a.(x86asm.Mem); ok && m.Index == 0 && m.Segment == 0 {
			if r, ok := x86Register(m.Base); ok {
				at, offset = img.loaded(scope.low, pc, m.Base), m.Disp
				at.kept = []keptIn{{r, 0, pc}}
				break
			}
		}
	}
	if at.kept == nil {
		return nil, 0
	}
	if at.static != 0 {
		if t, ok := u.pointeeOf(img, scope.variables, at.static); ok {
			return t, offset
		}
	}
	for k := len(scope.variables) - 1; k >= 0; k-- { // the innermost first
		v := scope.variables[k]
		if u.inRegister(v, at.kept[0].register, pc) || len(at.slots) > 0 && u.holds(v, scope.base, &at) {
			if t := pointee(u.typeOf(v)); t != nil {
				return t, offset
			}
		}
	}
	return nil, 0
}

// pointeeOf is what the static variable that begins at an address points to, nil if it is no pointer; ok says whether there is one.
func (u *unit) pointeeOf(img *image, scope []*dwarf.Entry, addr uint64) (t dwarf.Type, ok bool) {
	object, ok := objectOf(img.objects(), addr)
	if !ok || object.Value != addr {
		return nil, false
	}
	v := u.static(scope, addr, object.Name())
	if v == nil {
		return nil, false
	}
	return pointee(u.typeOf(v)), true
}

// inRegister says whether a variable is in a register while the program is at pc.
func (u *unit) inRegister(v *dwarf.Entry, register uint8, pc uint64) bool {
	const opReg0 = 0x50
	f := v.AttrField(dwarf.AttrLocation)
	if f == nil {
		return false
	}
	if e, ok := f.Val.([]byte); ok {
		return len(e) == 1 && e[0] == opReg0+register
	}
	for _, l := range u.locations(f) {
		if l.from <= pc && pc < l.to && len(l.code) == 1 && l.code[0] == opReg0+register {
			return true
		}
	}
	return false
}

// loaded follows a function's code, from its beginning to pc, for where a register has last been loaded from: a slot of the frame, or
// static data.
func (img *image) loaded(low, pc uint64, register x86asm.Reg) (from result) {
	const mostCode = 1 << 16
	if low == 0 || low > pc || pc-low > mostCode {
		return from
	}
	want, _ := x86Register(register)
	code := img.code(low, int(pc-low))
	for at := low; at < pc && len(code) > 0; {
		i, err := x86asm.Decode(code, 64)
		if err != nil || i.Len == 0 {
			return result{}
		}
		at += uint64(i.Len)
		code = code[i.Len:]
		to, ok := i.Args[0].(x86asm.Reg)
		if !ok || wholeRegister(to) != want || i.Op == x86asm.CMP || i.Op == x86asm.TEST || i.Op == x86asm.PUSH {
			continue
		}
		from = result{}
		if m, ok := i.Args[1].(x86asm.Mem); ok && i.Op == x86asm.MOV && m.Index == 0 && m.Segment == 0 {
			switch m.Base {
			case x86asm.RIP:
				from.static = at + uint64(m.Disp)
			case x86asm.RBP:
				from.slots = []int64{m.Disp}
			}
		}
	}
	return from
}

// plain is a type without its names and qualifiers, and the last of the names.
func plain(t dwarf.Type) (_ dwarf.Type, name string) {
	const maxHops = 16
	for range maxHops {
		switch x := t.(type) {
		case *dwarf.TypedefType:
			t, name = x.Type, x.Name
		case *dwarf.QualType:
			t = x.Type
		default:
			return t, name
		}
	}
	return nil, ""
}

// pointee is what a pointer's type points to, nil if it is none.
func pointee(t dwarf.Type) dwarf.Type {
	t, _ = plain(t)
	if p, ok := t.(*dwarf.PtrType); ok {
		return p.Type
	}
	return nil
}

// memberOf names what lies at an offset of a variable of a type: "hits of struct stats", or an element of a small array, "sum[1]".
func memberOf(t dwarf.Type, variable string, offset int64) string {
	m := memberAt(t, variable, offset)
	if m.of == "" && m.path != "" && variable != "" && m.scalar {
		return variable + m.path
	}
	return inType(m.path, m.of)
}

// A member is what lies at an offset of a variable: by which path from there, and of the outermost struct on that path its name, "" if there is none, the offset
// in it and its size.
type member struct {
	path, of     string
	offset, size int64
	scalar       bool // the path ends at what is neither struct nor union
}

// within is the member as a part of data: "stats.of[1].low, offset 16 of 48"; "" if it is of no struct.
func (m *member) within() string {
	path := strings.TrimPrefix(m.path, ".")
	if m.of == "" || path == "" || m.size <= 0 {
		return ""
	}
	of := m.of
	for _, kind := range []string{"struct ", "class "} {
		of = strings.TrimPrefix(of, kind)
	}
	return fmt.Sprintf("%s.%s, offset %d of %d", of, path, m.offset, m.size)
}

func memberAt(t dwarf.Type, variable string, offset int64) (m member) {
	const (
		mostLevels   = 8
		mostElements = 128 // bytes, of an array whose elements are told apart
	)
	for range mostLevels {
		inner, name := plain(t)
		switch x := inner.(type) {
		case *dwarf.ArrayType:
			size := int64(0)
			if x.Type != nil {
				size = x.Type.Size()
			}
			if size <= 0 || offset < 0 || x.Count > 0 && offset >= x.Count*size {
				return m
			}
			if m.of != "" || !structs(x.Type) {
				if x.Count > 0 && x.Count*size <= mostElements {
					m.path += fmt.Sprintf("[%d]", offset/size)
				} else {
					m.path += "[]"
				}
			}
			t, offset = x.Type, offset%size
		case *dwarf.StructType:
			if m.of == "" {
				m.offset, m.size = offset, x.Size()
				switch {
				case x.StructName != "":
					m.of = x.Kind + " " + x.StructName
				case name != "":
					m.of = name
				case variable != "":
					m.of = variable
				default:
					m.of = x.Kind
				}
			}
			f := fieldAt(x, offset)
			if x.Kind == "union" || f == nil {
				return m
			}
			if f.Name != "" {
				m.path += "." + f.Name
			}
			t, offset = f.Type, offset-f.ByteOffset
		default:
			m.scalar = true
			return m
		}
	}
	return m
}

func inType(path, of string) string {
	if path = strings.TrimPrefix(path, "."); path == "" || of == "" {
		return ""
	}
	return path + " of " + of
}

// structs says whether a type is a struct, or an array of them.
func structs(t dwarf.Type) bool {
	const mostLevels = 8
	for range mostLevels {
		t, _ = plain(t)
		a, ok := t.(*dwarf.ArrayType)
		if !ok {
			break
		}
		t = a.Type
	}
	_, ok := t.(*dwarf.StructType)
	return ok
}

// fieldAt is the member of a struct that an offset is in.
func fieldAt(s *dwarf.StructType, offset int64) *dwarf.StructField {
	for _, f := range s.Field {
		if size := f.Type.Size(); offset >= f.ByteOffset && offset < f.ByteOffset+max(size, 1) {
			return f
		}
	}
	return nil
}
