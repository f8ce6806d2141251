//go:build !amd64

package exact

func touchVector(*vectorStack, []uint64, []uint8, []uint64, []uint64, int) int {
	panic("there is no AVX2")
}

func countVector(*vectorStack, []uint64, []uint8, int) int { panic("there is no AVX2") }

func sortVector(*vectorStack, int) { panic("there is no AVX2") }

func addOctaves(*[vectorChunk]uint8, *[vectorOctaves]uint64) { panic("there is no AVX2") }
