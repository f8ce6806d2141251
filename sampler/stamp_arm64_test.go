package sampler

func stampFirst(s *Stamp, v uint64) { s.Regs.Regs[0] = v }
