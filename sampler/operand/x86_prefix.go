package operand

// prefixes consumes everything before ModRM: legacy prefixes, REX, VEX or EVEX, opcode.
func (d *x86Decoder) prefixes() error {
	d.enc, d.pp = encLegacy, prefixNone
	for {
		c := d.byte()
		switch c {
		case 0x66:
			d.prefix66, d.rex = true, 0
			continue
		case 0x67:
			d.addr32, d.rex = true, 0
			continue
		case 0xf0:
			d.lock, d.rex = true, 0
			continue
		case 0xf2, 0xf3:
			d.rep, d.rex = c, 0
			continue
		case 0x26, 0x2e, 0x36, 0x3e:
			// ES, CS, SS and DS have base 0 and do not undo an earlier FS or GS:
			// the last FS or GS prefix counts in 64-bit mode.
			d.rex = 0
			continue
		case 0x64:
			d.seg, d.rex = 1, 0
			continue
		case 0x65:
			d.seg, d.rex = 2, 0
			continue
		}
		if c&0xf0 == 0x40 {
			d.rex = c
			continue
		}
		if d.truncated {
			return nil
		}
		d.op = c
		break
	}
	switch d.op {
	case 0xc5:
		return d.vex2()
	case 0xc4:
		return d.vex3()
	case 0x62:
		return d.evex()
	case 0xd5:
		return d.unsupported("REX2 (APX)")
	case 0x8f:
		if d.pos < len(d.code) && d.code[d.pos]&0x1f >= 8 {
			return d.unsupported("XOP")
		}
	}
	d.w = d.rex >> 3 & 1
	d.r, d.x, d.b = d.rex<<1&8, d.rex<<2&8, d.rex<<3&8
	if d.op == 0x0f {
		d.opMap, d.op = 1, d.byte()
		switch d.op {
		case 0x38:
			d.opMap, d.op = 2, d.byte()
		case 0x3a:
			d.opMap, d.op = 3, d.byte()
		}
	}
	switch {
	case d.rep == 0xf3:
		d.pp = prefixF3
	case d.rep == 0xf2:
		d.pp = prefixF2
	case d.prefix66:
		d.pp = prefix66
	}
	return nil
}

func (d *x86Decoder) checkVectorPrefix() error {
	if d.rex != 0 || d.prefix66 || d.rep != 0 || d.lock {
		return d.unsupported("legacy prefix before a vector prefix")
	}
	return nil
}

func (d *x86Decoder) vex2() error {
	if err := d.checkVectorPrefix(); err != nil {
		return err
	}
	p := d.byte()
	d.enc, d.opMap = encVEX, 1
	d.r = ^p >> 4 & 8
	d.vectorBits(p)
	d.op = d.byte()
	return nil
}

func (d *x86Decoder) vex3() error {
	if err := d.checkVectorPrefix(); err != nil {
		return err
	}
	p0, p1 := d.byte(), d.byte()
	d.enc, d.opMap = encVEX, p0&31
	d.r, d.x, d.b = ^p0>>4&8, ^p0>>3&8, ^p0>>2&8
	d.w = p1 >> 7
	d.vectorBits(p1)
	d.op = d.byte()
	if d.opMap < 1 || d.opMap > 3 {
		return d.unsupported("VEX opcode map")
	}
	return nil
}

// vectorBits takes vvvv, L and pp from where both VEX forms have them.
func (d *x86Decoder) vectorBits(p uint8) {
	d.vvvv = ^p >> 3 & 15
	d.l = p >> 2 & 1
	d.pp = [4]uint8{prefixNone, prefix66, prefixF3, prefixF2}[p&3]
}

func (d *x86Decoder) evex() error {
	if err := d.checkVectorPrefix(); err != nil {
		return err
	}
	p0, p1, p2 := d.byte(), d.byte(), d.byte()
	d.op = d.byte()
	d.enc, d.opMap = encEVEX, p0&7
	if p0&8 != 0 || p1&4 == 0 || d.opMap == 0 || d.opMap == 4 || d.opMap == 7 {
		d.opMap = 0
		return d.unsupported("EVEX opcode map, or APX")
	}
	d.r, d.x, d.b = ^p0>>4&8, ^p0>>3&8, ^p0>>2&8
	d.r2, d.v2 = ^p0&16, ^p2<<1&16
	d.vectorBits(p1)
	d.w = p1 >> 7
	d.l = p2 >> 5 & 3
	d.evexB = p2&16 != 0
	d.opMask = p2 & 7
	return nil
}
