package unwind

import "fmt"

// evaluate runs a DWARF expression, sections 2.5.1 and 6.4.2 of the standard:
// the operations that unwind tables may use. initial is pushed first if push.
// ok is false if a register or memory is not known.
func evaluate(expr []byte, regs *Regs, mem *Stack, initial uint64, push bool) (v uint64, ok bool) {
	var stack []uint64
	if push {
		stack = append(stack, initial)
	}
	pop := func() uint64 {
		if len(stack) == 0 {
			panic(malformed("expression pops an empty stack"))
		}
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return v
	}
	put := func(v uint64) { stack = append(stack, v) }
	c := &cursor{b: expr}
	for steps := 0; !c.done(); steps++ {
		if steps > maxSteps {
			panic(malformed("expression without an end"))
		}
		op := c.u8()
		switch {
		case op >= 0x30 && op <= 0x4f: // lit0-31
			put(uint64(op - 0x30))
			continue
		case op >= 0x70 && op <= 0x92: // breg0-31, fbreg (none here), bregx
			n := uint64(op - 0x70)
			if op == 0x92 {
				n = c.uleb()
			}
			r, known := regs.get(n)
			if !known {
				return 0, false
			}
			put(r + uint64(c.sleb()))
			continue
		}
		switch op {
		case 0x03, 0x0e, 0x0f: // addr, const8u, const8s
			put(c.u64())
		case 0x06, 0x94: // deref, deref_size
			size := uint64(8)
			if op == 0x94 {
				size = min(uint64(c.u8()), 8)
			}
			v, known := mem.Load(pop())
			if !known {
				return 0, false
			}
			if size < 8 {
				v &= 1<<(8*size) - 1
			}
			put(v)
		case 0x08:
			put(uint64(c.u8()))
		case 0x09:
			put(uint64(int8(c.u8())))
		case 0x0a:
			put(uint64(c.u16()))
		case 0x0b:
			put(uint64(int16(c.u16())))
		case 0x0c:
			put(uint64(c.u32()))
		case 0x0d:
			put(uint64(int32(c.u32())))
		case 0x10:
			put(c.uleb())
		case 0x11:
			put(uint64(c.sleb()))
		case 0x12, 0x14, 0x15: // dup, over, pick
			n := map[uint8]int{0x12: 0, 0x14: 1}[op]
			if op == 0x15 {
				n = int(c.u8())
			}
			if n >= len(stack) {
				panic(malformed("expression picks below its stack"))
			}
			put(stack[len(stack)-1-n])
		case 0x13: // drop
			pop()
		case 0x16: // swap
			a, b := pop(), pop()
			put(a)
			put(b)
		case 0x1f: // neg
			put(-pop())
		case 0x20: // not
			put(^pop())
		case 0x23: // plus_uconst
			put(pop() + c.uleb())
		case 0x28, 0x2f: // bra, skip
			by := int(int16(c.u16()))
			if op == 0x2f || pop() != 0 {
				if by < -c.pos || by > len(c.b)-c.pos {
					panic(malformed("expression branches out of itself"))
				}
				c.pos += by
			}
		case 0x96: // nop
		default:
			b, a := pop(), pop()
			put(binaryOp(op, a, b))
		}
	}
	return pop(), true
}

// maxSteps is more than any table needs: PLT stubs take 9, signal frames 3.
const maxSteps = 100

func binaryOp(op uint8, a, b uint64) uint64 {
	truth := func(t bool) uint64 {
		if t {
			return 1
		}
		return 0
	}
	x, y := int64(a), int64(b)
	switch op {
	case 0x1a:
		return a & b
	case 0x1c:
		return a - b
	case 0x1e:
		return a * b
	case 0x21:
		return a | b
	case 0x22:
		return a + b
	case 0x24:
		return a << b
	case 0x25:
		return a >> b
	case 0x26:
		return uint64(x >> b)
	case 0x27:
		return a ^ b
	case 0x29:
		return truth(x == y)
	case 0x2a:
		return truth(x >= y)
	case 0x2b:
		return truth(x > y)
	case 0x2c:
		return truth(x <= y)
	case 0x2d:
		return truth(x < y)
	case 0x2e:
		return truth(x != y)
	}
	panic(malformed(fmt.Sprintf("expression operation %#x", op)))
}
