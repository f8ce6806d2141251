package operand

// CondRegs are the registers that a conditional branch decides by.
func (in *ARM64Inst) CondRegs() RegSet {
	switch {
	case in.Branch != BranchCond:
		return 0
	case in.cond >= condCBZ:
		return general(in.reg)
	case in.cond >= 14: // al and nv
		return 0
	}
	return RegFlags
}
