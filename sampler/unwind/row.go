package unwind

import (
	"fmt"
	"slices"
)

// ruleKind is a way to find a value of the caller's frame.
type ruleKind uint8

const (
	same          ruleKind = iota // as in this frame
	undefined                     // lost; of the return address: there is no caller
	offset                        // at address CFA + offset
	valOffset                     // is CFA + offset
	register                      // is in register reg, plus offset if it is the CFA
	expression                    // at the address that expr gives
	valExpression                 // is what expr gives
)

type rule struct {
	kind   ruleKind
	reg    uint8
	offset int64
	expr   []byte
}

// regRule is a rule and the register that it is for.
type regRule struct {
	n uint8
	rule
}

// row is the unwind table's line for a range of addresses: how to find the
// caller's registers from there. The CFA, canonical frame address, is the
// stack pointer before the call. A row is immutable.
type row struct {
	start, end uint64 // addresses of the file
	cfa        rule
	rules      []regRule // the others are same
	ra         uint8
	signal     bool
}

func (r *row) rule(n uint8) rule {
	for i := range r.rules {
		if r.rules[i].n == n {
			return r.rules[i].rule
		}
	}
	return rule{}
}

func (r *row) setRule(n uint8, to rule) {
	for i := range r.rules {
		if r.rules[i].n == n {
			r.rules[i].rule = to
			return
		}
	}
	r.rules = append(r.rules, regRule{n, to})
}

func (r *row) clone() *row {
	c := *r
	c.rules = slices.Clone(r.rules)
	return &c
}

// program runs call frame instructions.
type program struct {
	*fde
	row     *row
	initial *row   // after the CIE's instructions
	saved   []*row // by remember_state
	// emit is called with each finished row; it returns false to stop.
	emit func(*row) bool
}

// rows calls emit with the rows of a function in order, until it returns false.
// A row is valid during the call.
func (f *fde) rows(emit func(*row) bool) {
	p := &program{fde: f, emit: emit}
	p.row = &row{start: f.start, end: f.end, ra: f.ra, signal: f.signal}
	if !p.run(&cursor{b: f.initial}) {
		return
	}
	p.initial = p.row.clone()
	if !p.run(&cursor{b: f.program, addr: f.addr}) {
		return
	}
	p.row.end = f.end
	emit(p.row)
}

// at returns the row for an address of the function.
func (f *fde) at(pc uint64) *row {
	var found *row
	f.rows(func(r *row) bool {
		if pc >= r.start && pc < r.end {
			found = r.clone()
		}
		return found == nil
	})
	if found == nil {
		panic(malformed(fmt.Sprintf("no row for %#x", pc)))
	}
	return found
}

// advance ends the row at an address. It returns false if emit does.
func (p *program) advance(to uint64) bool {
	p.row.end = to
	if to > p.row.start && !p.emit(p.row) {
		return false
	}
	p.row.start, p.row.end = to, p.fde.end
	return true
}

// maxSaved states; compilers nest few.
const maxSaved = 256

func (p *program) reg(n uint64) uint8 {
	if n >= numRegs {
		// Vector and other registers are of no use here.
		return discarded
	}
	return uint8(n)
}

// discarded is the number of registers that are not kept.
const discarded = 0xff

func (p *program) set(n uint64, to rule) {
	if r := p.reg(n); r != discarded {
		p.row.setRule(r, to)
	}
}

// cfaRegister is a register the CFA is computed from.
func (p *program) cfaRegister(n uint64) uint8 {
	if n >= numRegs {
		panic(malformed(fmt.Sprintf("CFA by register %d", n)))
	}
	return uint8(n)
}

func (p *program) restore(n uint64) {
	to := rule{}
	if p.initial != nil && n < numRegs {
		to = p.initial.rule(uint8(n))
	}
	p.set(n, to)
}

