package interp

func init() {
	leaves, b, c, d := cpuid(0, 0)
	name := [3]uint32{b, d, c}
	amd = name == [3]uint32{0x68747541, 0x69746e65, 0x444d4163} || // AuthenticAMD
		name == [3]uint32{0x6f677948, 0x6e65476e, 0x656e6975} // HygonGenuine
	if most, _, _, _ := cpuid(1<<31, 0); most > 1<<31 {
		_, _, c, _ := cpuid(1<<31+1, 0)
		misalignment = c&(1<<7) != 0
	}
	if leaves >= 7 {
		_, b, _, _ := cpuid(7, 0)
		transactions = b&(1<<11) != 0
	}
	if _, _, c, _ := cpuid(1, 0); c&(1<<27) != 0 && leaves >= 0xd { // OSXSAVE
		xsaveEnabled = xcr0()
		for i := range xsaveParts {
			size, at, c, _ := cpuid(0xd, uint32(i))
			xsaveParts[i] = xsavePart{uint64(size), uint64(at), c&2 != 0}
		}
	}
}

func xcr0() uint64
