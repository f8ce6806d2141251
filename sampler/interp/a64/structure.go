package a64

import "encoding/binary"

// structures decodes ld1 to ld4 and st1 to st4.
func (in *inst) structures(w word32) handler {
	in.q = w.is(30)
	isLoad := w.is(22)
	var size uint32 // of the access
	if !w.is(24) {
		in.size = uint8(w.bits(11, 10))
		// op is how many registers lie interleaved, count how many there are.
		switch w.bits(15, 12) {
		case 0b0000:
			in.count, in.op = 4, 4
		case 0b0010:
			in.count, in.op = 4, 1
		case 0b0100:
			in.count, in.op = 3, 3
		case 0b0110:
			in.count, in.op = 3, 1
		case 0b0111:
			in.count, in.op = 1, 1
		case 0b1000:
			in.count, in.op = 2, 2
		default:
			in.count, in.op = 2, 1
		}
		size = uint32(in.count) * (8 << w.bit(30))
	} else {
		opcode := w.bits(15, 13)
		in.count = uint8(opcode&1<<1|w.bit(21)) + 1
		index := w.bit(30)<<3 | w.bit(12)<<2 | w.bits(11, 10)
		switch opcode >> 1 {
		case 3:
			in.size = uint8(w.bits(11, 10))
		case 2:
			in.size = 2 + uint8(w.bit(10))
		default:
			in.size = uint8(opcode >> 1)
		}
		in.shift = uint8(index >> in.size) // the lane
		size = uint32(in.count) << in.size
		in.op = uint8(opcode >> 1)
	}
	in.mode = modeOffset
	if w.is(23) {
		in.mode = modePost
		in.rm, in.imm = w.rm(), 0
		if w.rm() == 31 {
			in.rm, in.imm = regZero, uint64(size)
		}
	}
	in.mask = uint64(size)
	switch {
	case w.is(24) && isLoad && in.op == 3:
		return loadReplicate
	case w.is(24) && isLoad:
		return loadLanes
	case w.is(24):
		return storeLanes
	case isLoad:
		return loadStructures
	}
	return storeStructures
}

// readStructure is the one access of a load of structures, to b.
func (m *Machine) readStructure(in *inst, b []byte) {
	addr := canonical(m.r[in.rn&63])
	m.log(addr, len(b), false)
	m.mem.Read(addr, b)
	m.structureBack(in)
}

// writeStructure is the one access of a store of structures, of b.
func (m *Machine) writeStructure(in *inst, b []byte) {
	addr := canonical(m.r[in.rn&63])
	m.log(addr, len(b), true)
	m.mem.Write(addr, b)
	m.structureBack(in)
}

// structureBack adds a register or the bytes of the access to the base.
func (m *Machine) structureBack(in *inst) {
	if in.mode == modePost {
		m.r[in.rn&63] += in.imm + m.r[in.rm&63]
	}
}

// eachLane calls f for each lane of ld1 to ld4 with where it is in memory.
func (in *inst) eachLane(f func(register, lane, at int)) {
	lanes := 8 >> in.size
	if in.q {
		lanes *= 2
	}
	at := 0
	for first := 0; first < int(in.count); first += int(in.op) {
		for lane := range lanes {
			for k := range int(in.op) {
				f((int(in.rd)+first+k)&31, lane, at)
				at += 1 << in.size
			}
		}
	}
}

func loadStructures(m *Machine, in *inst) {
	var b [72]byte
	m.readStructure(in, b[:in.mask])
	for i := range int(in.count) {
		m.vec.V[(int(in.rd)+i)&31] = Vec{}
	}
	if in.op == 1 {
		n := 8
		if in.q {
			n = 16
		}
		for i := range int(in.count) {
			v := &m.vec.V[(int(in.rd)+i)&31]
			v[0] = binary.LittleEndian.Uint64(b[i*n:])
			if in.q {
				v[1] = binary.LittleEndian.Uint64(b[i*n+8:])
			}
		}
		return
	}
	in.eachLane(func(register, lane, at int) {
		m.vec.V[register].put(lane, in.size, binary.LittleEndian.Uint64(b[at:]))
	})
}

func storeStructures(m *Machine, in *inst) {
	var b [72]byte
	in.eachLane(func(register, lane, at int) {
		binary.LittleEndian.PutUint64(b[at:], m.vec.V[register].get(lane, in.size))
	})
	m.writeStructure(in, b[:in.mask])
}

func loadLanes(m *Machine, in *inst) {
	var b [40]byte
	m.readStructure(in, b[:in.mask])
	for i := range int(in.count) {
		m.vec.V[(int(in.rd)+i)&31].set(int(in.shift), in.size, binary.LittleEndian.Uint64(b[i<<in.size:]))
	}
}

func storeLanes(m *Machine, in *inst) {
	var b [40]byte
	for i := range int(in.count) {
		binary.LittleEndian.PutUint64(b[i<<in.size:], m.vec.V[(int(in.rd)+i)&31].get(int(in.shift), in.size))
	}
	m.writeStructure(in, b[:in.mask])
}

func loadReplicate(m *Machine, in *inst) {
	var b [40]byte
	m.readStructure(in, b[:in.mask])
	for i := range int(in.count) {
		m.vec.V[(int(in.rd)+i)&31] = replicate(binary.LittleEndian.Uint64(b[i<<in.size:]), in.size, in.q)
	}
}
