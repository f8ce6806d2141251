package interp

// vecNatives are the instructions that only run natively: estimates, whose last
// bits differ between processors, 16-bit floating point, and rarer ones.
var vecNatives = concat(
	[]vecOp{
		{"np 0f 52", "lv", "d", nil, nil}, {"np 0f 53", "lv", "d", nil, nil}, // rsqrt and rcp
		{"f3 0f 52", "lv", "d sc v", nil, nil}, {"f3 0f 53", "lv", "d sc v", nil, nil},
		{"66 0f38 4c", "e", "x", nil, nil}, {"66 0f38 4d", "e", "x sc v", nil, nil}, // rcp14
		{"66 0f38 4e", "e", "x", nil, nil}, {"66 0f38 4f", "e", "x sc v", nil, nil}, // rsqrt14
		{"66 0f38 2c", "e", "x v fl", nil, nil}, {"66 0f38 2d", "e", "x sc v fl", nil, nil}, // scalef
		{"66 0f38 42", "e", "x fl", nil, nil}, {"66 0f38 43", "e", "x sc v fl", nil, nil}, // getexp
		{"66 0f3a 26", "e", "x imm fl", nil, nil}, {"66 0f3a 27", "e", "x sc v imm fl", nil, nil}, // getmant
		{"66 0f3a 50", "e", "x v imm fl", nil, nil}, {"66 0f3a 51", "e", "x sc v imm fl", nil, nil}, // range
		{"66 0f3a 54", "e", "x v imm fl", nil, nil}, {"66 0f3a 55", "e", "x sc v imm fl", nil, nil}, // fixupimm
		{"66 0f3a 56", "e", "x imm fl", nil, nil}, {"66 0f3a 57", "e", "x sc v imm fl", nil, nil}, // reduce
		{"66 0f3a 66", "e", "x imm k", nil, nil}, {"66 0f3a 67", "e", "x sc imm k", nil, nil}, // fpclass
		{"66 0f3a 42", "e0", "w v imm wh", nil, nil}, {"66 0f38 8f", "e0", "b v k", nil, nil}, // dbpsadbw, shufbitqmb

		{"f3 0f38 52", "e0", "d v", nil, nil}, {"f3 0f38 72", "v0e0", "d", nil, nil}, {"f2 0f38 72", "e0", "d v wh", nil, nil}, // bf16
		{"f3 0f38 b0", "v0", "d m", nil, nil}, {"66 0f38 b0", "v0", "d m", nil, nil}, {"f2 0f38 b0", "v0", "d m", nil, nil}, {"np 0f38 b0", "v0", "d m", nil, nil},
		{"f3 0f38 b1", "v0", "w mem=2 m", nil, nil}, {"66 0f38 b1", "v0", "w mem=2 m", nil, nil},
		{"np 0f38 50", "v0", "d v", nil, nil}, {"f3 0f38 50", "v0", "d v", nil, nil}, {"f2 0f38 50", "v0", "d v", nil, nil}, // dot products of 8-bit
		{"np 0f38 51", "v0", "d v", nil, nil}, {"f3 0f38 51", "v0", "d v", nil, nil}, {"f2 0f38 51", "v0", "d v", nil, nil},
		{"np 0f38 d2", "v0", "d v", nil, nil}, {"66 0f38 d2", "v0", "d v", nil, nil}, {"f3 0f38 d2", "v0", "d v", nil, nil}, // and 16-bit integers
		{"np 0f38 d3", "v0", "d v", nil, nil}, {"66 0f38 d3", "v0", "d v", nil, nil}, {"f3 0f38 d3", "v0", "d v", nil, nil},
		{"f2 0f38 cb", "v0", "q v l1 r", nil, nil}, {"f2 0f38 cc", "v0", "q l1 r", nil, nil}, {"f2 0f38 cd", "v0", "q l1 r", nil, nil}, // SHA-512
		{"np 0f38 da", "v0", "d v l0", nil, nil}, {"66 0f38 da", "v0", "d v l0", nil, nil}, {"66 0f3a de", "v0", "d v imm l0", nil, nil}, // SM3
		{"f3 0f38 da", "v0", "d v", nil, nil}, {"f2 0f38 da", "v0", "d v", nil, nil}, // SM4
		{"66 0f 79", "l", "b r", nil, nil}, {"f2 0f 79", "l", "b r", nil, nil}, // extrq, insertq
	},
	halfArithmetic(), halfConversions(),
)