// run interprets instructions, DW_CFA_*; false if emit said so.
func (p *program) run(c *cursor) bool {
	for !c.done() {
		op := c.u8()
		low := uint64(op & 0x3f)
		switch op >> 6 {
		case 1: // advance_loc
			if !p.advance(p.row.start + low*p.codeAlign) {
				return false
			}
			continue
		case 2: // offset
			p.set(low, rule{kind: offset, offset: int64(c.uleb()) * p.dataAlign})
			continue
		case 3: // restore
			p.restore(low)
			continue
		}
		switch op {
		case 0x00: // nop
		case 0x01: // set_loc
			if !p.advance(c.pointer(p.encoding, 0)) {
				return false
			}
		case 0x02, 0x03, 0x04: // advance_loc1, 2, 4
			by := uint64(0)
			switch op {
			case 0x02:
				by = uint64(c.u8())
			case 0x03:
				by = uint64(c.u16())
			case 0x04:
				by = uint64(c.u32())
			}
			if !p.advance(p.row.start + by*p.codeAlign) {
				return false
			}
		default:
			p.rule(c, op)
		}
	}
	return true
}

// rule interprets an instruction that changes the row.
func (p *program) rule(c *cursor, op uint8) {
	factored := func() int64 { return int64(c.uleb()) * p.dataAlign }
	factoredSigned := func() int64 { return c.sleb() * p.dataAlign }
	block := func() []byte { return c.take(c.uleb()) }
	switch op {
	case 0x05: // offset_extended
		n := c.uleb()
		p.set(n, rule{kind: offset, offset: factored()})
	case 0x06: // restore_extended
		p.restore(c.uleb())
	case 0x07: // undefined
		p.set(c.uleb(), rule{kind: undefined})
	case 0x08: // same_value
		p.set(c.uleb(), rule{})
	case 0x09: // register
		n, from := c.uleb(), c.uleb()
		if from >= numRegs {
			panic(malformed(fmt.Sprintf("value in register %d", from)))
		}
		p.set(n, rule{kind: register, reg: uint8(from)})
	case 0x0a: // remember_state
		if len(p.saved) == maxSaved {
			panic(malformed("remember_state without an end"))
		}
		p.saved = append(p.saved, p.row.clone())
	case 0x0b: // restore_state
		if len(p.saved) == 0 {
			panic(malformed("restore_state without remember_state"))
		}
		last := p.saved[len(p.saved)-1]
		p.saved = p.saved[:len(p.saved)-1]
		last.start, last.end = p.row.start, p.row.end
		p.row = last
	case 0x0c: // def_cfa
		n := p.cfaRegister(c.uleb())
		p.row.cfa = rule{kind: register, reg: n, offset: int64(c.uleb())}
	case 0x0d: // def_cfa_register
		p.row.cfa = rule{kind: register, reg: p.cfaRegister(c.uleb()), offset: p.row.cfa.offset}
	case 0x0e: // def_cfa_offset
		p.row.cfa.offset = int64(c.uleb())
	case 0x0f: // def_cfa_expression
		p.row.cfa = rule{kind: valExpression, expr: block()}
	case 0x10: // expression
		n := c.uleb()
		p.set(n, rule{kind: expression, expr: block()})
	case 0x11: // offset_extended_sf
		n := c.uleb()
		p.set(n, rule{kind: offset, offset: factoredSigned()})
	case 0x12: // def_cfa_sf
		n := p.cfaRegister(c.uleb())
		p.row.cfa = rule{kind: register, reg: n, offset: factoredSigned()}
	case 0x13: // def_cfa_offset_sf
		p.row.cfa.offset = factoredSigned()
	case 0x14: // val_offset
		n := c.uleb()
		p.set(n, rule{kind: valOffset, offset: factored()})
	case 0x15: // val_offset_sf
		n := c.uleb()
		p.set(n, rule{kind: valOffset, offset: factoredSigned()})
	case 0x16: // val_expression
		n := c.uleb()
		p.set(n, rule{kind: valExpression, expr: block()})
	case 0x2d: // AARCH64_negate_ra_state: a signature is masked off, if there is one
	case 0x2e: // GNU_args_size
		c.uleb()
	case 0x2f: // GNU_negative_offset_extended
		n := c.uleb()
		p.set(n, rule{kind: offset, offset: -factored()})
	default:
		panic(malformed(fmt.Sprintf("instruction %#x", op)))
	}
}
