package memrecord

// DataSrc decodes perf's union perf_mem_data_src (uapi/linux/perf_event.h).
// The older level bits are used only where the newer level number is absent.
func DataSrc(v uint64) Access {
	field := func(low, width int) uint64 { return v >> low & (1<<width - 1) }
	op, level, snoop, lock, tlb := field(0, 5), field(5, 14), field(19, 5), field(24, 2), field(26, 7)
	number, remote, hops := field(33, 4), field(37, 1), field(43, 3)
	const (
		opLoad, opStore = 2, 4
		locked          = 2
		hitModified     = 0x10
		tlbMiss         = 4
		tlbL1, tlbL2    = 8, 0x10
	)
	return Access{
		Load:   op&opLoad != 0,
		Store:  op&opStore != 0,
		Locked: lock&locked != 0,
		// Intel names both levels where it can't tell them apart.
		TLBMiss:  tlb&tlbMiss != 0 || tlb&tlbL2 != 0 && tlb&tlbL1 == 0,
		Modified: snoop&hitModified != 0,
		Level:    dataSrcLevel(level, number, remote == 1 || hops > 1),
	}
}

// PERF_MEM_LVLNUM_*, and the bits of PERF_MEM_LVL_* that name a place.
func dataSrcLevel(bits, number uint64, remote bool) Level {
	switch number {
	case 1, 7: // L0 is the innermost of processors that call the next one L1
		return L1
	case 2:
		return L2
	case 3:
		if remote {
			return RemoteCache
		}
		return L3
	case 4, 6: // the one on the memory's side
		return L4
	case 8:
		return Uncached
	case 0xa:
		return IO
	case 0xb: // any cache
		if remote {
			return RemoteCache
		}
		return LevelUnknown
	case 5, 0xc: // L2's for its misses, L1's
		return FillBuffer
	case 9, 0xd, 0xe: // CXL, DRAM, persistent
		if remote {
			return RemoteMemory
		}
		return Memory
	}
	for _, place := range []struct {
		bit   int
		level Level
	}{{3, L1}, {4, FillBuffer}, {5, L2}, {6, L3}, {7, Memory}, {8, RemoteMemory}, {9, RemoteMemory}, {10, RemoteCache}, {11, RemoteCache}, {12, IO}, {13, Uncached}} {
		if bits>>place.bit&1 == 1 {
			return place.level
		}
	}
	return LevelUnknown
}