// halfArithmetic is that of 16-bit floating point.
func halfArithmetic() []vecOp {
	rows := []vecOp{
		{"np map5 51", "e0", "h fl", nil, nil}, {"f3 map5 51", "e0", "h sc v fl", nil, nil},
		{"np map5 2e", "e0", "h sc fl ef nk", nil, nil}, {"np map5 2f", "e0", "h sc fl ef nk", nil, nil},
		{"66 map6 2c", "e0", "h v fl", nil, nil}, {"66 map6 2d", "e0", "h sc v fl", nil, nil},
		{"66 map6 42", "e0", "h fl", nil, nil}, {"66 map6 43", "e0", "h sc v fl", nil, nil},
		{"66 map6 4c", "e0", "h", nil, nil}, {"66 map6 4d", "e0", "h sc v", nil, nil},
		{"66 map6 4e", "e0", "h", nil, nil}, {"66 map6 4f", "e0", "h sc v", nil, nil},
		{"np 0f3a 08", "e0", "h imm fl", nil, nil}, {"np 0f3a 0a", "e0", "h sc v imm fl", nil, nil},
		{"np 0f3a 26", "e0", "h imm fl", nil, nil}, {"np 0f3a 27", "e0", "h sc v imm fl", nil, nil},
		{"np 0f3a 56", "e0", "h imm fl", nil, nil}, {"np 0f3a 57", "e0", "h sc v imm fl", nil, nil},
		{"np 0f3a 66", "e0", "h imm k", nil, nil}, {"np 0f3a 67", "e0", "h sc imm k", nil, nil},
		{"np 0f3a c2", "e0", "h v imm fl k", nil, nil}, {"f3 0f3a c2", "e0", "h sc v imm fl k", nil, nil},
	}
	for _, op := range []string{"58", "59", "5c", "5d", "5e", "5f"} {
		rows = append(rows, vecOp{"np map5 " + op, "e0", "h v fl", nil, nil}, vecOp{"f3 map5 " + op, "e0", "h sc v fl", nil, nil})
	}
	eachFused(func(code string, _ int, _, _ bool, _ int, form string) {
		rows = append(rows, vecOp{"66 map6" + code[len("66 0f38"):], "e0", "h" + form, nil, nil})
	})
	for _, pp := range []string{"f3", "f2"} { // of complex numbers, whose destination is no operand
		for _, op := range []string{"5", "d"} {
			rows = append(rows, vecOp{pp + " map6 " + op + "6", "e0", "d v fl dd", nil, nil}, vecOp{pp + " map6 " + op + "7", "e0", "d sc v fl dd", nil, nil})
		}
	}
	return rows
}

// halfConversions are those from and to 16-bit floating point. The element size
// is that of the wider side, which the opmask counts.
func halfConversions() []vecOp {
	rows := []vecOp{
		{"np map5 5a", "e0", "q msz=2 /4 hb fl", nil, nil}, {"66 map5 5a", "e1", "q fl", nil, nil},
		{"f3 map5 5a", "e0", "q msz=2 sc v fl", nil, nil}, {"f2 map5 5a", "e1", "q sc v fl", nil, nil},
		{"np map5 1d", "e0", "d sc v fl", nil, nil}, {"66 map5 1d", "e0", "d fl", nil, nil},
		{"np map6 13", "e0", "d msz=2 sc v fl", nil, nil}, {"66 map6 13", "e0", "d msz=2 /2 hb fl", nil, nil},
		{"np map5 5b", "e", "x fl", nil, nil}, {"f2 map5 7a", "e", "x fl", nil, nil},
		{"f3 map5 2a", "e", "x sc v fl g nk", nil, nil}, {"f3 map5 7b", "e", "x sc v fl g nk", nil, nil},

		{"66 map5 6e", "e", "w sc l0 nk", wordFromGPR, nil}, {"66 map5 7e", "e", "w sc l0 nk", wordToGPR, nil},
		{"f3 map5 10", "e0", "w sc m", scalarLoad, nil}, {"f3 map5 11", "e0", "w sc m st", scalarSave, nil},
		{"f3 map5 10", "e0", "w sc r v", vecRVM, lowElement}, {"f3 map5 11", "e0", "w sc r v st", vecMVR, lowElement},
	}
	for _, op := range []string{"2c", "2d", "78", "79"} {
		rows = append(rows, vecOp{"f3 map5 " + op, "e", "h sc fl nk gr", nil, nil})
	}
	for _, code := range []string{"66 map5 5b", "f3 map5 5b", "np map5 78", "np map5 79"} {
		rows = append(rows, vecOp{code, "e0", "d msz=2 /2 hb fl", nil, nil})
	}
	for _, code := range []string{"66 map5 78", "66 map5 79", "66 map5 7a", "66 map5 7b"} {
		rows = append(rows, vecOp{code, "e0", "q msz=2 /4 hb fl", nil, nil})
	}
	for _, code := range []string{"np map5 7c", "66 map5 7c", "np map5 7d", "66 map5 7d", "f3 map5 7d", "f2 map5 7d"} {
		rows = append(rows, vecOp{code, "e0", "h fl", nil, nil})
	}
	return rows
}

// wordFromGPR and wordToGPR are vmovw.
func wordFromGPR(m *Machine, in *inst) {
	word := *in
	word.w = 2
	m.tmp = Vec{m.rmOperand(&word)}
	m.vecPut(in)
}

func wordToGPR(m *Machine, in *inst) {
	v := m.vec.Z[in.reg&31][0] & 0xffff
	if in.mem {
		m.store(m.ea(in), 2, v)
		return
	}
	m.setReg(in.rm&15, 4, v)
}

// intersect is vp2intersect: which elements of each operand the other has too.
func intersect(m *Machine, in *inst) {
	b := m.vecSource(in)
	a := &m.vec.Z[in.v&31]
	var inA, inB uint64
	for i := range in.lanes() {
		for j := range in.lanes() {
			if a.elem(i, in.esz) == b.elem(j, in.esz) {
				inA |= 1 << i
				inB |= 1 << j
			}
		}
	}
	m.vec.K[in.reg&6], m.vec.K[in.reg&6|1] = inA, inB
}

// maskmovdqu stores the bytes whose mask has its sign bit, at rdi, and faults as
// maskmovq does.
func maskmovdqu(m *Machine, in *inst) {
	a := m.r[RDI]
	if in.addr32 {
		a = uint64(uint32(a))
	}
	a += m.segBase[in.seg&3]
	m.at(a)
	m.at(a + 15)
	m.maskedStore(a, &m.vec.Z[in.reg&31], signBits(&m.vec.Z[in.rm&31], 16, 1), 1)
}
