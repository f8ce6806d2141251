package pprofout

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"slices"

	"github.com/rdx-profiler/rdx/model"
)

// partsOf are questions for the names of the members, or variables, of static data and stacks that were touched, as model.Words.Member has them.
// tell puts the answers there; what the debug information doesn't tell has no name.
func partsOf(p *model.Profile) (asked questions, tell func()) {
	var order []*model.Record // those that stand for most first: not all may be named
	for i := range p.Records {
		r := &p.Records[i]
		if d := r.Data; d != nil && !sharing(r.Kind) && (d.Kind == model.DataStatic || d.Kind == model.DataStack && d.Frame >= 0 && d.Frame < len(r.Use) && d.Below > 0) {
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order, func(a, b *model.Record) int { return cmp.Compare(b.Accesses, a.Accesses) })
	type part struct {
		pc           *model.Location
		leaf         bool
		mapping      *model.Mapping // of static data
		at           uint64
		below, above int64
	}
	of := func(r *model.Record) (part, *model.Mapping) {
		d := r.Data
		if d.Kind == model.DataStack {
			pc := r.Use[d.Frame]
			return part{pc: pc, leaf: d.Frame == 0, below: d.Below, above: d.Above}, pc.Mapping
		}
		k := part{mapping: d.Mapping, at: d.Address, below: d.Below, above: d.Above}
		if len(r.Use) > 0 && r.Use[0].Mapping != nil && r.Use[0].Mapping.File == d.Mapping.File {
			k.pc = r.Use[0]
		}
		return k, d.Mapping
	}
	known := map[part]string{}
	for _, r := range order {
		k, m := of(r)
		if _, ok := known[k]; ok || len(known) >= mostMembers || !m.IsFile() {
			continue
		}
		known[k] = ""
		asked = append(asked, question{m, func(img *image) error {
			pc := uint64(0)
			if k.pc != nil {
				pc, _ = img.vaddr(k.pc.Mapping, k.pc.Address)
			}
			if r.Data.Kind == model.DataStatic {
				known[k] = img.staticPart(pc, k.at)
			} else if pc > 0 {
				if !k.leaf {
					pc-- // in the call
				}
				known[k] = img.stackPart(pc, k.below, k.above)
			}
			return nil
		}})
	}
	return asked, func() {
		for _, r := range order {
			k, _ := of(r)
			w := r.Words()
			w.Member = known[k]
			r.SetWords(w)
		}
	}
}

// sharing says whether a record of a kind tells of two threads' members.
func sharing(k model.Kind) bool { return k == model.TrueSharing || k == model.FalseSharing }

// staticPart names a member of static data, by the variable that begins where the symbol does. pc is of code that may declare it, 0 if there is none.
func (img *image) staticPart(pc, addr uint64) string {
	object, ok := objectOf(img.objects(), addr)
	if !ok {
		return ""
	}
	v, known := img.debugInfo().statics()[object.Value]
	if !known && pc > 0 {
		if u := img.unitAt(pc); u != nil {
			if scope, err := u.variables(pc); err == nil {
				if e := u.static(scope.variables, object.Value, object.Name()); e != nil {
					v = staticVariable{u, e.Offset}
				}
			}
		}
	}
	e := v.entry()
	if e == nil {
		return ""
	}
	m := memberAt(v.unit.typeOf(e), display(v.unit.name(e).Function), int64(addr-object.Value))
	return m.within()
}

// A staticVariable is one outside of functions. There may be a hundred thousand, and an entry takes a kilobyte: it is read when it is asked for.
type staticVariable struct {
	unit *unit
	at   dwarf.Offset
}

// entry is nil where there is none.
func (v *staticVariable) entry() *dwarf.Entry {
	if v.unit == nil {
		return nil
	}
	r := v.unit.data.Reader()
	r.Seek(v.at)
	e, err := r.Next()
	if err != nil {
		return nil
	}
	return e
}

// statics are those of all units, by address.
func (s *debugSource) statics() map[uint64]staticVariable {
	if s.byAddress != nil || s.data == nil {
		return s.byAddress
	}
	s.byAddress = map[uint64]staticVariable{}
	if s.units == nil {
		s.findUnits()
	}
	done := map[dwarf.Offset]bool{}
	for i := range s.units {
		r := &s.units[i]
		if done[r.root] {
			continue
		}
		done[r.root] = true
		if u := s.unitOf(r); u != nil {
			u.eachStatic(func(v *dwarf.Entry) bool {
				if at, ok := u.addressOf(v); ok && at > 0 {
					s.byAddress[at] = staticVariable{u, v.Offset}
				}
				return false
			})
		}
	}
	return s.byAddress
}

// stackPart names the variable in a function's frame that lies so far below the stack pointer before its call, and above its own; of a struct with the member.
func (img *image) stackPart(pc uint64, below, above int64) string {
	u := img.unitAt(pc)
	if u == nil {
		return ""
	}
	scope, err := u.variables(pc)
	if err != nil {
		return ""
	}
	for _, v := range slices.Backward(scope.variables) { // the innermost first
		begins, ok := u.inFrame(v, scope.base, pc, img.elf.Machine)
		if !ok {
			continue
		}
		offset := -below - begins.fromCall
		if begins.bySP {
			offset = above - begins.fromSP
		}
		t := u.typeOf(v)
		if t == nil || offset < 0 || offset >= t.Size() {
			continue
		}
		name := u.name(v).Function
		m := memberAt(t, name, offset)
		if within := m.within(); within != "" && name != "" {
			return name + ": " + within
		}
		return name
	}
	return ""
}

// frameOffset is where a variable begins: from the stack pointer before the function was called, or from its own.
type frameOffset struct {
	fromCall, fromSP int64
	bySP             bool
}

// inFrame finds where in the frame a variable is while the program is at pc. base is the function's frame base.
func (u *unit) inFrame(v *dwarf.Entry, base []byte, pc uint64, machine elf.Machine) (at frameOffset, ok bool) {
	f := v.AttrField(dwarf.AttrLocation)
	if f == nil {
		return at, false
	}
	code, whole := f.Val.([]byte)
	if !whole {
		for _, l := range u.locations(f) {
			if l.from <= pc && pc < l.to {
				code = l.code
			}
		}
	}
	const opFrame = 0x91
	if len(code) > 1 && code[0] == opFrame {
		c := cursor{b: code[1:]}
		offset := c.sleb()
		if at, ok = baseOf(base, machine); !ok || c.err != nil || len(c.b) > 0 {
			return at, false
		}
		at.fromCall += offset
		at.fromSP += offset
		return at, true
	}
	if len(code) > 1 { // a register and an offset, with nothing behind
		return baseOf(code, machine)
	}
	return at, false
}

// baseOf understands what frame bases are: the stack pointer before the call, the function's own, or the frame pointer, which on x86-64
// is kept right behind what the call has pushed.
func baseOf(code []byte, machine elf.Machine) (at frameOffset, ok bool) {
	const opReg0, opBreg0, opCFA = 0x50, 0x70, 0x9c
	sp, fp, behind := byte(7), byte(6), int64(-16)
	if machine != elf.EM_X86_64 {
		sp, fp = 31, 0xff // the frame pointer's place depends on the frame
	}
	if len(code) == 0 {
		return at, false
	}
	offset, register := int64(0), code[0]-opReg0
	switch {
	case code[0] == opCFA && len(code) == 1:
		return at, true
	case code[0] >= opReg0 && code[0] < opBreg0 && len(code) == 1:
	case code[0] >= opBreg0 && code[0] < opBreg0+32:
		c := cursor{b: code[1:]}
		if offset = c.sleb(); c.err != nil || len(c.b) > 0 {
			return at, false
		}
		register = code[0] - opBreg0
	default:
		return at, false
	}
	switch register {
	case sp:
		return frameOffset{fromSP: offset, bySP: true}, true
	case fp:
		return frameOffset{fromCall: behind + offset}, true
	}
	return at, false
}
