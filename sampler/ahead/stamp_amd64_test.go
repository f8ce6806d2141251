package ahead

import "github.com/rdx-profiler/rdx/sampler"

func stampFirst(s *sampler.Stamp, v uint64) { s.Regs.Ax = v }
